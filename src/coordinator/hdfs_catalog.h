// SPDX-License-Identifier: Apache-2.0
// What the coordinator knows of HDFS's blocks without having been told in a request: where they are
// from helpers' reports, and what their groups are from the NameNode.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/stripe_facts.h"
#include "coordinator/corrupt_blocks.h"
#include "coordinator/group_survey.h"
#include "coordinator/namenode_groups.h"
#include "coordinator/node_registry.h"
#include "coordinator/reported_blocks.h"

namespace ecpipe {

struct HdfsStatus {
  KnownGroups groups;
  uint64_t nodes = 0;   // whose blocks are known
  uint64_t blocks = 0;  // that they report
  GroupHealth health;
};

struct NodeLoss {
  NodeView node;
  // Nothing, unless the node is dead. None is beyond repair while nodes have yet to tell of blocks.
  BlockLoss loss;
  double report_age_seconds = 0;  // of the oldest latest report of a live DataNode
  uint64_t unreported_nodes = 0;  // live DataNodes that have yet to tell of their blocks
  KnownGroups groups;
};

// Thread-safe.
class HdfsCatalog {
 public:
  // The NameNode is asked again for a group that an answer this old does not have.
  static constexpr Duration kFreshEnough = std::chrono::seconds(5);
  // Whoever asks for a group waits so long for that: less than a requestor waits for its answer.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // `namenode` may be null: none is configured. With `whole` it tells of all of HDFS. All outlive
  // the catalog.
  HdfsCatalog(NodeRegistry* nodes, CorruptBlocks* corrupt, NameNodeGroups* namenode, bool whole,
              const Clock* clock)
      : nodes_(nodes),
        corrupt_(corrupt),
        namenode_(namenode),
        whole_(whole),
        clock_(clock),
        started_(clock->Now()) {}

  ReportedBlocks* reported() { return &reported_; }
  bool configured() const { return namenode_ != nullptr; }

  // Takes a node's report, and forgets that blocks are corrupt which the node does not have any
  // more, or has anew. NOT_FOUND: the helper is to register; otherwise as ReportedBlocks::Take.
  absl::StatusOr<ReportedBlocks::Outcome> Take(BlockReport report);

  // The group of a block named as in common/hdfs_block.h, with all who report a block of it: of the
  // group's generation, and of the length that it must have. May wait for the NameNode.
  // NOT_FOUND: it does not know the group; UNAVAILABLE: its answer is not there;
  // FAILED_PRECONDITION: the group cannot be repaired by us, or is of another generation.
  absl::StatusOr<StripeFacts> FactsOf(const std::string& block_id);

  // Nullopt: HDFS is nothing that we know of. The groups' health is up to some seconds old.
  std::optional<HdfsStatus> Status();

  // Nullopt: the node is not one of HDFS's. NOT_FOUND: it is dead, and its blocks are not
  // known.
  absl::StatusOr<std::optional<NodeLoss>> LossOfNode(const std::string& node,
                                                     const std::set<std::string>& running);

 private:
  struct Live {
    std::vector<std::shared_ptr<const NodeBlocks>> blocks;
    double oldest_seconds = 0;
    uint64_t unreported = 0;  // nodes
  };
  struct Reported {
    NodeView node;
    std::shared_ptr<const NodeBlocks> blocks;
  };
  // Whether it has told of its blocks since it registered.
  bool Reports(const NodeView& node) const;
  // What each node has. Of a node that has registered anew and not reported since nobody knows: it
  // may have been away for long, and what its disks have may be older than what it had.
  std::vector<Reported> AllReported();
  // Whether the DataNode of a dead helper has another helper now, whose report counts.
  bool HasMoved(const NodeView& node);
  Live LiveBlocks();
  void AddSources(StripeFacts* facts);
  std::vector<std::string> RenewedOf(const BlockReport& report) const;

  NodeRegistry* const nodes_;
  CorruptBlocks* const corrupt_;
  NameNodeGroups* const namenode_;
  const bool whole_;
  const Clock* const clock_;
  const TimePoint started_;
  ReportedBlocks reported_;

  Mutex mutex_;
  GroupHealth health_ ABSL_GUARDED_BY(mutex_);
  TimePoint health_as_of_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace ecpipe
