// SPDX-License-Identifier: Apache-2.0
// Repairs whose blocks helpers store, of which nothing comes, or little.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "coordinator/repairs/hosted_watch.h"
#include "model/fault.h"
#include "unit/coordinator/repairs/hosted_fixture.h"

namespace ecpipe::hosted_progress_test {
namespace {

// A repair whose host waits for bytes. Helpers answer as they would: when the attempt is to end,
// the host has half of the block.
class HostedProgress : public HostedRepairs {
 protected:
  void SetUp() override {
    HostedRepairs::SetUp();
    helpers_.on_end = [this] {
      PartProgress ended;
      ended.ended = absl::CancelledError("ended");
      ended.missing = {{5, 5, 1}};
      helpers_.answers["spare"] = ended;
    };
  }
  // That no recovery has ordered.
  RepairId BeginAlone() {
    RepairRequest request = Request("b0");
    request.hosts = {"spare"};
    const auto grant = coordinator_.BeginRepair(request);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return grant.ok() ? grant->repair_id : 0;
  }
  // What every node of the attempt that runs says of its part.
  void Watch() {
    for (const auto& handout : helpers_.last) {
      PartProgress& part = helpers_.answers[handout.helper.node];
      part = {.running = true, .ended = {}, .hops = {HopProgress{}}};
      const HopSpec& hop = handout.part.hops[0];
      for (const HopInput& input : hop.inputs) {
        part.hops[0].inputs.push_back({.node = input.node, .waiting = true});
      }
      for (const HopOutput& output : hop.outputs) {
        part.hops[0].outputs.push_back({.node = output.node});
      }
      if (hop.inputs.empty()) first_ = handout.helper.node;
      if (!handout.part.stores.empty()) part.missing_bytes = 1000;
    }
  }
  // Bytes pass on all streams, which the network held up for so long.
  void Pass(uint64_t bytes, double network_seconds = 0) {
    for (auto& [node, part] : helpers_.answers) {
      for (HopProgress& hop : part.hops) {
        for (StreamProgress& input : hop.inputs) input.bytes += bytes;
        for (StreamProgress& output : hop.outputs) {
          output.bytes += bytes;
          output.network_seconds += network_seconds;
        }
      }
    }
  }
  // True if it was time to.
  bool Check(Duration later = RepairTracker::kCheckHostsEvery) {
    clock_.Advance(later);
    const std::vector<RepairId> due = coordinator_.HostedToCheck();
    for (const RepairId id : due) coordinator_.CheckHostedProgress(id);
    return !due.empty();
  }
  std::set<std::string> AtWork() const {
    std::set<std::string> nodes;
    for (const auto& handout : helpers_.last) nodes.insert(handout.helper.node);
    return nodes;
  }
  uint32_t AttemptOf(RepairId id) { return coordinator_.Find(id)->attempt; }

  std::string first_;  // of the path
};

TEST_F(HostedProgress, WhoDoesNotAnswerIsLeftOutOnceNothingComes) {
  const RepairId id = Begin();
  Watch();
  helpers_.down = {"n3"};
  for (int i = 0; i < 4; ++i) {
    Pass(100);
    EXPECT_TRUE(Check());
    EXPECT_EQ(AttemptOf(id), 0u) << "bytes come";
  }
  EXPECT_EQ(coordinator_.ShowRunning(1).shown.at(0).heard_at, clock_.Now());
  EXPECT_TRUE(Check());
  EXPECT_EQ(AttemptOf(id), 1u);
  EXPECT_FALSE(AtWork().contains("n3"));
  EXPECT_EQ(helpers_.last[0].part.hops[0].slices.runs(), (std::vector<SliceRun>{{5, 5, 1}}));
  EXPECT_EQ(helpers_.ended, std::vector<uint32_t>{0});
  coordinator_.ReportPart("spare", id, 1, absl::OkStatus());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok()) << ends_[0].status;
}

TEST_F(HostedProgress, AHostThatDoesNotWaitHasItsOwnReasons) {
  const RepairId id = Begin();
  Watch();
  helpers_.down = {"n3"};
  helpers_.answers["spare"].hops[0].inputs[0].waiting = false;
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Check());
  EXPECT_EQ(AttemptOf(id), 0u);
}

TEST_F(HostedProgress, ALinkThatPassesNothingIsLeftOut) {
  const RepairId id = Begin();
  Watch();
  ASSERT_FALSE(first_.empty());
  helpers_.answers[first_].hops[0].outputs[0].waiting = true;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Check());
  EXPECT_EQ(AttemptOf(id), 0u) << "something may move";
  EXPECT_TRUE(Check());
  EXPECT_EQ(AttemptOf(id), 1u);
  EXPECT_FALSE(AtWork().contains(first_));
}

