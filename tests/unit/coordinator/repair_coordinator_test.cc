// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repair_coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/status.h"

namespace ecpipe {
namespace {

class OneStripeCatalog : public Catalog {
 public:
  OneStripeCatalog() {
    stripe.stripe_id = "s";
    stripe.code = "rs(6,4)";
    stripe.block_bytes = 1000;
    for (int i = 0; i < 6; ++i) {
      stripe.blocks.push_back({"b" + std::to_string(i), "n" + std::to_string(i)});
    }
  }
  absl::Status Put(const std::vector<Stripe>&) override { return absl::OkStatus(); }
  absl::StatusOr<BlockLocation> FindBlock(const std::string& block_id) override {
    for (int i = 0; i < 6; ++i) {
      if (stripe.blocks[static_cast<size_t>(i)].block_id == block_id)
        return BlockLocation{stripe, i};
    }
    return absl::NotFoundError("no stripe has block " + block_id);
  }
  absl::StatusOr<Stripe> FindStripe(const std::string&) override { return stripe; }
  absl::StatusOr<std::vector<Stripe>> List(const std::string&, int) override {
    return std::vector<Stripe>{stripe};
  }
  absl::StatusOr<uint64_t> CountStripes() override { return 1; }
  absl::Status MoveBlock(const std::string&, const std::string&) override {
    return absl::OkStatus();
  }

  Stripe stripe;
};

class MemoryJournal : public Journal {
 public:
  absl::Status Record(const RepairRecord& record) override {
    records[record.repair_id] = record;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<RepairRecord>> TakeInterrupted(int64_t) override {
    return std::vector<RepairRecord>{};
  }
  absl::StatusOr<std::vector<RepairRecord>> Recent(int) override {
    return std::vector<RepairRecord>{};
  }
  absl::Status Trim(int) override { return absl::OkStatus(); }

  std::map<RepairId, RepairRecord> records;
};

// Helpers that take every part, but those on `down`.
class FakeHelpers : public HelperGateway {
 public:
  std::vector<absl::Status> StartParts(const std::vector<Handout>& handouts, Duration) override {
    std::vector<absl::Status> statuses;
    for (const Handout& handout : handouts) {
      const bool is_down = down.count(handout.helper.node) != 0;
      EXPECT_TRUE(ValidatePart(handout.part).ok()) << ValidatePart(handout.part);
      statuses.push_back(is_down ? absl::UnavailableError(handout.helper.node + ": refused")
                                 : absl::OkStatus());
    }
    ++rounds;
    last = handouts;
    return statuses;
  }
  void CancelRepair(RepairId, uint32_t attempt, const std::vector<HelperAddress>&) override {
    cancelled.push_back(attempt);
  }
  void ForgetConnection(const std::string&) override {}

  std::set<std::string> down;
  int rounds = 0;
  std::vector<Handout> last;
  std::vector<uint32_t> cancelled;
};

class Repairs : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) Register("n" + std::to_string(i));
  }
  void Register(const std::string& node) {
    NodeRecord record;
    record.node_id = node;
    record.control_address = node + ":1";
    record.data_address = node + ":2";
    record.incarnation = 1;
    ASSERT_TRUE(coordinator_.Register(record).ok());
  }
  static RepairRequest Request(const std::string& block_id, const std::string& scheme = "rp") {
    RepairRequest request;
    request.block_id = block_id;
    request.scheme = scheme;
    request.slice_bytes = 100;
    return request;
  }
  static bool Says(const absl::Status& status, const std::string& text) {
    return std::string(status.message()).find(text) != std::string::npos;
  }

  OneStripeCatalog catalog_;
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
    ASSERT_TRUE(coordinator_.Heartbeat("n" + std::to_string(i), 1, {.draining = i == 3}).ok());
  }
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  for (const auto& handout : helpers_.last) EXPECT_NE(handout.helper.node, "n3");
  EXPECT_TRUE(absl::IsNotFound(coordinator_.Heartbeat("n1", 2, {})));
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
      std::make_shared<LinkTable>(LinkTable{{{"/home", "/far"}, 1e6}, {{"/far", "/home"}, 1e6}});
  RepairCoordinator coordinator(&catalog_, &journal_, &helpers_, &clock_, options);
  for (const RepairCoordinator::NodeView& node : coordinator_.Nodes()) {
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
  EXPECT_EQ(seconds.size(), SchemeNames().size() - 1) << "all but direct";
  EXPECT_EQ(seconds.at("rp-rack"), planned->cost.seconds);
  EXPECT_LT(seconds.at("rp-weighted"), seconds.at("rp-rack")) << "n5 lies between the slow racks";
}

}  // namespace
}  // namespace ecpipe
