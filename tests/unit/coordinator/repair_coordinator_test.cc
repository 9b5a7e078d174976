// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repair_coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/status.h"
#include "unit/coordinator/fakes.h"

namespace ecpipe {
namespace {

class Repairs : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) Register("n" + std::to_string(i));
  }
  void Register(const std::string& node) {
    ASSERT_TRUE(coordinator_.Register(FakeNode(node)).ok());
  }
  static RepairRequest Request(const std::string& block_id, const std::string& scheme = "rp") {
    RepairRequest request;
    request.block_ids = {block_id};
    request.scheme = scheme;
    request.slice_bytes = 100;
    return request;
  }
  static bool Says(const absl::Status& status, const std::string& text) {
    return std::string(status.message()).find(text) != std::string::npos;
  }

  MemoryCatalog catalog_;
  MemoryJournal journal_;
  FakeHelpers helpers_;
  FakeClock clock_;
  RepairCoordinator coordinator_{&catalog_, &journal_, &helpers_, &clock_, {}};
};

TEST_F(Repairs, HandsOutAndRecords) {
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(helpers_.last.size(), 4u);
  EXPECT_TRUE(ValidatePart(grant->part).ok());
  ASSERT_EQ(grant->part.hops.size(), 1u);
  // Both ends of the requestor's edge have the same token, and the address is the sender's.
  const HopInput& input = grant->part.hops[0].inputs[0];
  const auto sender = std::find_if(
      helpers_.last.begin(), helpers_.last.end(),
      [&](const HelperGateway::Handout& handout) { return handout.helper.node == input.node; });
  ASSERT_NE(sender, helpers_.last.end());
  EXPECT_EQ(sender->part.hops[0].outputs[0].token, input.token);
  EXPECT_EQ(input.address, input.node + ":2");

  const RepairId id = grant->part.repair_id;
  EXPECT_EQ(journal_.records.at(id).state, RepairState::kRunning);
  coordinator_.FinishRepair(id, absl::OkStatus(), 1000);
  EXPECT_EQ(journal_.records.at(id).state, RepairState::kDone);
  EXPECT_EQ(coordinator_.counts().done, 1u);
}

TEST_F(Repairs, AHelperThatIsDownIsLeftOut) {
  helpers_.down = {"n2"};
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->part.attempt, 1u);
  EXPECT_EQ(helpers_.rounds, 2);
  EXPECT_EQ(helpers_.cancelled, std::vector<uint32_t>{0});
  for (const auto& handout : helpers_.last) EXPECT_NE(handout.helper.node, "n2");
}

TEST_F(Repairs, TooFewSurvivorsAreNamedWithTheirReasons) {
  helpers_.down = {"n2", "n4"};
  const absl::Status status = coordinator_.BeginRepair(Request("b0")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const char* part : {"b0", "k = 4", "3 survivors", "b2 on n2", "b4 on n4", "refused"}) {
    EXPECT_TRUE(Says(status, part)) << part << ": " << status;
  }
  EXPECT_EQ(journal_.records.begin()->second.state, RepairState::kFailed);
}

TEST_F(Repairs, DeadAndDrainingNodesDoNotHelp) {
  clock_.Advance(std::chrono::seconds(6));
  EXPECT_TRUE(Says(coordinator_.BeginRepair(Request("b0")).status(), "no heartbeat for 6.0 s"));
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(
        coordinator_.nodes().Heartbeat("n" + std::to_string(i), 1, {.draining = i == 3}).ok());
  }
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  for (const auto& handout : helpers_.last) EXPECT_NE(handout.helper.node, "n3");
  EXPECT_TRUE(absl::IsNotFound(coordinator_.nodes().Heartbeat("n1", 2, {})));
}