TEST_F(HostedProgress, WhatTheSocketsOfAHostsSenderTakeDoesNotMoveIt) {
  const RepairId id = Begin();
  Watch();
  helpers_.answers[first_].hops[0].outputs[0].waiting = true;
  const std::string& last = PartOf("spare").hops[0].inputs[0].node;
  ASSERT_NE(last, first_);
  for (int i = 0; i < 3; ++i) {
    helpers_.answers[last].hops[0].outputs[0].bytes += 100;
    EXPECT_TRUE(Check());
  }
  EXPECT_EQ(AttemptOf(id), 1u);
}

TEST_F(HostedProgress, AStragglerIsLeftOutUnlessOtherRepairsMayBeInItsWay) {
  for (const bool recovery : {true, false}) {
    const RepairId id = recovery ? Begin() : BeginAlone();
    Watch();
    helpers_.asked.clear();
    Pass(10 << 20, 0.09);
    helpers_.answers["spare"].missing_bytes = 900;
    EXPECT_TRUE(Check(std::chrono::seconds(1)));
    Pass(1 << 20, 0.01);
    helpers_.answers[first_].hops[0].outputs[0].network_seconds += 0.89;
    helpers_.answers["spare"].missing_bytes = 890;
    EXPECT_TRUE(Check(std::chrono::seconds(1)));
    if (recovery) {
      EXPECT_EQ(AttemptOf(id), 0u);
      EXPECT_EQ(helpers_.asked, std::set<std::string>{"spare"});
      coordinator_.CancelHosted(7);
    } else {
      EXPECT_EQ(AttemptOf(id), 1u);
      EXPECT_FALSE(AtWork().contains(first_));
    }
  }
}

TEST_F(HostedProgress, AHostThatCannotEndItsPartIsLeftInPeace) {
  RepairRequest request = Request("b0");
  request.block_ids = {"b0", "b3"};
  request.hosts = {"n0", "spare"};
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  Watch();
  const PartProgress told = helpers_.answers.at("n0");
  helpers_.answers["n0"].hops.clear();
  helpers_.down = {"n2"};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Check());
  EXPECT_TRUE(ends_.empty()) << "it may be about to store its block";
  helpers_.answers["n0"] = told;
  helpers_.on_end = [this] {
    PartProgress ended;
    ended.ended = absl::CancelledError("ended");
    ended.missing = {{5, 5, 1}};
    for (const char* host : {"n0", "spare"}) helpers_.answers[host] = ended;
  };
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Check());
  EXPECT_EQ(ends_.size(), 2u) << "there are no four others";
}

TEST_F(HostedProgress, TheirPatienceGrowsWithTheAttempts) {
  const RepairId id = Begin();
  for (uint32_t attempt = 0; attempt < 10; ++attempt) {
    ASSERT_EQ(AttemptOf(id), attempt);
    for (const char* node : {"n0", "n1", "n2", "n3", "n4", "n5", "spare"}) {
      ASSERT_TRUE(coordinator_.nodes().Heartbeat(node, 1, {}).ok());
    }
    for (uint32_t i = 0; i < attempt / 4; ++i) EXPECT_FALSE(Check());
    EXPECT_EQ(Check(), attempt < 8) << "the last ones are left to the patience of their parts";
    const absl::Status nobody = WithFault(absl::UnavailableError("lost"), kFaultUnknown);
    coordinator_.ReportPart("spare", id, attempt, nobody);
  }
}

TEST_F(HostedProgress, AThreadOfItsOwnChecks) {
  RepairCoordinator::Options options;
  options.dead_after = std::chrono::minutes(1);
  HostedWatch watch;
  RepairCoordinator coordinator(&catalog_, &journal_, &helpers_, &Clock::System(), options, &watch);
  for (const char* node : {"n0", "n1", "n2", "n3", "n4", "n5", "spare"}) {
    ASSERT_TRUE(coordinator.Register(FakeNode(node)).ok());
  }
  RepairRequest request = Request("b0");
  request.hosts = {"spare"};
  const auto grant = coordinator.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  Watch();
  ASSERT_TRUE(AtWork().contains("n3"));
  helpers_.down = {"n3"};
  watch.Start(&coordinator);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto attempt = [&] { return coordinator.Find(grant->repair_id)->attempt; };
  while (attempt() == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(attempt(), 1u);
  watch.Stop();
}

}  // namespace
}  // namespace ecpipe::hosted_progress_test
