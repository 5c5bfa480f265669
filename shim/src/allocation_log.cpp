#include "allocation_log.h"

#include "clock.h"

namespace gpushare {

void AllocationLog::add(Logged what, uint32_t account, uint64_t stream, uint64_t iteration,
                        const void* address, uint64_t bytes, Kind kind) {
  file_.add([&]() -> LogRecord {
    return {now_ns(),
            reinterpret_cast<uint64_t>(address),
            bytes,
            stream,
            static_cast<uint32_t>(iteration),
            static_cast<uint8_t>(account),
            what,
            kind};
  });
}

}  // namespace gpushare
