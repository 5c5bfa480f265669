// Evaluation makes no graphs, and nothing says where its batches end. Its memory does: with each of
// them it rises and falls to where it was. There an iteration ends too, so that a job takes turns
// while it evaluates, and is known by the curves of its batches.
//
// What a training iteration allocates before its first graph node (data, a teacher's forward pass)
// is no evaluation, which begins beyond twice as many allocations. Nothing here knows a clock, so
// that a script that allocates in one thread has the same batches in every run.
#pragma once

#include <cstdint>
#include <mutex>

namespace gpushare {

class Evaluation {
 public:
  static constexpr uint64_t kFew = 32;  // allocations; what is shorter goes with the next batch

  // An iteration opens. Its batches are told apart if it `may_end`.
  void begin(bool may_end);
  // Its first graph node is made, after so many allocations.
  void note_graph(uint32_t allocations);
  // Whether a batch has ended, before allocation `ordinal` of an iteration that has made no graph;
  // `live` is in bytes. With more kept than between two iterations (predictions, say) none ends.
  bool batch_ended(uint32_t ordinal, int64_t live, bool keeps_little);
  // It has not, after all.
  void take_back();
  // The iteration closes. Whether it was such a batch.
  bool close();

 private:
  void note_prelude(uint64_t allocations);
  bool falls(int64_t live);
  void learn_from(uint64_t at, int64_t live);

  std::mutex mutex_;  // the innermost; guards what follows
  bool may_end_ = false, ended_ = false;
  uint64_t preludes_ = 0;  // that were seen
  uint64_t prelude_ = 0;   // the most allocations before a first node, of late
  // Since the script's last mark: allocations in batches that have ended, and how many such. For
  // how many marks in a row there were some.
  uint64_t before_ = 0, batches_ = 0, in_a_row_ = 0;
  // Live bytes since the last batch began, or since they were last found to follow no rule.
  int64_t low_ = 0, high_ = 0;
  bool is_low_ = true;
  uint64_t known_from_ = 0, lost_from_ = 0;  // allocations since the mark
};

}  // namespace gpushare
