// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/hdfs_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "model/systems/hdfs_block.h"
#include "unit/coordinator/fakes.h"

namespace ecpipe::hdfs_source_test {
namespace {

using ::testing::HasSubstr;

const std::string kPool = "BP-1-127.0.0.1-17";
constexpr int64_t kGroup = INT64_MIN + 16;
constexpr uint64_t kStamp = 1001;
constexpr uint64_t kBlockBytes = 2 * 1024 * 1024;

std::string NameOf(int index, uint64_t stamp = kStamp) {
  return HdfsBlock{kPool, kGroup + index, stamp}.Name();
}

// Five DataNodes over a NameNode that knows one RS-3-2 group, until a test says otherwise.
class HdfsSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    clock_.Advance(Clock::System().Now() - TimePoint());
    for (int i = 0; i < 5; ++i) Register(i);
  }

  static std::string NodeName(int i) { return "n" + std::to_string(i); }
  void Register(int i, uint64_t incarnation = 1) {
    NodeRecord node = FakeNode(NodeName(i));
    node.incarnation = incarnation;
    node.storage_id = "uuid-" + std::to_string(i);
    ASSERT_TRUE(nodes_.Register(node).ok());
  }
  absl::StatusOr<ReportedBlocks::Outcome> Report(const std::string& node, BlockChanges changes,
                                                 uint64_t after = 0) {
    return source_.Record({node, 1, after + 1, after, {{kPool, std::move(changes)}}});
  }
  void ReportIndex(int node, int index, uint64_t stamp = kStamp, uint64_t bytes = kBlockBytes) {
    const auto outcome = Report(NodeName(node), {{{{kGroup + index, stamp, bytes}, 0}}, {}});
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ASSERT_EQ(*outcome, ReportedBlocks::Outcome::kTaken);
  }
  absl::StatusOr<GroupTable> Fetch() {
    ++fetches_;
    if (!answers_) return absl::UnavailableError("the NameNode's fsck answer is incomplete");
    GroupTable table;
    if (known_) {
      EXPECT_TRUE(table.Add(kPool, kGroup, kStamp, 3 * kBlockBytes, "RS-3-2-1024k").ok());
    }
    table.Seal();
    return table;
  }
  void AwaitFetch() {
    while (fetches_ == 0 || (answers_ && namenode_.Get().table == nullptr)) {
      std::this_thread::yield();
    }
  }

  FakeClock clock_;
  NodeRegistry nodes_{&clock_, std::chrono::seconds(5), {}, ""};
  CorruptBlocks corrupt_;
  std::atomic<int> fetches_{0};
  std::atomic<bool> answers_{true};
  std::atomic<bool> known_{true};
  NameNodeGroups namenode_{"groups", [this](const std::function<bool()>&) { return Fetch(); },
                           std::chrono::hours(1)};
  HdfsSource source_{&nodes_, &corrupt_, &namenode_, true, &clock_};
};

TEST_F(HdfsSourceTest, FactsHaveAllWhoReportAFittingBlock) {
  AwaitFetch();
  ReportIndex(0, 0);
  ReportIndex(1, 1, kStamp - 1);
  ReportIndex(2, 2, kStamp, kBlockBytes - 1);
  ReportIndex(3, 3);
  ReportIndex(4, 4);
  const auto facts = source_.GroupOf(NameOf(1));
  ASSERT_TRUE(facts.ok()) << facts.status();
  const std::vector<StripeFacts::Source> sources = {{0, "uuid-0"}, {3, "uuid-3"}, {4, "uuid-4"}};
  EXPECT_EQ(facts->sources, sources) << "not the stale one, nor the one of another length";
  EXPECT_EQ(facts->bytes, 3 * kBlockBytes);
  EXPECT_TRUE(facts->Validate().ok());
  EXPECT_EQ(fetches_, 1);
}

TEST_F(HdfsSourceTest, WhatARestartedHelperHasIsUnknownUntilItReports) {
  AwaitFetch();
  for (int i = 0; i < 5; ++i) ReportIndex(i, i);
  Register(2, 2);
  const auto facts = source_.GroupOf(NameOf(1));
  ASSERT_TRUE(facts.ok()) << facts.status();
  const std::vector<StripeFacts::Source> sources = {
      {0, "uuid-0"}, {1, "uuid-1"}, {3, "uuid-3"}, {4, "uuid-4"}};
  EXPECT_EQ(facts->sources, sources);
  const auto status = source_.Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->blocks, 4u);
  EXPECT_EQ(status->health.degraded, 1u);
  const BlockChanges all = {{{{kGroup + 2, kStamp, kBlockBytes}, 0}}, {}};
  ASSERT_TRUE(source_.Record({"n2", 2, 1, 0, {{kPool, all}}}).ok());
  EXPECT_EQ(source_.GroupOf(NameOf(1))->sources.size(), 5u);
  EXPECT_EQ(source_.Status()->blocks, 5u);
}

