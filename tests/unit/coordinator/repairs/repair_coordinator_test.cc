// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/repair_coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/status.h"
#include "coordinator/planning/scheme.h"
#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::repair_coordinator_test {
namespace {

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
  coordinator_.FinishRepair(id, {absl::OkStatus(), 1000});
  EXPECT_EQ(journal_.records.at(id).state, RepairState::kDone);
  EXPECT_EQ(coordinator_.counts().done, 1u);
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
  EXPECT_EQ(coordinator_.Explain(request)->plan.failed, (std::vector<int>{4, 1}));
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
  const RepairId id = grant->repair_id;
  EXPECT_EQ(coordinator_.Find(id)->block_ids, request.block_ids);
  coordinator_.FinishRepair(id, {absl::OkStatus(), 1000});
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kFailed) << "that is half of the bytes";
  const auto again = coordinator_.BeginRepair(request);
  coordinator_.FinishRepair(again->repair_id, {absl::OkStatus(), 2000});
  EXPECT_EQ(coordinator_.Find(again->repair_id)->state, RepairState::kDone);
  EXPECT_TRUE(absl::IsNotFound(coordinator_.Find(1).status()));
}

TEST_F(Repairs, TheBackgroundHasItsShareOfRoom) {
  coordinator_.SetMaxRunning(4);
  RepairRequest background = Request("b0");
  background.background = true;
  RepairId first = 0;
  for (int i = 0; i < 3; ++i) {
    const auto grant = coordinator_.BeginRepair(background);
    ASSERT_TRUE(grant.ok()) << grant.status();
    for (const auto& handout : helpers_.last) EXPECT_TRUE(handout.part.background);
    if (i == 0) first = grant->repair_id;
  }
  const absl::Status refused = coordinator_.BeginRepair(background).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(Says(refused, "3 background repairs")) << refused;
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  for (const auto& handout : helpers_.last) EXPECT_FALSE(handout.part.background);
  EXPECT_TRUE(Says(coordinator_.BeginRepair(Request("b0")).status(), "its limit of 4 repairs"));
  coordinator_.FinishRepair(first, {absl::OkStatus(), 1000});
  EXPECT_TRUE(coordinator_.BeginRepair(background).ok());
}

TEST_F(Repairs, ThoseThatSomebodyWaitsForAreShownFirstThenTheOldest) {
  for (const char* block : {"b0", "b1", "b2"}) {
    RepairRequest request = Request(block);
    request.background = std::string(block) == "b0";
    ASSERT_TRUE(coordinator_.BeginRepair(request).ok());
    clock_.Advance(std::chrono::seconds(1));
  }
  const auto running = coordinator_.ShowRunning(2);
  EXPECT_EQ(running.all, 3u);
  ASSERT_EQ(running.shown.size(), 2u);
  EXPECT_EQ(running.shown[0].record.block_ids[0], "b1");
  EXPECT_EQ(running.shown[1].record.block_ids[0], "b2");
  EXPECT_EQ(coordinator_.ShowRunning(0).all, 3u);
  const auto all = coordinator_.ShowRunning(9);
  ASSERT_EQ(all.shown.size(), 3u);
  EXPECT_EQ(all.shown[2].record.block_ids[0], "b0");
  EXPECT_TRUE(all.shown[2].background);
}

