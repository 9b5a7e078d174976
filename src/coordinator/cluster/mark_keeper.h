// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "coordinator/cluster/corrupt_blocks.h"

namespace ecpipe {

// A store of marks that tries again what another store did not take: else a restart would forget
// that a block is corrupt, and a recovery would read it. Thread-safe.
class MarkKeeper : public CorruptBlockStore {
 public:
  // There are at most CorruptBlocks::kMost marks, so what is beyond this are marks that are to be
  // forgotten. One of these that is dropped is there again after a restart, and only keeps a block
  // from being read.
  static constexpr size_t kMostUnkept = 2 * CorruptBlocks::kMost;
  // Doubles with each failure.
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::minutes(1);
  // Of the last try, within the time that a service manager has for a stop.
  static constexpr Duration kLongestEnd = std::chrono::seconds(10);

  // Both outlive the keeper.
  MarkKeeper(CorruptBlockStore* store, const Clock* clock) : store_(store), clock_(clock) {}
  // Tries a last time.
  ~MarkKeeper() override;
  // Tries again on a thread of its own, from here on.
  void Start();

  // The store's error says that it is tried again.
  absl::Status Keep(const CorruptBlock& block) override;
  absl::Status Forget(const std::string& block_id, const std::string& node) override;
  absl::StatusOr<std::vector<CorruptBlock>> Load() override { return store_->Load(); }

  // Tries what is due.
  void TryAgain();

  struct Counts {
    uint64_t failures = 0;  // of the store
    size_t unkept = 0;      // marks that it has not taken yet
  };
  Counts counts() const;

 private:
  using Copy = std::pair<std::string, std::string>;  // a block's id, and the node that has it
  // Nothing: the mark is to be forgotten.
  using Change = std::optional<CorruptBlock>;

  absl::Status Write(const Copy& copy, const Change& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Take(const Copy& copy, const Change& change);
  // Until the store refuses one, or the deadline; without a deadline, until the end begins. One at
  // a time: a mark that is made meanwhile goes first.
  void WriteAll(std::optional<TimePoint> deadline);
  bool MayWriteNext(std::optional<TimePoint> deadline);

  CorruptBlockStore* const store_;
  const Clock* const clock_;
  Mutex write_mutex_;  // held while the store works, so that the latest change is the last one
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Copy, Change> unkept_ ABSL_GUARDED_BY(mutex_);
  uint64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
  Duration pause_ ABSL_GUARDED_BY(mutex_) = kFirstPause;
  TimePoint again_at_ ABSL_GUARDED_BY(mutex_){};
  size_t callers_ ABSL_GUARDED_BY(mutex_) = 0;  // who keep or forget a mark now
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace ecpipe
