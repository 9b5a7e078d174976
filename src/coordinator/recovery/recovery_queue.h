// SPDX-License-Identifier: Apache-2.0
// The lost blocks of one recovery, in the order in which they should be repaired. Pure: no lock, no
// clock; time is handed in.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "model/recovery.h"

namespace ecpipe {

struct LostBlock {
  std::string block_id;
  uint64_t bytes = 0;
  int needed = 0;                    // survivors that an MDS code of this k needs
  std::vector<std::string> holders;  // nodes of the stripe's other blocks
  // The last attempt brought wrong bytes: the next one should locate the survivor they come from.
  bool uncertain = false;
};

// Blocks with the fewest usable survivors go first, with ageing: a block that joined `ageing` later
// than another goes before it only if it has at least one usable survivor fewer. A block whose
// repair failed waits, longer each time, and then joins the queue anew, behind blocks that were not
// tried yet; so a block that cannot be repaired does not keep others from being repaired.
class RecoveryQueue {
 public:
  struct Options {
    Duration ageing = std::chrono::seconds(10);
    Duration first_pause = std::chrono::seconds(1);  // after a failure; doubles with each
    Duration longest_pause = std::chrono::seconds(60);
    int max_attempts = 6;  // then the block is given up
  };
  struct Counts {
    uint64_t waiting = 0;  // ready, or pausing after a failure
    uint64_t running = 0;
    uint64_t done = 0;
    uint64_t given_up = 0;
    uint64_t done_bytes = 0;
  };

  explicit RecoveryQueue(const Options& options) : options_(options) {}

  // A block that is known already is ignored.
  void Add(LostBlock block, TimePoint now);
  // The nodes whose blocks can be read now.
  void SetUsable(const std::set<std::string>& nodes);
  // The first `limit` blocks that may be tried now, in order. Valid until the next call.
  std::vector<const LostBlock*> Next(TimePoint now, size_t limit);

  // The life of one block: Start, then Done or Fail. Unknown blocks are ignored.
  void Start(const std::string& block_id);
  void Done(const std::string& block_id);
  void Fail(const std::string& block_id, const absl::Status& why, TimePoint now);

  // Whether every block is done or given up.
  bool Finished() const { return counts_.waiting + counts_.running == 0; }
  Counts counts() const { return counts_; }
  // Blocks whose repair failed and that are not done since: at most `limit`, in the order of their
  // ids.
  std::vector<BlockedBlock> Blocked(size_t limit) const;

 private:
  enum class State { kReady, kPausing, kRunning, kDone, kGivenUp };
  struct Item {
    LostBlock block;
    TimePoint joined;
    State state = State::kReady;
    int attempts = 0;
    std::string reason;  // of the last failure
    double key = 0;      // while kReady: its key in ready_
  };
  using Items = std::map<std::string, Item>;

  double KeyOf(const Item& item) const;
  void MakeReady(Items::iterator item);
  Item* Running(const std::string& block_id);

  const Options options_;
  std::set<std::string> usable_;
  Items items_;  // by block id
  std::set<std::pair<double, std::string>> ready_;
  std::set<std::pair<TimePoint, std::string>> pausing_;
  Counts counts_;
};

}  // namespace ecpipe
