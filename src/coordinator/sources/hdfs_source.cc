// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/hdfs_source.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "coordinator/sources/record_report.h"
#include "model/systems/hdfs_block.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

// Counting takes some milliseconds a million blocks.
constexpr Duration kHealthAge = std::chrono::seconds(3);
// While something is outstanding the NameNode is asked so often: files may have been deleted.
constexpr Duration kLossFactsAge = std::chrono::seconds(60);
// Helpers register within that after a start: they try every second.
constexpr Duration kGathering = std::chrono::seconds(5);

// "as of 12 s ago", and what went wrong since.
std::string AgeText(const KnownGroups& groups) {
  std::string text = absl::StrFormat("as of %.0f s ago", groups.age_seconds);
  if (!groups.last_error.empty()) {
    text += "; asking the NameNode again failed: " + groups.last_error;
  }
  return text;
}

}  // namespace

absl::StatusOr<ReportedBlocks::Outcome> HdfsSource::Record(BlockReport report) {
  return RecordReport(std::move(report), {nodes_, corrupt_, &reported_}, *clock_,
                      [](const std::string& block_id) -> std::optional<ReportedName> {
                        const absl::StatusOr<HdfsBlock> block = ParseHdfsBlock(block_id);
                        if (!block.ok()) return std::nullopt;
                        return ReportedName{block->pool, block->id, block->stamp};
                      });
}

bool HdfsSource::Reports(const NodeView& node) const {
  const std::shared_ptr<const NodeBlocks> blocks = reported_.Of(node.record.node_id);
  return blocks != nullptr && blocks->incarnation == node.record.incarnation;
}

std::vector<HdfsSource::Reported> HdfsSource::AllReported() {
  std::vector<Reported> all;
  for (auto& [name, blocks] : reported_.All()) {
    std::optional<NodeView> node = nodes_->Find(name);
    if (!node || node->record.incarnation != blocks->incarnation) continue;
    all.push_back({*std::move(node), blocks});
  }
  return all;
}

bool HdfsSource::HasMoved(const NodeView& node) {
  if (node.state != NodeState::kDead) return false;
  const std::vector<std::string> helpers = nodes_->WithStorage(node.record.storage_id);
  return std::any_of(helpers.begin(), helpers.end(), [&](const std::string& helper) {
    const std::optional<NodeView> other = nodes_->Find(helper);
    return other && other->state != NodeState::kDead;
  });
}

void HdfsSource::AddSources(HdfsGroup* group) {
  for (const auto& [node, blocks] : AllReported()) {
    if (!HasNode(node.record.storage_id) || HasMoved(node)) continue;
    for (int i = 0; i < group->blocks(); ++i) {
      const InternalBlock* const block = FindBlockIn(*blocks, group->pool, group->group + i);
      const bool fits = block != nullptr && block->stamp == group->stamp && block->bytes > 0 &&
                        block->bytes == group->BlockBytes(i);
      if (fits && group->sources.size() < HdfsGroup::kMaxSources) {
        group->sources.push_back({i, node.record.storage_id});
      }
    }
  }
}

std::optional<std::string> HdfsSource::BlockNamed(const std::string& text) const {
  const std::string name = CanonicalBlockId(text);
  return ParseHdfsBlock(name).ok() ? std::optional(name) : std::nullopt;
}

absl::StatusOr<StripeFacts> HdfsSource::FactsOf(const std::string& block_id,
                                                const std::string& claim) {
  if (!claim.empty()) {
    return absl::InvalidArgumentError("a request for blocks of HDFS brings the block group itself");
  }
  ECPIPE_ASSIGN_OR_RETURN(const HdfsGroup group, GroupOf(block_id));
  return group.Facts();
}

