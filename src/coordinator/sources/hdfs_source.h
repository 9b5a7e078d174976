// SPDX-License-Identifier: Apache-2.0
// What the coordinator knows of HDFS blocks by itself: from the reports of helpers where they are,
// and from the NameNode what groups they form.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/sources/group_survey.h"
#include "coordinator/sources/namenode_groups.h"
#include "coordinator/sources/namenode_lives.h"
#include "coordinator/sources/reported_blocks.h"
#include "coordinator/sources/stripe_source.h"
#include "model/node_loss.h"
#include "model/systems/hdfs_group.h"

namespace ecpipe {

struct HdfsStatus {
  KnownGroups groups;
  uint64_t nodes = 0;   // DataNodes that have reported their blocks
  uint64_t blocks = 0;  // blocks that these DataNodes report
  GroupHealth health;
  std::string safe_mode;   // what the NameNode says of it; empty: it is not in safe mode
  std::string last_error;  // of the latest questions to the NameNode; empty: all were answered
};

// Whether a DataNode is dead. The NameNode decides, which is what HDFS goes by; where it does not
// say, the heartbeats of the helper beside the DataNode do.
struct DataNodeState {
  bool dead = false;
  double silent_seconds = 0;            // since its last sign of life
  std::optional<DataNodeLife> in_hdfs;  // as of now; nullopt: the NameNode does not say
};

// "live" or "dead"; empty: the NameNode does not say.
std::string StateInHdfs(const DataNodeState& state);

// Thread-safe.
class HdfsSource : public StripeSource {
 public:
  // If a group is not in the NameNode's answer, and the answer is older than this, the NameNode is
  // asked again.
  static constexpr Duration kFreshEnough = std::chrono::seconds(5);
  // How long the caller waits for that: less than a requestor waits for its answer.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // A DataNode speaks to the NameNode every few seconds. If it has spoken so much later than the
  // helper beside it, it is the helper that has ended, and not the machine of both.
  static constexpr Duration kOutlived = std::chrono::seconds(10);

  // `namenode` and `lives` are null if none is configured. `whole`: the groups cover all of HDFS.
  // All pointers outlive the source.
  HdfsSource(NodeRegistry* nodes, CorruptBlocks* corrupt, NameNodeGroups* namenode, bool whole,
             const Clock* clock, NameNodeLives* lives = nullptr,
             const ReportedBlocks::Limits& limits = {})
      : nodes_(nodes),
        corrupt_(corrupt),
        namenode_(namenode),
        lives_(lives),
        whole_(whole),
        clock_(clock),
        started_(clock->Now()),
        reported_(limits) {}

  ReportedBlocks* reported() { return &reported_; }

  std::string system() const override { return "hdfs"; }
  std::optional<std::string> BlockNamed(const std::string& text) const override;
  // A DataNode's UUID has no dot. Ids of other systems begin with the system's name and a dot.
  bool HasNode(const std::string& storage_id) const override {
    return !storage_id.empty() && storage_id.find('.') == std::string::npos;
  }
  // A request that says anything of a block of HDFS says all, so there is no claim to check.
  absl::StatusOr<StripeFacts> FactsOf(const std::string& block_id,
                                      const std::string& claim) override;
  std::optional<SourceStatus> Overview() override;
  SystemNode NodeOf(const NodeView& node) override;
  absl::StatusOr<NodeLoss> LossOf(const NodeView& node,
                                  const std::set<std::string>& running) override;
  SourceFacts FactsFrom(const KnownGroups& groups, const std::string& safe_mode) const;

  // Takes the report of a node. Corrupt blocks that the node no longer has, or has written anew, no
  // longer count as corrupt.
  absl::StatusOr<ReportedBlocks::Outcome> Record(BlockReport report) override;

  // The group of a block, which is named as in model/systems/hdfs_block.h, with all nodes that
  // report a block of it with the group's generation stamp and the right length. May wait for the
  // NameNode. NOT_FOUND: the NameNode does not know the group. UNAVAILABLE: the NameNode has not
  // answered. FAILED_PRECONDITION: ECPipe cannot repair the group, or the group has another
  // generation stamp.
  absl::StatusOr<HdfsGroup> GroupOf(const std::string& block_id);

  // Nullopt: the coordinator knows of no HDFS. The health of groups is up to some seconds old.
  std::optional<HdfsStatus> Status();

  // Whether the node has reported its blocks since it registered.
  bool Reports(const NodeView& node) const;
  // Of a node with a storage_id.
  DataNodeState StateOf(const NodeView& node);

  // Nullopt: the node is not a DataNode. NOT_FOUND: it is dead, and its blocks are not known.
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
  static DataNodeState StateIn(const KnownLives& lives, const NodeView& node);
  KnownLives Lives();
  // The blocks of each node. Nodes that have registered anew and not reported since are left out:
  // they may have been away for long, with other blocks on their disks than they last reported.
  std::vector<Reported> AllReported();
  // Whether the DataNode of a dead helper now has another helper, whose report counts.
  bool HasMoved(const NodeView& node);
  Live LiveBlocks();
  void AddSources(HdfsGroup* group);

  NodeRegistry* const nodes_;
  CorruptBlocks* const corrupt_;
  NameNodeGroups* const namenode_;
  NameNodeLives* const lives_;
  const bool whole_;
  const Clock* const clock_;
  const TimePoint started_;
  ReportedBlocks reported_;

  Mutex mutex_;
  GroupHealth health_ ABSL_GUARDED_BY(mutex_);
  TimePoint health_as_of_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace ecpipe