TEST_F(Repairs, BadRequests) {
  EXPECT_TRUE(absl::IsNotFound(coordinator_.BeginRepair(Request("other")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BeginRepair(Request("b0", "magic")).status()));
  const auto range = [&](uint64_t offset, uint64_t bytes) {
    RepairRequest request = Request("b0");
    request.offset = offset;
    request.bytes = bytes;
    return coordinator_.BeginRepair(request).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(range(1000, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(range(0, 1001)));
  EXPECT_TRUE(absl::IsInvalidArgument(range(UINT64_MAX, 2)));
  EXPECT_TRUE(range(999, 1).ok());
  RepairRequest redis = Request("b0");
  redis.transport = TransportKind::kRedis;
  EXPECT_TRUE(Says(coordinator_.BeginRepair(redis).status(), "offers no redis"));
}

TEST_F(Repairs, SeveralBlocksGoToOneRequestor) {
  RepairRequest request = Request("b4");
  request.block_ids = {"b4", "b1"};
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(helpers_.last.size(), 4u);
  for (const auto& handout : helpers_.last) {
    EXPECT_NE(handout.helper.node, "n4");
    EXPECT_NE(handout.helper.node, "n1");
  }
  ASSERT_EQ(grant->part.hops.size(), 1u);
  EXPECT_EQ(grant->part.hops[0].stored_rows, (std::vector<Row>{0, 1}));
  ASSERT_EQ(grant->part.hops[0].inputs.size(), 1u) << "both rows come in one stream";
  EXPECT_EQ(grant->planned.plan.failed, (std::vector<int>{4, 1}));
  const RepairId id = grant->repair_id;
  EXPECT_EQ(coordinator_.Find(id)->block_ids, request.block_ids);
  coordinator_.FinishRepair(id, absl::OkStatus(), 1000);
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kFailed) << "that is half of the bytes";
  const auto again = coordinator_.BeginRepair(request);
  coordinator_.FinishRepair(again->repair_id, absl::OkStatus(), 2000);
  EXPECT_EQ(coordinator_.Find(again->repair_id)->state, RepairState::kDone);
  EXPECT_TRUE(absl::IsNotFound(coordinator_.Find(1).status()));
}

TEST_F(Repairs, WhichBlocksMakeARequest) {
  MemoryCatalog two_stripes(2);
  RepairCoordinator coordinator(&two_stripes, &journal_, &helpers_, &clock_, {});
  const auto refusal = [&](std::vector<std::string> ids) {
    RepairRequest request = Request("");
    request.block_ids = std::move(ids);
    return coordinator.BeginRepair(request).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(refusal({})));
  EXPECT_TRUE(absl::IsInvalidArgument(refusal(std::vector<std::string>(65, "b0"))));
  EXPECT_TRUE(Says(refusal({"b0", "b1", "b0"}), "b0 is named twice"));
  EXPECT_TRUE(Says(refusal({"b0", "b7"}), "block b7 is not of stripe s1000, as b0 is"));
  EXPECT_TRUE(absl::IsNotFound(refusal({"b99", "b0"})));
  const absl::Status beyond = refusal({"b0", "b1", "b2"});
  EXPECT_TRUE(Says(beyond, "blocks b0, b1, b2 cannot be repaired now")) << beyond;
}

TEST_F(Repairs, DirectReadsTheBlockItself) {
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b5", "direct")).ok());
  ASSERT_EQ(helpers_.last.size(), 1u);
  EXPECT_EQ(helpers_.last[0].helper.node, "n5");
  helpers_.down = {"n5"};
  EXPECT_TRUE(
      absl::IsFailedPrecondition(coordinator_.BeginRepair(Request("b5", "direct")).status()));
}

TEST_F(Repairs, ARepairThatNobodyEndsIsOverOneDay) {
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok());
  for (const auto& handout : helpers_.last) {
    coordinator_.ReportPart(handout.helper.node, grant->part.repair_id, 0, absl::OkStatus());
  }
  coordinator_.Expire();
  EXPECT_EQ(journal_.records.begin()->second.state, RepairState::kRunning);
  clock_.Advance(std::chrono::seconds(31));
  coordinator_.Expire();
  EXPECT_EQ(journal_.records.begin()->second.state, RepairState::kFailed);
}

TEST_F(Repairs, TheOperatorsTopologyLeadsThePath) {
  RepairCoordinator::Options options;
  options.racks = {{"n1", "/home"}, {"n4", "/home"}, {"n2", "/far"}, {"n3", "/far"}, {"n5", "/x"}};
  options.links =
      std::make_shared<const LinkTable>(LinkTable{{{"/home", "/far"}, 1e6}, {{"/far", "/home"}, 1e6}});
  RepairCoordinator coordinator(&catalog_, &journal_, &helpers_, &clock_, options);
  for (const NodeView& node : coordinator_.nodes().All()) {
    ASSERT_TRUE(coordinator.Register(node.record).ok());
  }
  RepairRequest request = Request("b0", "rp-rack");
  request.requestor_rack = "/home";
  const auto planned = coordinator.Explain(request);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->racks.at("n2"), "/far") << "the helper itself names no rack";
  std::vector<std::string> path;
  for (const PlanHop& hop : planned->plan.lanes[0].hops) path.push_back(hop.node);
  path.pop_back();
  EXPECT_EQ(path, (std::vector<std::string>{"n3", "n2", "n4", "n1"}));
  std::map<std::string, double> seconds;
  for (const SchemePrediction& prediction : planned->predictions) {
    seconds[prediction.scheme] = prediction.cost.seconds;
  }
  EXPECT_EQ(seconds.size(), SchemesThatRepair().size());
  EXPECT_EQ(seconds.at("rp-rack"), planned->cost.seconds);
  EXPECT_LT(seconds.at("rp-weighted"), seconds.at("rp-rack")) << "n5 lies between the slow racks";
}