TEST_F(Repairs, AreShownWithWhatWasLastHeardOfThem) {
  const auto shown = [&] { return coordinator_.ShowRunning(1).shown.at(0); };
  clock_.Advance(std::chrono::seconds(1));
  RepairRequest request = Request("b0");
  request.offset = 200;
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(shown().record.offset, 200u);
  EXPECT_EQ(shown().whole_bytes, 800u);
  EXPECT_EQ(shown().missing_bytes, 800u);
  EXPECT_EQ(shown().heard_at, clock_.Now());
  for (const uint64_t told : {300u, 5000u}) {
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(coordinator_.CheckProgress(grant->repair_id, 0, told, /*quiet=*/false).ok());
    EXPECT_EQ(shown().missing_bytes, std::min<uint64_t>(told, 800)) << "of 800";
    EXPECT_EQ(shown().heard_at, clock_.Now());
  }
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

TEST_F(Repairs, ManyThatNobodyEndsAreOverAfterEachOther) {
  const size_t all = 2 * RepairCoordinator::kExpiredAtOnce;
  for (size_t i = 0; i < all; ++i) ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  clock_.Advance(std::chrono::minutes(1));
  coordinator_.Expire();
  EXPECT_EQ(coordinator_.counts().failed, RepairCoordinator::kExpiredAtOnce);
  coordinator_.Expire();
  EXPECT_EQ(coordinator_.counts().failed, all);
}

class FullJournal : public MemoryJournal {
 public:
  absl::Status Record(const RepairRecord& record) override {
    if (full) return absl::ResourceExhaustedError("the disk is full");
    return MemoryJournal::Record(record);
  }
  bool full = false;
};

TEST_F(Repairs, AFullDiskKeepsNobodyFromReadingAndRefusesToStore) {
  FullJournal journal;
  RepairCoordinator coordinator(&catalog_, &journal, &helpers_, &clock_, {});
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(coordinator.Register(FakeNode("n" + std::to_string(i))).ok());
  }
  ASSERT_TRUE(coordinator.Register(FakeNode("spare")).ok());
  journal.full = true;
  const auto grant = coordinator.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok()) << grant.status();
  ResumePoint from;
  from.repair_id = grant->repair_id;
  from.left = {grant->part.grid, {{3, 2, 1}}};
  from.scheme = "rp";
  from.failure = absl::UnavailableError("n1 has gone");
  EXPECT_TRUE(coordinator.ResumeRepair(Request("b0"), from).ok());
  EXPECT_EQ(coordinator.counts().unjournaled, 2u);
  RepairRequest stores = Request("b1");
  stores.hosts = {"spare"};
  const absl::Status refused = coordinator.BeginRepair(stores).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(Says(refused, "no block is stored, for the journal did not take the repair"));
  EXPECT_TRUE(Says(refused, "the disk is full; see to the disk of [coordinator] data_directory"));
  // Its history is written once there is room.
  coordinator.FinishRepair(grant->repair_id, {absl::OkStatus(), 1000});
  EXPECT_EQ(coordinator.Find(grant->repair_id)->state, RepairState::kDone);
  journal.full = false;
  coordinator.Expire();
  EXPECT_EQ(journal.records.at(grant->repair_id).state, RepairState::kDone);
}

TEST_F(Repairs, AnEndThatTheJournalDoesNotTakeIsKeptUntilItDoes) {
  FullJournal journal;
  RepairCoordinator coordinator(&catalog_, &journal, &helpers_, &clock_, {});
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(coordinator.Register(FakeNode("n" + std::to_string(i))).ok());
  }
  const auto grant = coordinator.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok());
  journal.full = true;
  coordinator.FinishRepair(grant->repair_id, {absl::OkStatus(), 1000});
  EXPECT_EQ(coordinator.Find(grant->repair_id)->state, RepairState::kDone);
  coordinator.Expire();
  EXPECT_EQ(journal.records.begin()->second.state, RepairState::kRunning);
  journal.full = false;
  coordinator.Expire();
  EXPECT_EQ(journal.records.begin()->second.state, RepairState::kDone);
  EXPECT_EQ(coordinator.Find(grant->repair_id)->state, RepairState::kDone);
}

TEST_F(Repairs, AHelperThatStartedAgainReportsNothing) {
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok());
  const std::string restarted = helpers_.last[0].helper.node;
  for (const auto& handout : helpers_.last) {
    if (handout.helper.node == restarted) continue;
    coordinator_.ReportPart(handout.helper.node, grant->part.repair_id, 0, absl::OkStatus());
  }
  NodeRecord again = FakeNode(restarted);
  clock_.Advance(std::chrono::seconds(31));
  for (int i = 0; i < 6; ++i) Register("n" + std::to_string(i));
  coordinator_.Expire();
  EXPECT_EQ(journal_.records.begin()->second.state, RepairState::kRunning) << "it may yet report";
  again.incarnation = 2;
  ASSERT_TRUE(coordinator_.Register(again).ok());
  coordinator_.Expire();
  EXPECT_EQ(journal_.records.begin()->second.state, RepairState::kFailed);
}