absl::StatusOr<HdfsGroup> HdfsSource::GroupOf(const std::string& block_id) {
  ECPIPE_ASSIGN_OR_RETURN(const HdfsBlock block, ParseHdfsBlock(block_id));
  const std::string what = "block " + block_id;
  if (namenode_ == nullptr) {
    return absl::NotFoundError(what + " is in no stripe of the catalog, and no NameNode is " +
                               "configured; to find blocks of HDFS set [hdfs] namenodes");
  }
  const int64_t group_id = GroupOfBlock(block.id);
  KnownGroups groups = namenode_->Get();
  const auto find = [&] {
    return groups.table == nullptr ? nullptr : groups.table->Find(block.pool, group_id);
  };
  const BlockGroup* group = find();
  if (group == nullptr || group->stamp != block.stamp) {
    groups = namenode_->GetSince(clock_->Now() - kFreshEnough, kPatience);
    group = find();
  }
  if (groups.table == nullptr) {
    const std::string why = groups.last_error.empty() ? "" : ": " + groups.last_error;
    return absl::UnavailableError(what + ": the NameNode has not listed its block groups yet" +
                                  why);
  }
  if (group == nullptr) {
    return absl::NotFoundError(what + ": the NameNode does not know its block group, " +
                               AgeText(groups));
  }
  if (group->stamp != block.stamp) {
    return absl::FailedPreconditionError(what + ": its block group has generation stamp " +
                                         std::to_string(group->stamp) + ", " + AgeText(groups));
  }
  ECPIPE_ASSIGN_OR_RETURN(HdfsGroup known, groups.table->GroupOf(*group));
  AddSources(&known);
  return known;
}

KnownLives HdfsSource::Lives() { return lives_ == nullptr ? KnownLives() : lives_->Get(); }
std::string StateInHdfs(const DataNodeState& state) {
  if (!state.in_hdfs) return "";
  return NodeStateName(state.in_hdfs->dead ? NodeState::kDead : NodeState::kLive);
}

DataNodeState HdfsSource::StateOf(const NodeView& node) { return StateIn(Lives(), node); }

DataNodeState HdfsSource::StateIn(const KnownLives& lives, const NodeView& node) {
  DataNodeState state{node.state == NodeState::kDead, node.seconds_since_heartbeat, std::nullopt};
  const DataNodeLives* const counting = CountingLives(lives);
  const absl::StatusOr<HostPort> control = ParseHostPort(node.record.control_address);
  if (counting == nullptr || !control.ok()) return state;
  state.in_hdfs = counting->Of(node.record.storage_id, control->host);
  if (!state.in_hdfs) return state;
  state.in_hdfs->silent_seconds += lives.age_seconds;
  const double silent = state.in_hdfs->silent_seconds;
  if (state.in_hdfs->dead) {
    state.dead = true;
    state.silent_seconds = silent;
  } else if (state.dead && node.seconds_since_heartbeat - silent > Seconds(kOutlived)) {
    state.dead = false;
    state.silent_seconds = silent;
  }
  return state;
}

HdfsSource::Live HdfsSource::LiveBlocks() {
  Live live;
  const TimePoint now = clock_->Now();
  const KnownLives lives = Lives();
  for (const auto& [node, blocks] : AllReported()) {
    if (StateIn(lives, node).dead) continue;
    live.blocks.push_back(blocks);
    live.oldest_seconds = std::max(live.oldest_seconds, Seconds(now - blocks->reported));
  }
  for (const NodeView& node : nodes_->All()) {
    if (!HasNode(node.record.storage_id) || node.state == NodeState::kDead || Reports(node))
      continue;
    if (!StateIn(lives, node).dead) ++live.unreported;
  }
  return live;
}

std::optional<HdfsStatus> HdfsSource::Status() {
  HdfsStatus status;
  const Live live = LiveBlocks();
  if (live.blocks.empty() && namenode_ == nullptr) return std::nullopt;
  status.nodes = live.blocks.size();
  for (const auto& blocks : live.blocks) status.blocks += blocks->block_count;
  if (namenode_ == nullptr) return status;
  const KnownLives lives = Lives();
  status.safe_mode = SafeModeIn(lives);
  status.groups = namenode_->Get();
  status.last_error = status.groups.last_error;
  if (!lives.last_error.empty()) {
    status.last_error +=
        (status.last_error.empty() ? "" : "; ") + std::string("of DataNodes: ") + lives.last_error;
  }
  if (status.groups.table == nullptr) return status;
  const TimePoint now = clock_->Now();
  {
    MutexLock lock(&mutex_);
    status.health = health_;
    if (health_as_of_ != TimePoint() && now - health_as_of_ < kHealthAge) return status;
  }
  status.health = HealthOf(*status.groups.table, live.blocks);
  MutexLock lock(&mutex_);
  health_ = status.health;
  health_as_of_ = now;
  return status;
}

