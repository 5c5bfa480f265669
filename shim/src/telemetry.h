// What another process may read: counters per account and one overwriting event ring per account,
// in shared memory. Words are written with relaxed atomics; a ring entry's sequence number is
// written last. The reader is gpushare/telemetry/, which has the same layout.
#pragma once

#include <cstdint>

namespace gpushare {

constexpr uint64_t kTelemetryMagic = 0x4750555348415245;  // "GPUSHARE"
constexpr uint64_t kTelemetryVersion = 10;
constexpr uint32_t kAccounts = 64, kHeaderBytes = 4096, kSlotBytes = 1024, kRingEntries = 4096;
constexpr uint32_t kWakeEntries = 16384;  // the latest wake-ups, two words each
constexpr uint64_t kWakesAt =
    kHeaderBytes + uint64_t{kAccounts} * kSlotBytes + uint64_t{kAccounts} * kRingEntries * 32;
constexpr uint64_t kTelemetryBytes = kWakesAt + uint64_t{kWakeEntries} * 16;

enum Header : uint32_t {
  kMagic,
  kVersion,
  kPageBytes,
  kBudget,
  kHeldTotal,
  kHeldPeak,
  kBacked,
  kSharedHeld,
  kStartNs,
  kTickNs,
  kOverlapNs,
  kEligibleNs,
  kHeadroom,
  kPoolBase,
  kPoolReserved,
  kDropped,
  kChangedOwner,
  kJobs,
  kParks,
  kParkNs,
  kRingSize,
  kPolicy,
  kWakes,
  kCrashSignal,  // 0: none; what hit the process, and whose thread
  kCrashAccount,
  kWantedBudget  // once what the jobs hold fits
};
enum Slot : uint32_t {
  kState,
  kHeld,
  kHeldMax,
  kLive,
  kLiveMax,
  kIterations,
  kLastIterationNs,
  kSoloPeak,
  kResidue,
  kClaim,
  kProgress,
  kCurveLength,
  kDoorWaitNs,
  kMemoryWaitNs,
  kWaits,
  kOverruns,
  kLargestOverrun,
  kShiftSumNs,
  kShiftCount,
  kPredictedShiftNs,
  kAllocations,
  kFrees,
  kPythonGrants,
  kSoloIterationNs,
  kSharedIterationSumNs,
  kSharedIterations,
  kSharedWork,  // of these: each as long as its kind, in millionths of the profiled one
  kCpuNs,
  kProfiled,
  kOomCount,
  kNeedsAtLeast,
  kRingHead,
  kBeginNs,
  kEndNs,
  kSoloLivePeak,
  kLongestWakeNs,
  kRefusal,
  kOthersKeep,
  kCopiesOut,
  kCopiedOut,
  kLivePersistent,  // of middle size; as is the next
  kLiveTransient,
  kLiveInExtents,
  kLiveInSlabs,
  kReserved,  // bytes of addresses
  kReceived,  // pages that another account had
  kMappings,
  kEvents,
  kDeviceWaits,
  kCpuWaits,        // for the device
  kPeakPersistent,  // live at the profiled peak; as are the next
  kPeakActivation,
  kPeakTemporary,
  kBadFrees,
  kIterationKinds,
  kLeases,   // that it was given
  kBatches,  // that it evaluated, each with a door as an iteration has
  kLongestWaitNs,
  kForecastWaits,    // whose length was forecast,
  kForecastErrorNs,  // and by how much those were wrong, in all
  kGilWaitNs,        // of the thread that runs the script, for the interpreter's lock
  kGilWaitBeforeNs,  // of these, in its set-up, and in iterations with no other beside
  kCpuWaitBeforeNs,  // that thread's for a processor, in its set-up
  kWaitedNs          // one word for each Why but the first
};
// Why a job waits, at its door or for memory.
enum Why : uint8_t {
  kNothing,
  kBehind,       // a job that asked earlier, or goes first, comes first
  kTurn,         // the jobs take turns
  kShift,        // its planned time shift is not over
  kClaims,       // no order is left in which all open iterations could end
  kMemoryFirst,  // who waits for memory comes before doors
  kMeasured,     // it or another is measured alone
  kResidues,     // it does not fit beside what the others keep
  kForking,      // another job forks
  kOverran,      // another job exceeds its claim
  kSetAside,     // fewer jobs at once do more
  kReturning,    // its memory was copied out, and has no room to come back yet
  kWhys
};
constexpr uint32_t kSlotWords = uint32_t{kWaitedNs} + uint32_t{kWhys} - 1;
static_assert(kSlotWords * 8 <= kSlotBytes);
enum State : uint64_t {
  kEmpty,
  kSetUp,
  kAlone,
  kIterating,
  kAtDoor,
  kWaitingForMemory,
  kEnded,
  kIsCopiedOut,
  kQueued
};
enum Refusal : uint64_t { kAloneTooLarge = 1, kTooLargeBesideOthers };
enum EventKind : uint64_t {
  kOpen = 1,
  kClose,
  kDoorWaitBegin,
  kDoorWaitEnd,
  kMemoryWaitBegin,
  kMemoryWaitEnd,
  kHeldChanged,  // its time is that of the kernel's last tick
  kOverrun
};

class Telemetry {
 public:
  // Maps the memfd, or private memory if fd < 0. False if it can't be mapped.
  bool open(int fd);
  // Unmaps it; for who has opened one that nobody uses any more.
  void close();
  void header(Header word, uint64_t value) { store(words_ + word, value); }
  void slot(uint32_t account, Slot word, uint64_t value) { store(slot_word(account, word), value); }
  void add(uint32_t account, Slot word, uint64_t value) {
    store(slot_word(account, word), slot(account, word) + value);
  }
  void raise(uint32_t account, Slot word, uint64_t value) {
    if (slot(account, word) < value) slot(account, word, value);
  }
  uint64_t slot(uint32_t account, Slot word) const {
    return __atomic_load_n(slot_word(account, word), __ATOMIC_RELAXED);
  }
  uint64_t header(Header word) const { return __atomic_load_n(words_ + word, __ATOMIC_RELAXED); }
  // Callers are serialised per account.
  void event(uint32_t account, EventKind kind, uint64_t value, uint64_t time_ns);
  // A waiter ran again this long after it was let go. Callers are serialised.
  // From the grant to the thread running again, and from there to its having the GIL and the lock.
  void wake(uint32_t account, uint64_t latency_ns, uint64_t gil_ns);
  void gil_wait(uint32_t account, uint64_t ns);  // by one thread of it

 private:
  static void store(uint64_t* word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
  }
  uint64_t* slot_word(uint32_t account, Slot word) const {
    return words_ + (kHeaderBytes + account * kSlotBytes) / 8 + word;
  }
  uint64_t* words_ = nullptr;
};

}  // namespace gpushare
