// SPDX-License-Identifier: Apache-2.0
// Repairs whose blocks helpers store.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/fault.h"
#include "unit/coordinator/repairs/hosted_fixture.h"

namespace ecpipe::hosted_repairs_test {
namespace {

TEST_F(HostedRepairs, TheHostStoresTheBlockAndTheCatalogKnows) {
  const RepairId id = Begin();
  EXPECT_EQ(helpers_.last.size(), 5u) << "four helpers and the host";
  ASSERT_EQ(PartOf("spare").stores.size(), 1u);
  EXPECT_EQ(PartOf("spare").stores[0].block_id, "b0");
  EXPECT_EQ(PartOf("spare").stores[0].bytes, 1000u);
  EXPECT_EQ(journal_.records.at(id).hosts, std::vector<std::string>{"spare"});
  coordinator_.ReportPart("n1", id, 0, absl::OkStatus());
  EXPECT_TRUE(ends_.empty());
  coordinator_.FinishRepair(id, {absl::OkStatus(), 1000});
  EXPECT_TRUE(ends_.empty()) << "no requestor has a say";
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].recovery_id, 7u);
  EXPECT_EQ(ends_[0].block_id, "b0");
  EXPECT_TRUE(ends_[0].status.ok());
  EXPECT_EQ(catalog_.stripes[0].blocks[0].node, "spare");
  EXPECT_EQ(journal_.records.at(id).state, RepairState::kDone);
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  EXPECT_EQ(ends_.size(), 1u) << "a report that comes twice changes nothing";
}

TEST_F(HostedRepairs, WhatComesDuringAMoveNeitherRepeatsNorUndoesIt) {
  const RepairId id = Begin();
  catalog_.on_move = [&] {
    coordinator_.ReportPart("n1", id, 0, absl::OkStatus());
    coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
    coordinator_.CancelHosted(7);
    EXPECT_TRUE(ends_.empty());
  };
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  EXPECT_EQ(catalog_.moves.at("b0"), 1);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok()) << "the block is in place: " << ends_[0].status;
  EXPECT_EQ(journal_.records.at(id).state, RepairState::kDone);
  EXPECT_TRUE(helpers_.cancelled.empty());
}

TEST_F(HostedRepairs, AnErrorOfAnyPartEndsAll) {
  const RepairId id = Begin();
  coordinator_.ReportPart("n2", id, 0, absl::UnavailableError("node n3 closed the stream"));
  EXPECT_TRUE(ends_.empty()) << "n2 cannot know why";
  coordinator_.ReportPart("n3", id, 0, WithFault(absl::DataLossError("bad sector"), kFaultSelf));
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(Says(ends_[0].status, "node n3"));
  EXPECT_TRUE(Says(ends_[0].status, "bad sector"));
  EXPECT_EQ(helpers_.cancelled.size(), 1u);
  EXPECT_EQ(catalog_.stripes[0].blocks[0].node, "n0");
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(HostedRepairs, AnErrorThatNobodyExplainsEndsItLater) {
  const RepairId id = Begin();
  coordinator_.ReportPart("n2", id, 0, absl::UnavailableError("node n3 closed the stream"));
  coordinator_.Expire();
  EXPECT_TRUE(ends_.empty());
  clock_.Advance(std::chrono::seconds(1));
  coordinator_.Expire();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(Says(ends_[0].status, "node n3 closed the stream"));
}

TEST_F(HostedRepairs, AReportOfAnOlderAttemptDoesNotCount) {
  helpers_.down = {"n2"};
  const RepairId id = Begin();
  coordinator_.ReportPart("n1", id, 0, absl::CancelledError("the first attempt"));
  EXPECT_TRUE(ends_.empty());
  coordinator_.ReportPart("spare", id, 1, absl::OkStatus());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok());
}

TEST_F(HostedRepairs, ADeadNodeEndsIt) {
  Begin();
  clock_.Advance(std::chrono::seconds(4));
  for (const char* node : {"n0", "n2", "n3", "n4", "n5", "spare"}) {
    ASSERT_TRUE(coordinator_.nodes().Heartbeat(node, 1, {}).ok());
  }
  coordinator_.Expire();
  EXPECT_TRUE(ends_.empty());
  clock_.Advance(std::chrono::seconds(2));
  coordinator_.Expire();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(Says(ends_[0].status, "node n1 died"));
}

