// The C API of memory: what accounts use, their limits, and the budget.
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "api.h"

using namespace gpushare;

extern "C" {

int gs_memory_get(gs_account account, gs_memory* out) {
  Runtime* r = active();
  if (!r || !is_account(account)) return fail("no such account");
  *out = r->governor().memory(static_cast<uint32_t>(account));
  return 0;
}

void gs_memory_reset_peaks(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->governor().reset_memory_peaks(static_cast<uint32_t>(account));
}

void gs_memory_reset_totals(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->governor().reset_memory_totals(static_cast<uint32_t>(account));
}

int gs_limit_set(gs_account account, uint64_t bytes) {
  Runtime* r = active();
  if (!r || !is_account(account)) return fail("no such account");
  uint64_t page = r->governor().pool().page_bytes();
  r->governor().set_limit(static_cast<uint32_t>(account),
                          bytes == UINT64_MAX ? UINT64_MAX : bytes / page);
  return 0;
}

uint64_t gs_pieces(gs_account account, gs_piece* out, uint64_t capacity) {
  Runtime* r = active();
  if (!r || !is_account(account)) return 0;
  std::vector<gs_piece> all = r->pieces(static_cast<uint32_t>(account));
  std::copy_n(all.begin(), std::min<uint64_t>(all.size(), capacity), out);
  return all.size();
}

uint64_t gs_arena_blocks(gs_account account, gs_arena arena, gs_arena_block* out,
                         uint64_t capacity) {
  Runtime* r = active();
  if (!r || !is_account(account) || !arena) return 0;
  std::vector<gs_arena_block> all = r->arena_blocks(static_cast<uint32_t>(account), arena);
  std::copy_n(all.begin(), std::min<uint64_t>(all.size(), capacity), out);
  return all.size();
}

int gs_arena_restore(gs_account account, gs_arena arena, const gs_arena_block* blocks,
                     uint64_t count) {
  Runtime* r = active();
  if (!r || !is_account(account) || !arena) return fail("no such arena");
  try {
    r->restore_arena(static_cast<uint32_t>(account), arena, {blocks, blocks + count});
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  return 0;
}

int gs_budget_set(uint64_t bytes) {
  Runtime* r = active();
  if (!r) return fail("not started");
  std::string why = r->governor().set_budget(bytes / r->governor().pool().page_bytes());
  return why.empty() ? 0 : fail(why);
}

int gs_pool_get(uint64_t out[GS_POOL_FIGURES]) {
  Runtime* r = active();
  if (!r) return fail("not started");
  PoolState s = r->governor().pool_state();
  uint64_t page = r->governor().pool().page_bytes();
  out[0] = s.held * page;
  out[1] = s.headroom * page;
  out[2] = s.shared * page;
  out[3] = s.budget * page;
  out[4] = s.free_ranges;
  out[5] = s.cuts_given_up;
  out[6] = s.cut_needs * page;
  return 0;
}

}  // extern "C"
