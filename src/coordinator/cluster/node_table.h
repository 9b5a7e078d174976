// SPDX-License-Identifier: Apache-2.0
// The storage nodes as their helpers report them. Pure: no lock, no clock; time is handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "model/plan/features.h"

namespace ecpipe {

struct NodeRecord {
  std::string node_id;
  std::string rack;                      // empty: unknown
  std::string control_address;           // of its HelperService, host:port
  std::string data_address;              // of its TCP data port, host:port
  std::string redis_address;             // of its redis-server; empty: it offers no redis transport
  std::string storage_id;                // the storage system's name for the node, or empty
  uint64_t incarnation = 0;              // changes with every start of the helper; not ordered
  uint64_t block_count = 0;              // blocks under its roots
  uint64_t block_bytes = 0;              // and their length in all
  std::optional<uint64_t> free_bytes{};  // on the disks where it stores blocks; none: not known
  std::optional<uint64_t> disk_bytes{};  // that these disks hold in all
  uint32_t active_sessions = 0;
  bool counting = false;               // block_count is not complete yet
  bool draining = false;               // takes no new parts
  double repair_bytes_per_second = 0;  // the limit that holds at the helper; 0: none
  uint32_t max_sessions = 0;           // the limit that holds at the helper; 0: not known yet
  TimePoint last_heartbeat{};          // set by the table; every call of the helper counts as one
  std::vector<std::string> failed_roots;  // directories that the helper cannot use: "PATH: reason"
  Features features = OwnFeatures();      // that its parts may need; a record made here has ours
  bool remembered = false;                // set by AddDead: it has not registered since the start
  bool told_dead = false;                 // set by the table: TakeTurns has told of its death
  // Set by the table: the incarnation before this one, if that was not dead yet; otherwise 0.
  uint64_t replaced_incarnation = 0;

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

enum class NodeState { kLive, kDraining, kDead };
// "live", "draining", "dead".
const char* NodeStateName(NodeState state);

// What a heartbeat brings besides the sign of life.
struct NodeReport {
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  uint32_t active_sessions = 0;
  bool draining = false;
  double repair_bytes_per_second = 0;
  uint32_t max_sessions = 0;
  std::vector<std::string> failed_roots = {};
  bool counting = false;
  std::optional<uint64_t> free_bytes = {};
  std::optional<uint64_t> disk_bytes = {};
};

enum class RegisterOutcome {
  kAdded,         // the id was unknown
  kRefreshed,     // the same incarnation again
  kReplaced,      // another incarnation, and the one before was dead: a restart
  kReplacedLive,  // another incarnation, and the one before was not dead yet: a quick restart, or
                  // two helpers that were given one id
};

class NodeTable {
 public:
  static constexpr Duration kTick = std::chrono::seconds(1);
  static constexpr Duration kLatestTick = std::chrono::milliseconds(2500);
  static constexpr size_t kMaxNodes = 10'000;      // ten times the largest cluster aimed at
  static constexpr size_t kMaxNodeIdBytes = 255;   // as in the catalog
  static constexpr size_t kMaxAddressBytes = 300;  // a DNS name ends at 253, then ":65535"
  // Of failed_roots what is beyond is cut off: they are for people, and some hosts have 60 disks.
  static constexpr size_t kMaxFailedRoots = 100;
  static constexpr size_t kMaxFailedRootBytes = 500;

  // A node without a heartbeat for longer than `dead_after` is dead.
  explicit NodeTable(Duration dead_after) : dead_after_(dead_after) {}

  // Adds the node, or replaces its record. INVALID_ARGUMENT, naming the field: a bad node id
  // (block_id.h), an address that is not host:port, or a text that is too long. ALREADY_EXISTS: a
  // node that is not dead has one of the addresses, or a live helper elsewhere has the node id. A
  // helper that starts again comes from the same host; one that has moved is taken when the one
  // before is no longer live. RESOURCE_EXHAUSTED: the node is new, and the
  // table is full. Dead nodes are forgotten only when the table is full.
  absl::StatusOr<RegisterOutcome> Register(NodeRecord record, TimePoint now);

  // Adds a dead node, or replaces its record. Its last heartbeat was so long ago; the node counts
  // as dead even if that is less than `dead_after`. The errors are those of Register, without
  // ALREADY_EXISTS.
  absl::Status AddDead(NodeRecord record, Duration silent, TimePoint now);

  // NOT_FOUND: the node is unknown or has another incarnation; the helper must register.
  absl::Status Heartbeat(const std::string& node_id, uint64_t incarnation, const NodeReport& report,
                         TimePoint now);

  // Nothing happens to a node that is not known.
  void SetRack(const std::string& node_id, std::string rack);

  // Forgets the node; nothing happens if it is not known. A helper that lives registers again.
  void Forget(const std::string& node_id);

  // The node has called otherwise: a sign of life as good as a heartbeat, which may be late on a
  // busy machine. Nothing happens to a node that is unknown, or dead: it has to register.
  void Heard(const std::string& node_id, TimePoint now);

  // Call it every kTick or so. If a call comes later than kLatestTick after the one before, the
  // coordinator itself did not run meanwhile, so that nobody's heartbeat could come: that time does
  // not count as silence.
  void Tick(TimePoint now);

  // A node that has died, or whose heartbeats are back.
  struct Turn {
    std::string node;
    bool dead = false;
    Duration silent{};
  };
  // Those since the last call. Nodes that were added dead, and that register, are none.
  std::vector<Turn> TakeTurns(TimePoint now);

  // kDead for a node that the table does not know.
  NodeState State(const std::string& node_id, TimePoint now) const;

  // Null when unknown. Valid until the next Register.
  const NodeRecord* Find(const std::string& node_id) const;

  // The nodes that have registered with this storage_id, in the order of their ids. There are
  // several if the storage system's node has moved to another helper.
  std::vector<std::string> WithStorage(const std::string& storage_id) const;

  // In the order of their ids.
  std::vector<NodeRecord> All() const;
  size_t CountLive(TimePoint now) const;

  size_t size() const { return nodes_.size(); }

 private:
  bool Dead(const NodeRecord& node, TimePoint now) const;
  // How long the coordinator has not run by now.
  Duration Stalled(TimePoint now) const;
  void ForgetDead(TimePoint now);
  absl::Status CheckAddressesAreFree(const NodeRecord& record, TimePoint now) const;
  absl::Status CheckIdIsFree(const NodeRecord& record, TimePoint now) const;
  // Adds or replaces a record that has been checked, with the time of its last sign of life.
  absl::StatusOr<RegisterOutcome> Put(NodeRecord record, TimePoint heard, TimePoint now);
  void Index(const NodeRecord& record);
  void Unindex(const NodeRecord& record);

  const Duration dead_after_;
  std::optional<TimePoint> last_tick_;
  std::map<std::string, NodeRecord> nodes_;
  std::set<std::pair<std::string, std::string>> by_storage_;  // storage id, node id
  std::set<std::pair<std::string, std::string>> by_address_;  // control or data address, node id
};

}  // namespace ecpipe
