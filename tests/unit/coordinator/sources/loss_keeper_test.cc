// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/loss_keeper.h"

#include <gtest/gtest.h>

#include <optional>

#include "unit/coordinator/fakes.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::loss_keeper_test {
namespace {

const std::string kPool = "BP-1-127.0.0.1-17";

// A coordinator with one DataNode, n1, that may end and start again.
class LossKeeperTest : public testing::Test {
 protected:
  struct Coordinator {
    Coordinator(const std::string& path, const FakeClock* clock, Duration dead_after)
        : nodes(clock, dead_after, {}, ""),
          store(SqliteLosses::Open(path).value()),
          keeper(store.get(), &nodes, &reported, clock) {
      keeper.Restore();
    }

    NodeRegistry nodes;
    ReportedBlocks reported;
    std::unique_ptr<SqliteLosses> store;
    LossKeeper keeper;
  };

  void SetUp() override {
    clock_.Advance(std::chrono::hours(1000));
    Restart();
  }
  void Restart(Duration dead_after = std::chrono::seconds(5)) {
    now_.reset();
    now_.emplace(directory_.File("losses.db"), &clock_, dead_after);
  }
  void Register(uint64_t incarnation) {
    NodeRecord record = FakeNode("n1");
    record.storage_id = "uuid-1";
    record.incarnation = incarnation;
    ASSERT_TRUE(now_->nodes.Register(record).ok());
  }
  void Report(uint64_t incarnation, std::vector<int64_t> ids) {
    BlockReport report{"n1", incarnation, 1, 0, {}};
    for (const int64_t id : ids) report.pools[kPool].added.push_back({{id, 1001, 7}, 0});
    const auto outcome = now_->reported.Record(std::move(report), clock_.Now());
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ASSERT_EQ(*outcome, ReportedBlocks::Outcome::kTaken);
  }
  void Die() {
    clock_.Advance(std::chrono::seconds(6));
    now_->keeper.Look();
  }
  // Nullopt: nothing is known of the node.
  std::optional<size_t> Had() {
    const auto blocks = now_->reported.Of("n1");
    if (blocks == nullptr) return std::nullopt;
    return blocks->block_count;
  }

  ScratchDirectory directory_;
  FakeClock clock_;
  std::optional<Coordinator> now_;
};

TEST_F(LossKeeperTest, ADeadNodesBlocksAreKnownAfterARestart) {
  Register(8);
  Report(8, {-16, -32});
  now_->keeper.Look();
  Restart();
  EXPECT_EQ(Had(), std::nullopt) << "it was live, and will tell itself";
  Register(8);
  Report(8, {-16, -32});
  Die();
  clock_.Advance(std::chrono::seconds(60));
  Restart();
  EXPECT_EQ(Had(), 2u);
  const auto node = now_->nodes.Find("n1");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->state, NodeState::kDead);
  EXPECT_EQ(node->record.storage_id, "uuid-1");
  EXPECT_NEAR(node->seconds_since_heartbeat, 66, 0.01);
  Restart(std::chrono::hours(1));
  EXPECT_EQ(now_->nodes.Find("n1")->state, NodeState::kDead) << "whatever nodes are given now";
}

TEST_F(LossKeeperTest, WhatAnOperatorHasForgottenStaysForgotten) {
  Register(8);
  Report(8, {-16, -32});
  Die();
  now_->nodes.Forget("n1");
  EXPECT_EQ(Had(), 2u);
  now_->keeper.Look();
  EXPECT_EQ(Had(), std::nullopt) << "it counts to no limit any more";
  EXPECT_TRUE(now_->store->Nodes()->empty());
  Restart();
  EXPECT_FALSE(now_->nodes.Find("n1"));
  // One that lives registers again, and is asked for all that it has.
  Register(9);
  BlockReport next{"n1", 9, 4, 3, {}};
  EXPECT_EQ(*now_->reported.Record(next, clock_.Now()), ReportedBlocks::Outcome::kSendAll);
  Report(9, {-16});
  now_->keeper.Look();
  EXPECT_EQ(Had(), 1u);
}

TEST_F(LossKeeperTest, WhatADeadNodeHadIsKeptForAWeek) {
  Register(8);
  Report(8, {-16, -32});
  Die();
  clock_.Advance(LossKeeper::kKeptFor - std::chrono::seconds(6));
  now_->keeper.Look();
  EXPECT_EQ(Had(), 2u);
  clock_.Advance(std::chrono::seconds(1));
  now_->keeper.Look();
  EXPECT_EQ(Had(), std::nullopt);
  EXPECT_TRUE(now_->store->Nodes()->empty());
}

TEST_F(LossKeeperTest, ANodeThatReportsAgainHasLostNothing) {
  Register(8);
  Report(8, {-16, -32});
  Die();
  Register(9);
  now_->keeper.Look();
  Restart();
  EXPECT_EQ(Had(), 2u) << "what is on its disks it had not told yet";
  Register(10);
  Report(10, {-16});
  now_->keeper.Look();
  Restart();
  EXPECT_EQ(Had(), std::nullopt);
  Register(10);
  Report(10, {-16});
  Die();
  Restart();
  EXPECT_EQ(Had(), 1u) << "it has died once more, of what it had last";
}

TEST_F(LossKeeperTest, NodesThatWereCutOffComeBackWithoutRegistering) {
  Register(8);
  Report(8, {-16});
  Die();
  ASSERT_TRUE(now_->nodes.Heartbeat("n1", 8, {}).ok());
  now_->keeper.Look();
  Restart();
  EXPECT_EQ(Had(), std::nullopt);
  EXPECT_FALSE(now_->nodes.HasRegistered("n1"));
}

TEST_F(LossKeeperTest, WhatItHadLastReplacesWhatItHadBefore) {
  Register(8);
  Report(8, {-16});
  Die();
  // Back, and dead again, between two looks.
  Register(9);
  Report(9, {-16, -32});
  Die();
  Restart();
  EXPECT_EQ(Had(), 2u);
  EXPECT_FALSE(now_->nodes.HasRegistered("n1"));
  Register(10);
  EXPECT_TRUE(now_->nodes.HasRegistered("n1"));
}

TEST_F(LossKeeperTest, OldLossesAreForgotten) {
  Register(8);
  Report(8, {-16});
  Die();
  clock_.Advance(LossKeeper::kKeptFor);
  Restart();
  EXPECT_EQ(Had(), std::nullopt);
}

}  // namespace
}  // namespace ecpipe::loss_keeper_test