TEST_F(HdfsSourceTest, TheReportOfAHelperThatADataNodeHadBeforeDoesNotCount) {
  AwaitFetch();
  for (int i = 0; i < 5; ++i) ReportIndex(i, i);
  clock_.Advance(std::chrono::seconds(6));
  for (int i = 1; i < 5; ++i) ASSERT_TRUE(nodes_.Heartbeat(NodeName(i), 1, {}).ok());
  EXPECT_EQ(source_.GroupOf(NameOf(1))->sources.size(), 5u) << "it is named, as dead";
  NodeRecord moved = FakeNode("n9");
  moved.storage_id = "uuid-0";
  ASSERT_TRUE(nodes_.Register(moved).ok());
  EXPECT_EQ(source_.GroupOf(NameOf(1))->sources.size(), 4u) << "n9 has not told of any block";
}

TEST_F(HdfsSourceTest, SaysWhatIsMissing) {
  AwaitFetch();
  const absl::Status stale = source_.GroupOf(NameOf(1, kStamp - 1)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(stale)) << stale;
  EXPECT_THAT(std::string(stale.message()), HasSubstr("its block group has generation stamp 1001"));
  const absl::Status unknown =
      source_.GroupOf(HdfsBlock{kPool, kGroup + 16, kStamp}.Name()).status();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("as of 0 s ago"));
  HdfsSource without(&nodes_, &corrupt_, nullptr, true, &clock_);
  const absl::Status none = without.GroupOf(NameOf(1)).status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("no NameNode is configured"));
  EXPECT_FALSE(without.Status());
}

TEST_F(HdfsSourceTest, AnAnswerThatFailsChangesNothing) {
  AwaitFetch();
  answers_ = false;
  const KnownGroups groups =
      namenode_.GetSince(Clock::System().Now() + std::chrono::hours(1), std::chrono::seconds(20));
  ASSERT_NE(groups.table, nullptr);
  EXPECT_EQ(groups.table->size(), 1u);
  EXPECT_THAT(groups.last_error, HasSubstr("is incomplete"));
  EXPECT_GE(fetches_, 2);
}

TEST_F(HdfsSourceTest, OnlyARegisteredHelperReports) {
  EXPECT_TRUE(absl::IsNotFound(Report("n9", {}).status()));
  EXPECT_TRUE(absl::IsNotFound(source_.Record({"n1", 2, 1, 0, {}}).status()));
}