SourceFacts HdfsSource::FactsFrom(const KnownGroups& groups, const std::string& safe_mode) const {
  SourceFacts facts;
  facts.configured = namenode_ != nullptr;
  if (groups.table != nullptr) {
    facts.age_seconds = groups.age_seconds;
    facts.groups = groups.table->size();
  }
  facts.last_error = groups.last_error;
  facts.safe_mode = safe_mode;
  return facts;
}

absl::StatusOr<std::optional<NodeLoss>> HdfsSource::LossOfNode(
    const std::string& node, const std::set<std::string>& running) {
  const std::optional<NodeView> view = nodes_->Find(node);
  const std::shared_ptr<const NodeBlocks> had = reported_.Of(node);
  if (!view || !HasNode(view->record.storage_id)) return std::nullopt;
  NodeLoss loss;
  loss.node = node;
  loss.system = system();
  loss.helper_state = NodeStateName(view->state);
  loss.helper_silent_seconds = view->seconds_since_heartbeat;
  const TimePoint now = clock_->Now();
  std::string safe_mode;
  if (lives_ != nullptr) {
    // For somebody who looks again and again: the answer that is on its way serves the next time.
    safe_mode = SafeModeIn(lives_->GetSince(Clock::System().Now() - kFreshEnough, Duration(0)));
  }
  const DataNodeState state = StateOf(*view);
  loss.state = NodeStateName(state.dead                        ? NodeState::kDead
                             : view->state == NodeState::kDead ? NodeState::kLive
                                                               : view->state);
  loss.silent_seconds = state.silent_seconds;
  loss.state_in_system = StateInHdfs(state);
  const KnownGroups groups = namenode_ == nullptr ? KnownGroups() : namenode_->Get();
  loss.facts = FactsFrom(groups, safe_mode);
  const Live live = LiveBlocks();
  loss.report_age_seconds = live.oldest_seconds;
  loss.unreported_nodes = live.unreported;
  if (!state.dead) return loss;
  if (had == nullptr) {
    return absl::NotFoundError(
        "node " + node + " is dead and never reported its blocks to this coordinator, so what it " +
        "had is not known here; run HDFS's own fsck");
  }
  const TimePoint lost_at = now - FromSeconds(state.silent_seconds);
  GroupKnowledge known;
  known.table = groups.table.get();
  known.complete = known.table != nullptr && whole_ && groups.as_of > lost_at;
  loss.loss = ecpipe::LossOf(*had, live.blocks, known, running);
  if (live.unreported > 0 || now - started_ < kGathering) loss.loss.beyond_repair = 0;
  const bool stale = namenode_ != nullptr && (known.table == nullptr || !known.complete ||
                                              now - groups.as_of > kLossFactsAge);
  // For the next time that somebody looks.
  if (loss.loss.outstanding.blocks > 0 && stale) {
    namenode_->GetSince(std::max(lost_at, now - kFreshEnough), Duration(0));
  }
  return loss;
}

std::optional<SourceStatus> HdfsSource::Overview() {
  const std::optional<HdfsStatus> status = Status();
  if (!status) return std::nullopt;
  SourceStatus overview{FactsFrom(status->groups, status->safe_mode), status->nodes, status->blocks,
                        std::nullopt, std::nullopt};
  if (status->groups.table) {
    overview.degraded = status->health.degraded;
    overview.lost = status->health.lost;
  }
  overview.facts.last_error = status->last_error;
  return overview;
}

SystemNode HdfsSource::NodeOf(const NodeView& node) {
  const DataNodeState state = StateOf(node);
  return {Reports(node), StateInHdfs(state), state.in_hdfs ? state.in_hdfs->silent_seconds : 0};
}

absl::StatusOr<NodeLoss> HdfsSource::LossOf(const NodeView& node,
                                            const std::set<std::string>& running) {
  ECPIPE_ASSIGN_OR_RETURN(std::optional<NodeLoss> loss, LossOfNode(node.record.node_id, running));
  if (!loss) return absl::NotFoundError("node " + node.record.node_id + " is no DataNode");
  return *std::move(loss);
}

}  // namespace ecpipe
