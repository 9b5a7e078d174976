// SPDX-License-Identifier: Apache-2.0
// The blocks that were found corrupt, and those that somebody calls corrupt. A block's own helper
// has read it, so its word is enough. Anybody else's word makes the block a suspect: plans avoid
// it, and do not trust it, until a check has decided. docs/design/010-corruption.md has the
// reasoning.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace ecpipe {

struct CorruptBlock {
  std::string block_id;
  std::string node;    // the node that has the block
  std::string reason;  // what was found wrong
  int64_t found_unix_ms = 0;
  bool suspect = false;   // only others say so
  std::string undecided;  // of a suspect: why its latest check could not decide; empty: none yet
  uint32_t checks = 0;    // that have been made since the start of the process
};

// Where marks outlive the process. Thread-safe; each call may wait for a disk.
class CorruptBlockStore {
 public:
  virtual ~CorruptBlockStore() = default;
  // Replaces what was kept of the node's copy of the block.
  virtual absl::Status Keep(const CorruptBlock& block) = 0;
  virtual absl::Status Forget(const std::string& block_id, const std::string& node) = 0;
  // The oldest first.
  virtual absl::StatusOr<std::vector<CorruptBlock>> Load() = 0;
};

// Thread-safe. Add, Forget and Decide wait for the disk of the store if they change a mark.
class CorruptBlocks {
 public:
  // Bounds the memory that reports can take, at some hundred bytes each. Beyond it the oldest
  // suspect is dropped, and what is found corrupt stays. Where all are that, a new mark is refused:
  // no reader must trust a block again that was proved bad.
  static constexpr size_t kMost = 10'000;
  static constexpr size_t kMaxReasonBytes = 300;
  // A helper that does not answer, or has other checks to make, is asked again after this time.
  static constexpr Duration kCheckAgain = std::chrono::seconds(10);

  // Without a store the marks end with the process. Otherwise it outlives this.
  explicit CorruptBlocks(CorruptBlockStore* store = nullptr) : store_(store) {}
  // Takes up what an earlier process has kept; call it before all else.
  absl::Status Restore();

  // Returns true if that is news: the node's copy was not marked, or was only a suspect and is
  // corrupt now. Otherwise the older report stays as it is, or there are too many (refused()).
  bool Add(CorruptBlock block);
  // The block was stored anew, or is proved sound. Returns whether a copy of it was marked.
  bool Forget(const std::string& block_id);
  // The same of one node's copy.
  bool Forget(const std::string& block_id, const std::string& node);
  // The node is gone for good, and all its copies with it.
  void ForgetNode(const std::string& node);

  // The mark of the node's copy of the block.
  std::optional<CorruptBlock> Find(const std::string& block_id, const std::string& node) const;
  // Why the node's copy of the block must not be read: it is corrupt. Empty: it is not.
  std::string Reason(const std::string& block_id, const std::string& node) const;
  // Why the node's copy of the block is a suspect. Empty: it is not.
  std::string Suspicion(const std::string& block_id, const std::string& node) const;
  // Whether one of the blocks was found corrupt, on whichever node.
  bool HasAnyOf(const std::vector<std::string>& block_ids) const;
  // The oldest first.
  std::vector<CorruptBlock> All() const;
  // The number of findings since the start; a block that was found twice counts twice. Suspects do
  // not count.
  uint64_t found() const;
  // Marks that Add did not take since the start, because there were too many.
  uint64_t refused() const;

  // Has the marked copies of the block checked soon, also if they were found corrupt. NOT_FOUND: it
  // is not marked.
  absl::Status CheckSoon(const std::string& block_id, TimePoint now);

  // What a check decides.
  enum class Verdict { kSound, kCorrupt, kUndecided, kAskAgain };
  struct Due {
    CorruptBlock block;
    uint64_t mark = 0;  // tells this mark from a later one of the same block
  };
  // The block whose check has waited longest. Nothing is due before Decide has been called for it.
  std::optional<Due> NextCheck(TimePoint now) const;
  // Ignored if the block has been stored anew, or marked anew, since it became due. Returns whether
  // the block is found corrupt by this.
  bool Decide(const Due& due, Verdict verdict, const std::string& why, TimePoint now);

 private:
  // A block's id and the node of the copy: what is said of one copy says nothing of another.
  using Copy = std::pair<std::string, std::string>;
  struct Mark {
    CorruptBlock block;
    uint64_t number = 0;
    std::optional<TimePoint> check_at;  // none: no check is due
  };
  using Marks = std::map<Copy, Mark>;

  enum class Added { kKnown, kNews, kRefused };
  // `dropped` is the suspect whose mark made room, if one did.
  Added AddToMap(const CorruptBlock& block, std::optional<Copy>* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Makes room for a mark; returns the suspect that has none any more. Nothing: there is none.
  std::optional<Copy> DropOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The marked copies of the block.
  std::vector<Copy> CopiesOf(const std::string& block_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ForgetAll(const std::vector<Copy>& copies);
  void Erase(const Copy& copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Under write_mutex_, so that marks are kept in the order in which they were made.
  void Keep(const CorruptBlock& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void ForgetKept(const Copy& copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  CorruptBlockStore* const store_;
  Mutex write_mutex_;  // held while the store works; taken before mutex_
  mutable Mutex mutex_;
  Marks marks_ ABSL_GUARDED_BY(mutex_);
  std::deque<Copy> order_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  uint64_t found_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ecpipe
