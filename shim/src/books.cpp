#include "books.h"

namespace gpushare {

Books::Books(Device* device, Policy policy, uint64_t page_bytes, uint64_t budget_pages,
             uint64_t address_pages, Telemetry* telemetry)
    : device_(device),
      fences_(device, kAccounts, budget_pages * page_bytes),
      pool_(device, &fences_, page_bytes, budget_pages, address_pages),
      policy_(policy),
      budget_(budget_pages),
      wanted_budget_(budget_pages),
      least_headroom_(budget_pages >= 64  ? 2
                      : budget_pages >= 8 ? 1
                                          : 0),
      headroom_(least_headroom_),
      telemetry_(telemetry) {
  for (uint32_t i = 0; i < kAccounts; ++i) accounts_[i].id = i;
  accounts_[0].begun = true;
}

}  // namespace gpushare