TEST_F(HostedRepairs, AHostThatStaysSilentEndsIt) {
  const RepairId id = Begin();
  for (const char* node : {"n1", "n2", "n3", "n4", "n5"}) {
    coordinator_.ReportPart(node, id, 0, absl::OkStatus());
  }
  clock_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(coordinator_.nodes().Heartbeat("spare", 1, {}).ok());
  coordinator_.Expire();
  EXPECT_TRUE(ends_.empty()) << "it answers that it is still at work";
  clock_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(coordinator_.nodes().Heartbeat("spare", 1, {}).ok());
  helpers_.down = {"spare"};
  coordinator_.Expire();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ends_[0].status)) << ends_[0].status;
}

TEST_F(HostedRepairs, AHostWhoseReportWasLostIsAsked) {
  const RepairId id = Begin();
  for (const char* node : {"n1", "n2", "n3", "n4", "n5"}) {
    coordinator_.ReportPart(node, id, 0, absl::OkStatus());
  }
  clock_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(coordinator_.nodes().Heartbeat("spare", 1, {}).ok());
  helpers_.answers["spare"] = {.running = false, .ended = absl::OkStatus(), .hops = {}};
  coordinator_.Expire();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok()) << ends_[0].status;
  EXPECT_EQ(catalog_.stripes[0].blocks[0].node, "spare");
}

TEST_F(HostedRepairs, WhoCannotHost) {
  RepairRequest request = Request("b0");
  const auto refusal = [&](const std::string& host) {
    request.hosts = {host};
    return coordinator_.BeginRepair(request).status();
  };
  EXPECT_TRUE(Says(refusal("n3"), "has a block of the stripe"));
  EXPECT_TRUE(Says(refusal("nobody"), "its helper has not registered"));
  helpers_.down = {"spare"};
  EXPECT_TRUE(Says(refusal("spare"), "spare: refused"));
  helpers_.down.clear();
  EXPECT_TRUE(refusal("n0").ok()) << "the block's own node may have it again";
  EXPECT_TRUE(ends_.empty()) << "what did not begin does not end";
}

TEST_F(HostedRepairs, ANewCoordinatorTakesUpWhatWasUnderWay) {
  const RepairId id = Begin();
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {}, &listener_);
  next.Adopt(*journal_.ClaimInterrupted(0));
  next.Expire();
  EXPECT_TRUE(ends_.empty()) << "nobody has registered yet";
  next.ReportPart("spare", id, 0, absl::OkStatus());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok());
  EXPECT_EQ(catalog_.stripes[0].blocks[0].node, "spare");
}

TEST_F(HostedRepairs, OnlyWhatARecoveryOrderedIsInTheBackgroundAfterARestart) {
  Begin();
  std::vector<RepairRecord> interrupted = *journal_.ClaimInterrupted(0);
  for (const uint64_t recovery : {0u, 7u}) {
    interrupted[0].recovery_id = recovery;
    RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
    next.Adopt(interrupted);
    ASSERT_EQ(next.ShowRunning(1).shown.size(), 1u);
    EXPECT_EQ(next.ShowRunning(1).shown[0].background, recovery == 7);
  }
}

TEST_F(HostedRepairs, WhatWasUnderWayAndIsNeverHeardOfFails) {
  Begin();
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {}, &listener_);
  next.Adopt(*journal_.ClaimInterrupted(0));
  clock_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(next.Register(FakeNode("spare")).ok());
  helpers_.down = {"spare"};
  next.Expire();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_FALSE(ends_[0].status.ok());
  EXPECT_EQ(helpers_.cancelled.size(), 1u) << "its host is told to stop";
}

// Two blocks for two hosts, n0 and spare.
class TwoHosts : public HostedRepairs {
 protected:
  RepairId BeginTwo(const std::string& scheme = "rp") {
    RepairRequest request = Request("b0", scheme);
    request.block_ids = {"b0", "b3"};
    request.hosts = {"n0", "spare"};
    const auto grant = coordinator_.BeginRepair(request);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return grant.ok() ? grant->repair_id : 0;
  }
  std::vector<std::string> Places() {
    return {catalog_.stripes[0].blocks[0].node, catalog_.stripes[0].blocks[3].node};
  }
};

