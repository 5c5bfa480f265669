#include "iteration_kinds.h"

#include <algorithm>
#include <utility>

namespace gpushare {

namespace {

constexpr uint32_t kSamples = 32;  // points of a curve that are compared
constexpr uint32_t kAlike = 16;    // they differ by this part of the peak at most
constexpr uint32_t kSlackPages = 2;
constexpr uint64_t kMostIterations = uint64_t{1} << 32;
constexpr uint64_t kLately = 16;  // iterations in which others do to all the same

// What comes behind an iteration's end, its data among it, is a part of it unless it is far longer
// than all of it is otherwise; what is shorter than that may be a hiccup of the machine.
constexpr uint64_t kErrandTimes = 2, kErrandNs = 10000000;
constexpr uint64_t kRarely = 4;  // an iteration in so many starts processes, at most

uint32_t peak(const Curve& c) { return static_cast<uint32_t>(std::max(c.claim(0), c.residue())); }

uint32_t peak(const Recorder& r) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < r.length(); ++i) most = std::max(most, r.held(i));
  return most;
}

// The same for a curve of which only the most in each step is known.
uint32_t difference_in_steps(const Recorder& r, const Curve& c) {
  uint32_t most = 0;
  for (size_t s = 0; s < c.steps().size(); ++s) {
    uint64_t begin = c.steps()[s];
    uint64_t end = s + 1 < c.steps().size() ? c.steps()[s + 1] : c.length();
    uint32_t here = 0, there = 0;
    for (uint64_t i = begin; i < end; ++i)
      there = std::max(there, c.held(static_cast<uint32_t>(i)));
    uint64_t first = begin * r.length() / c.length(), last = end * r.length() / c.length();
    for (uint64_t i = first; i < last; ++i) here = std::max(here, r.held(static_cast<uint32_t>(i)));
    if (first < last) most = std::max(most, apart(here, there));
  }
  return most;
}

bool as_long(uint64_t n, uint64_t other) { return n * 10 >= other * 9 && n * 9 <= other * 10; }

// The largest difference, in pages, of points at the same parts of their lengths.
uint32_t difference(const Recorder& r, const Curve& c) {
  uint32_t most = apart(peak(r), peak(c));
  if (!c.steps().empty()) return std::max(most, difference_in_steps(r, c));
  for (uint64_t i = 0; i < kSamples; ++i) {
    auto here = static_cast<uint32_t>(i * r.length() / kSamples);
    auto there = static_cast<uint32_t>(i * c.length() / kSamples);
    most = std::max(most, apart(r.held(here), c.held(there)));
  }
  return most;
}

}  // namespace

void IterationKinds::add(Curve curve, uint64_t seen, std::span<const uint64_t> followed_by) {
  if (count() == kMost) return;
  Kind& kind = kinds_.emplace_back();
  kind.curve = std::move(curve);
  kind.forecast.follow(kind.curve, false);
  kind.seen = kind.seen_before = seen;
  seen_before_ += seen;
  auto ns = [](const Kind& k) { return static_cast<double>(k.curve.duration_ns()); };
  if (ns(kinds_[0]) > 0) kind.weight = ns(kind) / ns(kinds_[0]);
  for (size_t i = 0; i < std::min<size_t>(followed_by.size(), kMost); ++i)
    kind.followed_by[i] = kind.followed_before[i] = followed_by[i];
}

void IterationKinds::begin() {
  may_be_ = 0;
  looked_ = false;
}

void IterationKinds::recognise(const Recorder& r) {
  if (looked_ || !r.begun()) return;
  looked_ = true;
  auto known = beginnings_.find(r.signature());
  if (known != beginnings_.end() && known->second.seen >= kSeenOften && !distrusted_)
    may_be_ = known->second.kinds;
}

void IterationKinds::mistaken() {
  if (may_be_) distrusted_ = kDistrustFor;
  may_be_ = 0;
}

template <class May>
uint32_t IterationKinds::most_alike(const Recorder& r, May may) const {
  uint32_t best = count(), least = UINT32_MAX;
  for (uint32_t i = 0; i < count(); ++i) {
    if (!may(kinds_[i])) continue;
    if (uint32_t d = difference(r, kinds_[i].curve); d < least) best = i, least = d;
  }
  return best;
}

// The kind that the iteration is of; count() for a new one.
uint32_t IterationKinds::find(const Recorder& r, uint64_t residue_pages, bool batch) const {
  auto is_as_long = [&](const Kind& k) { return as_long(r.length(), k.curve.length()); };
  auto is_batch = [](const Kind& k) { return k.batch; };
  uint32_t best = most_alike(r, is_as_long);
  uint64_t most = std::max<uint64_t>(peak(r), residue_pages);
  if (best < count() && difference(r, kinds_[best].curve) <= kSlackPages + most / kAlike)
    return best;
  // Batches of any size must leave room for iterations that are still to come.
  if (batch && std::ranges::count_if(kinds_, is_batch) >= kMostBatches)
    return most_alike(r, is_batch);
  return count() < kMost ? count() : most_alike(r, [](const Kind&) { return true; });
}