TEST_F(HdfsSourceTest, ACorruptBlockThatWasReplacedOrRemovedIsForgotten) {
  ReportIndex(1, 1);
  const int64_t found = clock_.UnixMillis();
  corrupt_.Add({NameOf(1), "n1", "flipped", found});
  corrupt_.Add({NameOf(2), "n2", "flipped", found});
  const InternalBlock block{kGroup + 1, kStamp, kBlockBytes};
  clock_.Advance(std::chrono::seconds(60));
  ASSERT_TRUE(Report("n1", {{{block, 61'000}}, {}}, 1).ok());
  EXPECT_EQ(corrupt_.Reason(NameOf(1), "n1"), "flipped") << "its file is older than the finding";
  ASSERT_TRUE(Report("n1", {}, 2).ok());
  EXPECT_EQ(corrupt_.Reason(NameOf(1), "n1"), "flipped");
  ASSERT_TRUE(Report("n1", {{{block, 1'000}}, {}}, 3).ok());
  EXPECT_EQ(corrupt_.Reason(NameOf(1), "n1"), "") << "HDFS has written it anew";
  corrupt_.Add({NameOf(1), "n1", "again", clock_.UnixMillis()});
  ASSERT_TRUE(Report("n1", {{}, {block.id}}, 4).ok());
  EXPECT_EQ(corrupt_.Reason(NameOf(1), "n1"), "") << "HDFS has removed it";
  EXPECT_EQ(corrupt_.Reason(NameOf(2), "n2"), "flipped") << "of another node";
}

TEST_F(HdfsSourceTest, ADeadNodesLastReportIsWhatWasLost) {
  for (int i = 0; i < 4; ++i) ReportIndex(i, i);
  AwaitFetch();
  const auto live = source_.LossOfNode("n1", {});
  ASSERT_TRUE(live.ok() && *live) << live.status();
  EXPECT_EQ((*live)->helper_state, "live");
  EXPECT_EQ((*live)->loss.lost.blocks, 0u);
  clock_.Advance(std::chrono::seconds(10));
  for (const int i : {0, 2, 3}) Register(i);
  auto loss = source_.LossOfNode("n1", {NameOf(1)});
  ASSERT_TRUE(loss.ok() && *loss) << loss.status();
  EXPECT_EQ((*loss)->loss.lost.blocks, 1u);
  EXPECT_EQ((*loss)->loss.outstanding.blocks, 1u);
  EXPECT_EQ((*loss)->loss.by_missing[1], 1u) << "blocks 1 and 4 are missing";
  EXPECT_EQ((*loss)->loss.repairs_running, 1u);
  const auto silent = source_.LossOfNode("n4", {});
  EXPECT_TRUE(absl::IsNotFound(silent.status())) << "it has never told of its blocks";
  // A node that is back with a stale copy does not have the block; another one does.
  ASSERT_TRUE(Report("n0", {{{{kGroup + 1, kStamp - 1, kBlockBytes}, 0}}, {}}, 1).ok());
  loss = source_.LossOfNode("n1", {});
  EXPECT_EQ((*loss)->loss.rebuilt.blocks, 0u);
  ASSERT_TRUE(Report("n2", {{{{kGroup + 1, kStamp, kBlockBytes}, 0}}, {}}, 1).ok());
  loss = source_.LossOfNode("n1", {});
  EXPECT_EQ((*loss)->loss.rebuilt.blocks, 1u);
  EXPECT_EQ((*loss)->loss.outstanding.blocks, 0u);
}

TEST_F(HdfsSourceTest, NothingIsBeyondRepairWhileNodesHaveYetToReport) {
  AwaitFetch();
  for (int i = 0; i < 5; ++i) ReportIndex(i, i);
  clock_.Advance(std::chrono::seconds(10));
  for (const int i : {0, 3}) Register(i);
  auto loss = source_.LossOfNode("n1", {});
  ASSERT_TRUE(loss.ok() && *loss) << loss.status();
  EXPECT_EQ((*loss)->unreported_nodes, 0u);
  EXPECT_EQ((*loss)->loss.beyond_repair, 1u) << "blocks 1, 2 and 4 are missing";
  Register(2, 2);
  loss = source_.LossOfNode("n1", {});
  EXPECT_EQ((*loss)->unreported_nodes, 1u);
  EXPECT_EQ((*loss)->loss.beyond_repair, 0u);
}

TEST_F(HdfsSourceTest, StatusCountsGroupsAndBlocks) {
  AwaitFetch();
  for (int i = 0; i < 4; ++i) ReportIndex(i, i);
  const auto status = source_.Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->nodes, 4u);
  EXPECT_EQ(status->blocks, 4u);
  EXPECT_EQ(status->groups.table->size(), 1u);
  EXPECT_EQ(status->health.degraded, 1u);
  EXPECT_EQ(status->health.lost, 0u);
}

TEST_F(HdfsSourceTest, ANodeThatIsNoDataNodeIsNotShown) {
  ASSERT_TRUE(nodes_.Register(FakeNode("plain")).ok());
  for (const char* node : {"plain", "unknown"}) {
    const auto loss = source_.LossOfNode(node, {});
    ASSERT_TRUE(loss.ok());
    EXPECT_FALSE(loss->has_value());
  }
}

// With a NameNode that tells of DataNodes.
class HdfsLivesTest : public HdfsSourceTest {
 protected:
  // What the NameNode says of n1, which has reported block 1.
  void Tell(const std::string& live, const std::string& dead, const std::string& safe_mode = "") {
    answer_ = R"({"beans":[{"name":"Hadoop:service=NameNode,name=NameNodeInfo","Safemode":")" +
              safe_mode + R"(","LiveNodes":"{)" + live + R"(}","DeadNodes":"{)" + dead + R"(}"}]})";
    lives_.emplace(
        "DataNodes", [this](const std::function<bool()>&) { return DataNodeLives::Parse(answer_); },
        std::chrono::hours(1));
    source_with_lives_.emplace(&nodes_, &corrupt_, &namenode_, true, &clock_, &*lives_);
    while (lives_->Get().table == nullptr) std::this_thread::yield();
    for (int i = 0; i < 5; ++i) {
      const BlockChanges has = {{{{kGroup + i, kStamp, kBlockBytes}, 0}}, {}};
      ASSERT_TRUE(source_with_lives_->Record({NodeName(i), 1, 1, 0, {{kPool, has}}}).ok());
    }
  }
  static std::string Node(const char* contact) {
    return R"(\"dn:1\":{\"uuid\":\"uuid-1\",\"lastContact\":)" + std::string(contact) + "}";
  }
  // All but n1 stay alive.
  void Pass(Duration time) {
    clock_.Advance(time);
    for (const int i : {0, 2, 3, 4}) ASSERT_TRUE(nodes_.Heartbeat(NodeName(i), 1, {}).ok());
  }
  NodeLoss Loss() { return *source_with_lives_->LossOfNode("n1", {}).value(); }

  std::string answer_;
  std::optional<NameNodeLives> lives_;
  std::optional<HdfsSource> source_with_lives_;
};

TEST_F(HdfsLivesTest, ADataNodeThatTheNameNodeHasLostIsDeadThoughItsHelperLives) {
  AwaitFetch();
  Tell("", Node("640"), "Safe mode is ON.");
  const NodeLoss loss = Loss();
  EXPECT_EQ(loss.helper_state, "live");
  EXPECT_EQ(loss.state, "dead");
  EXPECT_GE(loss.silent_seconds, 640);
  EXPECT_EQ(loss.facts.safe_mode, "Safe mode is ON.");
  EXPECT_EQ(loss.loss.outstanding.blocks, 1u) << "its own copy does not count as rebuilt";
  const auto status = source_with_lives_->Status();
  EXPECT_EQ(status->health.degraded, 1u);
  EXPECT_EQ(status->nodes, 4u);
  EXPECT_EQ(status->safe_mode, "Safe mode is ON.");
  // Its helper serves the bytes all the same.
  EXPECT_EQ(source_with_lives_->GroupOf(NameOf(0))->sources.size(), 5u);
}

TEST_F(HdfsSourceTest, StatusTellsThatTheNameNodeSaysNothingOfDataNodes) {
  AwaitFetch();
  NameNodeLives lives(
      "DataNodes",
      [](const std::function<bool()>&) -> absl::StatusOr<DataNodeLives> {
        return absl::UnavailableError("GET /jmx: 403 Forbidden");
      },
      std::chrono::hours(1));
  while (lives.Get().last_error.empty()) std::this_thread::yield();
  HdfsSource source(&nodes_, &corrupt_, &namenode_, true, &clock_, &lives);
  const auto status = source.Status();
  ASSERT_TRUE(status.has_value());
  EXPECT_THAT(status->last_error, HasSubstr("of DataNodes: UNAVAILABLE: GET /jmx: 403"));
  EXPECT_EQ(source_.Status()->last_error, "");
}

TEST_F(HdfsLivesTest, ADataNodeThatOutlivesItsHelperHasLostNothing) {
  AwaitFetch();
  Tell(Node("1"), "");
  Pass(std::chrono::seconds(8));
  EXPECT_EQ(Loss().state, "dead") << "it may be the machine of both";
  Pass(std::chrono::seconds(8));
  const NodeLoss loss = Loss();
  EXPECT_EQ(loss.helper_state, "dead");
  EXPECT_EQ(loss.state, "live");
  EXPECT_EQ(loss.loss.lost.blocks, 0u);
  EXPECT_EQ(source_with_lives_->Status()->health.degraded, 0u);
}

TEST_F(HdfsLivesTest, AMachineThatIsGoneIsDeadBeforeTheNameNodeSaysSo) {
  AwaitFetch();
  Tell(Node("100"), "");
  Pass(std::chrono::seconds(100));
  const NodeLoss loss = Loss();
  EXPECT_EQ(loss.state, "dead");
  EXPECT_EQ(loss.state_in_system, "live");
  EXPECT_EQ(loss.loss.outstanding.blocks, 1u);
}

}  // namespace
}  // namespace ecpipe::hdfs_source_test