TEST_F(TwoHosts, EachBlockMovesWhenItIsStoredAndThenAllIsDone) {
  catalog_.stripes[0].blocks[0].node = "gone";
  const RepairId id = BeginTwo();
  EXPECT_EQ(PartOf("n0").stores[0].block_id, "b0");
  EXPECT_EQ(PartOf("n0").stores[0].row, 0);
  EXPECT_EQ(PartOf("spare").stores[0].block_id, "b3");
  EXPECT_EQ(PartOf("spare").stores[0].row, 1);
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  EXPECT_EQ(Places(), (std::vector<std::string>{"gone", "spare"}));
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kRunning);
  coordinator_.ReportPart("n0", id, 0, absl::OkStatus());
  EXPECT_EQ(Places(), (std::vector<std::string>{"n0", "spare"}));
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kDone);
  EXPECT_EQ(ends_.size(), 2u);
}

TEST_F(TwoHosts, AFaultLeavesWhatIsStored) {
  const RepairId id = BeginTwo();
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  const absl::Status full = absl::ResourceExhaustedError("disk full");
  helpers_.answers["n0"] = {.running = false, .ended = full, .hops = {}};
  coordinator_.ReportPart("n0", id, 0, full);
  EXPECT_EQ(Places(), (std::vector<std::string>{"n0", "spare"}));
  const auto record = coordinator_.Find(id);
  EXPECT_EQ(record->state, RepairState::kFailed);
  EXPECT_NE(record->detail.find("disk full; stored 1 of 2 blocks"), std::string::npos)
      << record->detail;
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_FALSE(ends_[0].status.ok());
  EXPECT_TRUE(ends_[1].status.ok());
}

TEST_F(TwoHosts, ANewCoordinatorAsksOnlyForWhatIsNotStored) {
  const RepairId id = BeginTwo();
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  next.Adopt(*journal_.ClaimInterrupted(0));
  EXPECT_EQ(next.Find(id)->state, RepairState::kRunning)
      << "b0 was on n0 before it was lost: that it is there now proves nothing";
  RepairCoordinator third(&catalog_, &journal_, &helpers_, &clock_, {});
  third.Adopt(*journal_.ClaimInterrupted(0));
  third.ReportPart("n0", id, 0, absl::OkStatus());
  EXPECT_EQ(third.Find(id)->state, RepairState::kDone) << "also after a second restart";
}

TEST_F(TwoHosts, ANewCoordinatorSeesWhatIsAllDone) {
  BeginTwo();
  auto interrupted = *journal_.ClaimInterrupted(0);
  interrupted[0].moved = {1, 0};
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  next.Adopt(interrupted);
  EXPECT_EQ(next.Find(interrupted[0].repair_id)->state, RepairState::kDone);
}

TEST_F(TwoHosts, OneRepairAtATimeStoresABlockOrUsesAHost) {
  const RepairId id = BeginTwo();
  RepairRequest request = Request("b3");
  request.hosts = {"n3"};
  EXPECT_TRUE(absl::IsAborted(coordinator_.BeginRepair(request).status())) << "b3 is under way";
  request.block_ids = {"b5"};
  request.hosts = {"spare"};
  EXPECT_TRUE(absl::IsAborted(coordinator_.BeginRepair(request).status())) << "spare gets b3";
  request.hosts.clear();
  EXPECT_TRUE(coordinator_.BeginRepair(request).ok()) << "a requestor may have it";
  coordinator_.FinishRepair(id, {absl::CancelledError("enough"), 0});
  request.hosts = {"spare"};
  EXPECT_TRUE(coordinator_.BeginRepair(request).ok());
}

TEST_F(TwoHosts, ItsCallerMayCancelIt) {
  const RepairId id = BeginTwo();
  coordinator_.FinishRepair(id, {absl::CancelledError("the requestor gave up"), 0});
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kCancelled);
  EXPECT_EQ(helpers_.cancelled.size(), 1u);
}

