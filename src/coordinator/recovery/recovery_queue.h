// SPDX-License-Identifier: Apache-2.0
// The lost blocks of one recovery, in the order in which they should be repaired. Pure: no lock, no
// clock; time is handed in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "coordinator/recovery/placement/lost_block.h"
#include "model/recovery.h"

namespace ecpipe {

// Blocks with the fewest usable survivors to spare go first, and of equals the one that joined
// first. A block whose repair failed pauses, longer each time, and keeps its place. Blocks that
// failed before take turns with blocks that were not tried yet. So blocks that cannot be repaired
// do not keep others from being repaired, however many they are.
//
// Failures that prove something against the block give it up after `max_attempts` of them. What may
// be otherwise later is waited for without end, and tried again as soon as a node comes back that
// could help.
class RecoveryQueue {
 public:
  struct Options {
    // After a failure. Each later pause is between a half and the whole of a time that doubles, and
    // differs from block to block.
    Duration first_pause = std::chrono::seconds(1);
    Duration longest_pause = std::chrono::seconds(60);
    int max_attempts = 6;  // that proved something; then the block is given up
  };
  struct Counts {
    uint64_t waiting = 0;  // ready, or pausing after a failure
    uint64_t running = 0;
    uint64_t done = 0;
    uint64_t given_up = 0;
    uint64_t there = 0;  // the node has them
    uint64_t all = 0;    // the sum of the above
    uint64_t done_bytes = 0;
    uint64_t there_bytes = 0;
    uint64_t all_bytes = 0;
  };

  // How many usable survivors a block has beyond those that it needs.
  enum class Spare { kTooFew, kNone, kOne, kTwo, kMore };

  explicit RecoveryQueue(const Options& options) : options_(options) {}

  // Lost; of a block that is known already only the holders change, unless the node was thought to
  // have it.
  void Add(LostBlock block, TimePoint now);
  // The nodes that have the stripe's other blocks now. Returns whether they are others than before.
  // An unknown block has none.
  bool SetHolders(const std::string& block_id, std::vector<std::string> holders);
  // The node has the block: nothing is to be done, also if its repair runs or was given up. A block
  // that is done stays done.
  void AddThere(const LostBlock& block);
  // The node is away again with all that it had.
  void LoseAll(TimePoint now);
  // Forgets all blocks, which take memory, but not their numbers.
  void Forget();
  // The nodes whose blocks can be read now.
  void SetUsable(const std::set<std::string>& nodes);
  // The first `limit` blocks that may be tried now, in order. Valid until the next call.
  std::vector<const LostBlock*> Next(TimePoint now, size_t limit);

  // The life of one block: Start, then Done, Fail, Wait or NotBegun. Unknown blocks are ignored.
  void Start(const std::string& block_id);
  void Done(const std::string& block_id);
  void Fail(const std::string& block_id, const absl::Status& why, TimePoint now);
  // The repair failed for a reason that may pass; after wrong bytes it counts as Fail.
  void Wait(const std::string& block_id, WaitKind kind, const absl::Status& why, TimePoint now);
  // Nothing was tried: the block is where it was in the queue.
  void NotBegun(const std::string& block_id);

  // Whether every block is done, given up, or on its node.
  bool Finished() const { return counts_.waiting + counts_.running == 0; }
  Counts counts() const { return counts_; }
  // Of the blocks that wait or run: how many have so many survivors to spare.
  uint64_t CountOf(Spare spare) const { return by_spare_[static_cast<size_t>(spare)]; }
  // The blocks that pause after a failure, by its kind.
  const std::map<WaitKind, uint64_t>& pausing_by_kind() const { return pausing_by_kind_; }
  // Blocks whose repair failed and that are not done since: at most `limit`, in the order of their
  // ids.
  std::vector<BlockedBlock> Blocked(size_t limit, TimePoint now) const;
  // The reasons of blocks that pause after a failure.
  std::vector<RecoveryWait> Pauses() const;
  // The first `limit` blocks that wait for nodes only, in order; valid until the next change.
  std::vector<const LostBlock*> Ready(size_t limit) const;
  uint64_t ready() const { return untried_.size() + tried_.size(); }

  // A block that waits. Valid until the next change.
  struct Waiting {
    const LostBlock* block = nullptr;
    TimePoint joined{};  // of two with equally many to spare, the earlier goes first
    int spare = 0;       // usable survivors beyond those that are needed
    int attempts = 0;
    bool pausing = false;  // after a failure, whose `kind` and `reason` these are
    WaitKind kind = WaitKind::kFailed;
    std::string reason;
    TimePoint until{};  // while it pauses
  };
  // The first `limit` of those that may be tried now, and of those that pause those that are tried
  // first, `limit` as well.
  std::vector<Waiting> Head(size_t limit) const;

 private:
  enum class State { kReady, kPausing, kRunning, kDone, kGivenUp, kThere };
  struct Item {
    LostBlock block;
    TimePoint joined;
    State state = State::kReady;
    int attempts = 0;
    int failures = 0;                   // attempts that proved something
    std::string reason;                 // of the last failure
    WaitKind kind = WaitKind::kFailed;  // the same
    int spare = 0;                      // while it waits or runs
    TimePoint until{};                  // while kPausing
  };
  using Items = std::map<std::string, Item>;

  // The item of this block, and whether it is new.
  std::pair<Items::iterator, bool> Known(const LostBlock& block);
  using Key = std::tuple<int, TimePoint, std::string>;  // spare, joined, block id
  static Key KeyOf(const Items::value_type& item);
  std::set<Key>& ReadyOnes(const Item& item) { return item.attempts == 0 ? untried_ : tried_; }
  int SpareOf(const Item& item) const;
  static bool Open(const Item& item);  // it waits or runs
  uint64_t& CountOfSpare(const Item& item);
  // It waits from now on.
  void Enter(Items::iterator item, TimePoint now);
  // Other nodes are usable, or have the stripe's blocks.
  void CountAnew(Item* item);
  void MakeReady(Items::iterator item);
  Item* Running(const std::string& block_id);
  void NoteFailure(Item* item, WaitKind kind, const absl::Status& why);
  // Blocks that were in each other's way must not meet again each time.
  Duration PauseAfter(const std::string& block_id, int attempts) const;
  void Pause(const std::string& block_id, Item* item, TimePoint now);
  // Takes the item out of the state that it is in, and out of its count.
  void Leave(const std::string& block_id, Item* item);
  // Whether one of these nodes may change why the block waits.
  static bool Helped(const Item& item, const std::set<std::string>& nodes);

  const Options options_;
  std::set<std::string> usable_;
  Items items_;  // by block id
  // The blocks that are ready.
  std::set<Key> untried_;
  std::set<Key> tried_;
  bool tried_one_last_ = false;  // the block that was started last had been tried before
  std::set<std::pair<TimePoint, std::string>> pausing_;
  Counts counts_;
  std::array<uint64_t, static_cast<size_t>(Spare::kMore) + 1> by_spare_{};
  std::map<WaitKind, uint64_t> pausing_by_kind_;
};

}  // namespace ecpipe