TEST_F(Repairs, TheOperatorsTopologyLeadsThePath) {
  RepairCoordinator::Options options;
  options.racks = {{"n1", "/home"}, {"n4", "/home"}, {"n2", "/far"}, {"n3", "/far"}, {"n5", "/x"}};
  options.links = std::make_shared<const LinkTable>(
      LinkTable{{{"/home", "/far"}, 1e6}, {{"/far", "/home"}, 1e6}});
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

TEST_F(Repairs, AllHelpersOfATreeMaySendToARequestorThatSaysWhatItsLinkIs) {
  RepairCoordinator::Options options;
  LinkTable pairs;  // slow ones, so that a path is, too
  for (const NodeView& from : coordinator_.nodes().All()) {
    for (const NodeView& to : coordinator_.nodes().All()) {
      if (from.record.node_id != to.record.node_id) {
        pairs[{from.record.node_id, to.record.node_id}] = 1e5;
      }
    }
  }
  options.links = std::make_shared<const LinkTable>(std::move(pairs));
  RepairCoordinator coordinator(&catalog_, &journal_, &helpers_, &clock_, options);
  for (const NodeView& node : coordinator_.nodes().All()) {
    ASSERT_TRUE(coordinator.Register(node.record).ok());
  }
  RepairRequest request = Request("b0", "rp-flow");
  const auto most_that_enter = [&] {
    size_t most = 0;
    const auto planned = coordinator.Explain(request);
    EXPECT_TRUE(planned.ok()) << planned.status();
    if (!planned.ok()) return most;
    for (const PlanLane& lane : planned->plan.lanes) {
      most = std::max(most, lane.hops.back().inputs.size());
    }
    return most;
  };
  EXPECT_EQ(most_that_enter(), 1u) << "its link may be slow";
  request.requestor_bytes_per_second = 1e8;
  EXPECT_GT(most_that_enter(), 1u);
  // As a path: more would only share it.
  request.requestor_bytes_per_second = 1e5;
  EXPECT_EQ(most_that_enter(), 1u);
}

TEST_F(Repairs, StreamsThatHadTheirLinksForThemselvesTeachSpeeds) {
  const auto samples = [&] {
    const auto known = coordinator_.links().Measured();
    return known.empty() ? 0 : known[0].samples;
  };
  const RepairId id = coordinator_.BeginRepair(Request("b0"))->repair_id;
  coordinator_.ReportLinks("stranger", id, {{"n2", 1'000'000, 1.0, 1.0}});
  coordinator_.ReportLinks("n1", id + 1, {{"n2", 1'000'000, 1.0, 1.0}});
  coordinator_.ReportLinks("n1", id, {{"requestor:x", 1'000'000, 1.0, 1.0}});
  EXPECT_EQ(samples(), 0u) << "neither strangers nor unknown repairs nor requestors";
  coordinator_.ReportLinks("n1", id, {{"n2", 1'000'000, 1.0, 1.0}});
  ASSERT_EQ(samples(), 1u);
  EXPECT_EQ(coordinator_.links().Measured()[0].bytes_per_second, 1e6);
  coordinator_.FinishRepair(id, {absl::OkStatus(), 1000});

  const RepairId first = coordinator_.BeginRepair(Request("b0"))->repair_id;
  const RepairId second = coordinator_.BeginRepair(Request("b5"))->repair_id;
  for (const RepairId one : {first, second}) {
    coordinator_.FinishRepair(one, {absl::OkStatus(), 1000});
    coordinator_.ReportLinks("n1", one, {{"n2", 500'000, 1.0, 1.0}});
  }
  EXPECT_EQ(samples(), 1u) << "two repairs shared the links";
  const RepairId third = coordinator_.BeginRepair(Request("b0"))->repair_id;
  coordinator_.FinishRepair(third, {absl::OkStatus(), 1000});
  coordinator_.ReportLinks("n1", third, {{"n2", 500'000, 1.0, 1.0}});
  EXPECT_EQ(samples(), 2u) << "helpers report a moment after the requestor";
  clock_.Advance(std::chrono::seconds(11));
  coordinator_.Expire();
  coordinator_.ReportLinks("n1", third, {{"n2", 500'000, 1.0, 1.0}});
  EXPECT_EQ(samples(), 2u) << "but not for ever";
}

}  // namespace
}  // namespace ecpipe::repair_coordinator_test