TEST_F(TwoHosts, WhichHostsFit) {
  RepairRequest request = Request("b0");
  request.block_ids = {"b0", "b3"};
  const auto refusal = [&](std::vector<std::string> hosts) {
    request.hosts = std::move(hosts);
    return coordinator_.BeginRepair(request).status();
  };
  EXPECT_TRUE(Says(refusal({"spare"}), "there are 1 nodes for 2 blocks"));
  EXPECT_TRUE(Says(refusal({"spare", "spare"}), "it takes another block of this repair"));
  EXPECT_TRUE(Says(refusal({"n0", "n1"}), "n1 cannot take block b3: it already has a block"));
  EXPECT_TRUE(Says(refusal({"n3", "n0"}), "n3 cannot take block b0: it already has a block"))
      << "b3 leaves it later, or never";
  EXPECT_TRUE(refusal({"n0", "n3"}).ok()) << "a lost block's own place is free";
  request.bytes = 10;
  EXPECT_TRUE(absl::IsInvalidArgument(refusal({"n0", "n3"}))) << "only whole blocks are stored";
  request.bytes = 0;
  request.block_ids = {"b0"};
  request.scheme = "direct";
  EXPECT_TRUE(absl::IsInvalidArgument(refusal({"spare"})));
}

TEST_F(TwoHosts, StarsAndMixedLanesFeedRequestorsFromRequestors) {
  for (const char* scheme : {"conventional", "ppr", "mixed"}) {
    const RepairId id = BeginTwo(scheme);
    coordinator_.FinishRepair(id, {absl::CancelledError("next"), 0});
    const auto forwards = [&](const std::string& node) {
      return std::any_of(PartOf(node).hops.begin(), PartOf(node).hops.end(),
                         [](const HopSpec& hop) { return !hop.outputs.empty(); });
    };
    EXPECT_TRUE(forwards("n0")) << scheme;
    EXPECT_EQ(forwards("spare"), scheme == std::string("mixed")) << scheme;
  }
}

TEST_F(HostedRepairs, HelpersComeInTheOrderThatIsWished) {
  RepairRequest request = Request("b0");
  request.hosts = {"spare"};
  request.helper_order = {"n5", "n2", "n4", "n1"};
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok());
  std::vector<std::string> path;
  for (const auto& handout : helpers_.last) path.push_back(handout.helper.node);
  EXPECT_EQ(path, (std::vector<std::string>{"n5", "n2", "n4", "n1", "spare"}));
}

// Cancels all repairs of a recovery at a moment of its choice.
class CancellingHelpers : public FakeHelpers {
 public:
  std::vector<absl::StatusOr<Started>> StartParts(
      const std::vector<Handout>& handouts, Duration timeout,
      std::optional<Duration> straggler_after) override {
    if (coordinator != nullptr) coordinator->CancelHosted(7);
    return FakeHelpers::StartParts(handouts, timeout, straggler_after);
  }
  RepairCoordinator* coordinator = nullptr;
};

TEST_F(HostedRepairs, WhatIsCancelledWhileItIsHandedOutDoesNotComeBack) {
  for (const bool refused : {false, true}) {
    CancellingHelpers helpers;
    if (refused) helpers.down = {"n2"};
    MemoryJournal journal;
    RepairCoordinator coordinator(&catalog_, &journal, &helpers, &clock_, {});
    helpers.coordinator = &coordinator;
    for (const NodeView& node : coordinator_.nodes().All()) {
      ASSERT_TRUE(coordinator.Register(node.record).ok());
    }
    RepairRequest request = Request("b0");
    request.hosts = {"spare"};
    EXPECT_FALSE(coordinator.BeginRepair(request, 7).ok());
    EXPECT_EQ(helpers.rounds, 1) << "no second attempt";
    EXPECT_EQ(helpers.cancelled.size(), 2u) << "once more, after the parts";
    EXPECT_TRUE(helpers.ended.empty()) << "hosts keep nothing";
    ASSERT_EQ(journal.records.size(), 1u);
    EXPECT_EQ(journal.records.begin()->second.state, RepairState::kCancelled);
    EXPECT_EQ(coordinator.counts().cancelled, 1u) << "it ends once";
  }
}

}  // namespace
}  // namespace ecpipe::hosted_repairs_test