TEST_F(Repairs, StreamsThatHadTheirLinksForThemselvesTeachSpeeds) {
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok());
  clock_.Advance(std::chrono::seconds(1));
  const LinkTiming timing{"n2", 1'000'000, 1.0, 1.0};
  coordinator_.ReportLinks("n1", std::chrono::seconds(1), {timing, {"requestor:x", 10, 1.0, 1.0}});
  ASSERT_EQ(coordinator_.links().Measured().size(), 1u) << "a requestor is no node";
  EXPECT_EQ(coordinator_.links().Measured()[0].bytes_per_second, 1e6);
  coordinator_.FinishRepair(grant->repair_id, absl::OkStatus(), 1000);

  const auto two = {coordinator_.BeginRepair(Request("b0"))->repair_id,
                    coordinator_.BeginRepair(Request("b5"))->repair_id};
  coordinator_.ReportLinks("n1", std::chrono::seconds(1), {{"n2", 500'000, 1.0, 1.0}});
  EXPECT_EQ(coordinator_.links().Measured()[0].samples, 1u) << "two repairs share the links";
  for (const RepairId id : two) coordinator_.FinishRepair(id, absl::OkStatus(), 1000);
  clock_.Advance(std::chrono::seconds(10));
  coordinator_.ReportLinks("n1", std::chrono::seconds(1), {{"n2", 500'000, 1.0, 1.0}});
  EXPECT_EQ(coordinator_.links().Measured()[0].samples, 2u) << "that is over";
}

// ---- Repairs that a helper hosts ------------------------------------------------------------

class HostedRepairs : public Repairs {
 protected:
  void SetUp() override {
    Repairs::SetUp();
    Register("spare");
    coordinator_.SetHostedEnd([this](const HostedEnd& end) { ends_.push_back(end); });
  }
  RepairId Begin(const std::string& host = "spare") {
    RepairRequest request = Request("b0");
    request.hosts = {host};
    const auto grant = coordinator_.BeginRepair(request, 7);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return journal_.records.empty() ? 0 : journal_.records.rbegin()->first;
  }
  const RepairPart& PartOf(const std::string& node) {
    return std::find_if(helpers_.last.begin(), helpers_.last.end(),
                        [&](const auto& handout) { return handout.helper.node == node; })
        ->part;
  }

  std::vector<HostedEnd> ends_;
};

TEST_F(HostedRepairs, TheHostStoresTheBlockAndTheCatalogKnows) {
  const RepairId id = Begin();
  EXPECT_EQ(helpers_.last.size(), 5u) << "four helpers and the host";
  ASSERT_EQ(PartOf("spare").stores.size(), 1u);
  EXPECT_EQ(PartOf("spare").stores[0].block_id, "b0");
  EXPECT_EQ(PartOf("spare").stores[0].bytes, 1000u);
  EXPECT_EQ(journal_.records.at(id).hosts, std::vector<std::string>{"spare"});
  coordinator_.ReportPart("n1", id, 0, absl::OkStatus());
  EXPECT_TRUE(ends_.empty());
  coordinator_.FinishRepair(id, absl::OkStatus(), 1000);
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

TEST_F(HostedRepairs, AnErrorOfAnyPartEndsAll) {
  const RepairId id = Begin();
  coordinator_.ReportPart("n3", id, 0, absl::DataLossError("bad sector"));
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(Says(ends_[0].status, "node n3"));
  EXPECT_TRUE(Says(ends_[0].status, "bad sector"));
  EXPECT_EQ(helpers_.cancelled.size(), 1u);
  EXPECT_EQ(catalog_.stripes[0].blocks[0].node, "n0");
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  EXPECT_EQ(ends_.size(), 1u);
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
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ends_[0].status)) << ends_[0].status;
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
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  next.SetHostedEnd([this](const HostedEnd& end) { ends_.push_back(end); });
  next.Adopt(*journal_.TakeInterrupted(0));
  next.Expire();
  EXPECT_TRUE(ends_.empty()) << "nobody has registered yet";
  next.ReportPart("spare", id, 0, absl::OkStatus());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok());
  EXPECT_EQ(catalog_.stripes[0].blocks[0].node, "spare");
}

TEST_F(HostedRepairs, WhatWasUnderWayAndIsNeverHeardOfFails) {
  Begin();
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  next.SetHostedEnd([this](const HostedEnd& end) { ends_.push_back(end); });
  next.Adopt(*journal_.TakeInterrupted(0));
  clock_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(next.Register(FakeNode("spare")).ok());
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
  coordinator_.ReportPart("n0", id, 0, absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(Places(), (std::vector<std::string>{"n0", "spare"}));
  const auto record = coordinator_.Find(id);
  EXPECT_EQ(record->state, RepairState::kFailed);
  EXPECT_NE(record->detail.find("disk full; stored 1 of 2 blocks"), std::string::npos)
      << record->detail;
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_FALSE(ends_[0].status.ok());
  EXPECT_TRUE(ends_[1].status.ok());
}

TEST_F(TwoHosts, ANewCoordinatorAsksOnlyForWhatIsNotMoved) {
  const RepairId id = BeginTwo();
  catalog_.stripes[0].blocks[0].node = "gone";
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  next.Adopt(*journal_.TakeInterrupted(0));
  EXPECT_EQ(next.Find(id)->state, RepairState::kRunning);
  next.ReportPart("n0", id, 0, absl::OkStatus());
  EXPECT_EQ(next.Find(id)->state, RepairState::kDone);
}

TEST_F(TwoHosts, ANewCoordinatorSeesWhatIsAllDone) {
  const RepairId id = BeginTwo();
  const auto interrupted = *journal_.TakeInterrupted(0);
  ASSERT_TRUE(catalog_.MoveBlock("b3", "spare").ok());
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  next.Adopt(interrupted);
  EXPECT_EQ(next.Find(id)->state, RepairState::kDone);
}

TEST_F(TwoHosts, ItsCallerMayCancelIt) {
  const RepairId id = BeginTwo();
  coordinator_.FinishRepair(id, absl::CancelledError("the requestor gave up"), 0);
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kFailed);
  EXPECT_EQ(helpers_.cancelled.size(), 1u);
}

TEST_F(TwoHosts, WhichHostsFit) {
  RepairRequest request = Request("b0");
  request.block_ids = {"b0", "b3"};
  const auto refusal = [&](std::vector<std::string> hosts) {
    request.hosts = std::move(hosts);
    return coordinator_.BeginRepair(request).status();
  };
  EXPECT_TRUE(Says(refusal({"spare"}), "1 nodes are to take 2 blocks"));
  EXPECT_TRUE(Says(refusal({"spare", "spare"}), "it takes another of the blocks"));
  EXPECT_TRUE(Says(refusal({"n3", "n1"}), "n1 cannot take block b3: it has a block"));
  EXPECT_TRUE(refusal({"n3", "n0"}).ok()) << "the places of lost blocks are free";
  request.bytes = 10;
  EXPECT_TRUE(absl::IsInvalidArgument(refusal({"n3", "n0"}))) << "only whole blocks are stored";
  request.bytes = 0;
  request.block_ids = {"b0"};
  request.scheme = "direct";
  EXPECT_TRUE(absl::IsInvalidArgument(refusal({"spare"})));
}

TEST_F(TwoHosts, StarsAndMixedLanesFeedRequestorsFromRequestors) {
  for (const char* scheme : {"conventional", "ppr", "mixed"}) {
    const RepairId id = BeginTwo(scheme);
    coordinator_.FinishRepair(id, absl::CancelledError("next"), 0);
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
  for (const PlanHop& hop : grant->planned.plan.lanes[0].hops) path.push_back(hop.node);
  EXPECT_EQ(path, (std::vector<std::string>{"n5", "n2", "n4", "n1", "spare"}));
}

}  // namespace
}  // namespace ecpipe