uint32_t IterationKinds::end(const Recorder& r, uint64_t residue_pages, Times times, bool batch) {
  uint32_t found = find(r, residue_pages, batch);
  if (found == count()) kinds_.emplace_back().batch = batch;
  Kind& kind = kinds_[found];
  bool began_process = starts_processes_at_times(times);
  uint64_t errand = errand_ns(kind, times, began_process);
  last_time_ns_ = errand && began_process ? 0 : times.duration_ns - errand;
  bool rose = kind.curve.refine(r, residue_pages, last_time_ns_);
  kind.forecast.follow(kind.curve, !rose);
  ++kind.seen;
  started_processes_ += times.started_process;
  weigh(found);
  note_usual(kind);
  last_work_ = kind.weight + work_of(errand);
  work_ += last_work_;
  if (last_ < count()) ++kinds_[last_].followed_by[found];
  last_ = found;
  if (distrusted_ > 0) --distrusted_;
  begin();
  if (!r.begun()) return found;
  auto known = beginnings_.try_emplace(r.signature()).first;
  known->second.kinds |= Set{1} << found;
  ++known->second.seen;
  if (beginnings_.size() > kSignatures) beginnings_.erase(known);
  return found;
}

void IterationKinds::pass_over() {
  work_ += 1;
  begin();
}

// Kinds stay usual: what they were measured by is not to change back and forth.
void IterationKinds::note_usual(Kind& kind) {
  if (!kind.began) kind.began = ended_;
  uint64_t here = kind.seen - kind.seen_before, since = ended_ - kind.began + 1;
  kind.usual |= here >= kUsualFrom && here * kUsualShare >= since;
}

IterationKinds::Extent IterationKinds::usual() const {
  Extent most;
  for (uint32_t i = 0; i < count(); ++i) {
    const Kind& kind = kinds_[i];
    bool was = kind.seen_before && kind.seen_before * kUsualShare >= seen_before_;
    if (i > 0 && (kind.batch || (!kind.usual && !was))) continue;
    most.pages = std::max<uint64_t>(most.pages, peak(kind.curve));
    most.allocations = std::max<uint64_t>(most.allocations, kind.curve.length());
  }
  return most;
}

bool IterationKinds::came_lately(uint32_t i) const { return ended_ - kinds_[i].ended <= kLately; }

// Other jobs slow all kinds down, so a kind's time alone is told by what another one takes
// meanwhile. That is the profiled one while it comes, since its time alone is known; where it comes
// no more (sequences that grow), one that came before, with the weight that it had.
void IterationKinds::weigh(uint32_t found) {
  kinds_[found].ended = ++ended_;
  if (came_lately(0))
    measure_ = 0;
  else if (!came_lately(measure_) && last_ < count())
    measure_ = last_;
  const Kind& by = kinds_[measure_];
  if (found == measure_ || by.curve.duration_ns() == 0) return;
  double longer = static_cast<double>(kinds_[found].curve.duration_ns()) /
                  static_cast<double>(by.curve.duration_ns());
  kinds_[found].weight = by.weight * longer;
}

uint64_t IterationKinds::claim(uint32_t ordinal, uint64_t all_kinds) const {
  if (may_be_ == 0) return all_kinds;
  uint64_t most = 0;
  for (uint32_t i = 0; i < count(); ++i)
    if (may_be_ >> i & 1) most = std::max(most, kinds_[i].curve.claim(ordinal));
  return std::min(most, all_kinds);
}

// Who starts processes all the time does so in what is its usual iteration.
bool IterationKinds::starts_processes_at_times(Times times) const {
  return times.started_process && (started_processes_ + 1) * kRarely <= ended_;
}

uint64_t IterationKinds::errand_ns(const Kind& kind, Times times, bool began_process) {
  uint64_t usual = kind.curve.duration_ns(), duration = times.duration_ns;
  if (usual == 0) return 0;
  if (began_process) return duration - std::min(duration, usual);
  bool far = times.after_ns > std::max(kErrandTimes * usual, kErrandNs);
  return far ? std::min(times.after_ns, duration) : 0;
}

// As many as are done in this time, as slow as they come now.
double IterationKinds::work_of(uint64_t errand_ns) const {
  const Kind& by = kinds_[measure_];
  auto each_ns = static_cast<double>(by.curve.duration_ns());
  return each_ns > 0 ? by.weight * static_cast<double>(errand_ns) / each_ns : 0;
}

double IterationKinds::work(const Recorder& r, bool open, Times so_far) const {
  const Kind* kind = open ? likely() : nullptr;
  if (!kind || kind->curve.length() == 0) return work_;
  double part = static_cast<double>(r.ordinal()) / kind->curve.length();
  double errand = work_of(errand_ns(*kind, so_far, starts_processes_at_times(so_far)));
  return work_ + kind->weight * std::min(1.0, part) + errand;
}

const IterationKinds::Kind* IterationKinds::likely() const {
  const Kind* best = nullptr;
  uint64_t most = 0;
  for (uint32_t i = 0; i < count(); ++i) {
    if (may_be_ && !(may_be_ >> i & 1)) continue;
    uint64_t followed = may_be_ || last_ >= count() ? 0 : kinds_[last_].followed_by[i];
    uint64_t times = followed * kMostIterations + kinds_[i].seen;
    if (!best || times > most) best = &kinds_[i], most = times;
  }
  return best;
}

}  // namespace gpushare
