// SPDX-License-Identifier: Apache-2.0
// Plans over programs of several versions.
#include "model/plan/features.h"

#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::features_test {
namespace {

class Versions : public Repairs {
 protected:
  void RegisterOlder(const std::string& node) {
    NodeRecord record = FakeNode(node);
    record.incarnation = 2;
    record.features = {};
    ASSERT_TRUE(coordinator_.Register(record).ok());
  }
  void UseSubBlocks() { catalog_.stripes["s1000"].code = "rotated-rs(6,4,2,10)"; }
  static bool Helps(const PlannedRepair& planned, const std::string& node) {
    for (const NodeLoad& load : planned.cost.loads) {
      if (load.node == node) return true;
    }
    return false;
  }
};

TEST_F(Versions, AHelperThatLacksWhatThePlanNeedsIsLeftOut) {
  UseSubBlocks();
  RegisterOlder("n2");
  const absl::StatusOr<PlannedRepair> planned = coordinator_.Explain(Request("b0"));
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_FALSE(Helps(*planned, "n2"));
  for (const std::string node : {"n1", "n3"}) RegisterOlder(node);
  const absl::Status refused = coordinator_.Explain(Request("b0")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(Says(refused, "b2 on n2: the version of its helper lacks sub-blocks")) << refused;
}

TEST_F(Versions, AHelperThatLacksWhatThePlanDoesNotNeedHelps) {
  for (int i = 0; i < 6; ++i) RegisterOlder("n" + std::to_string(i));
  EXPECT_TRUE(coordinator_.Explain(Request("b0")).ok());
  EXPECT_TRUE(coordinator_.Explain(Request("b0", "conventional")).ok()) << "one row: only sums";
}

TEST_F(Versions, ARequestorGetsNoPartThatItWouldMisread) {
  RepairRequest request = Request("b0", "conventional");
  request.block_ids = {"b0", "b1"};
  EXPECT_TRUE(coordinator_.Explain(request).ok());
  request.features = {};
  const absl::Status refused = coordinator_.Explain(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(Says(refused, "the requestor's version lacks raw-rows")) << refused;
  request.scheme = "auto";
  EXPECT_TRUE(coordinator_.Explain(request).ok()) << "there is a scheme that it understands";
  request = Request("b0");
  request.features = {};
  request.verify = Verification::kParity;
  EXPECT_TRUE(Says(coordinator_.Explain(request).status(), "check-rows"));
}

// Else nobody of the older version could read anything where parity is the default.
TEST_F(Versions, TheDefaultVerificationGivesWayAndOneThatIsAskedForDoesNot) {
  RepairPlanner::Options options;
  options.default_verification = Verification::kParity;
  RepairCoordinator coordinator{&catalog_, &journal_, &helpers_, &clock_, {.planner = options},
                                &listener_};
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(coordinator.Register(FakeNode("n" + std::to_string(i))).ok());
  }
  RepairRequest request = Request("b0");
  EXPECT_EQ(coordinator.Explain(request)->plan.check.rows, 1u);
  request.features = {};
  EXPECT_EQ(coordinator.Explain(request)->plan.check.rows, 0u);
}

TEST_F(Versions, APartNamesWhatItNeeds) {
  UseSubBlocks();
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  ASSERT_FALSE(helpers_.last.empty());
  for (const HelperGateway::Handout& handout : helpers_.last) {
    EXPECT_EQ(handout.part.needs, FeaturesNamed({"sub-blocks"}));
  }
}

}  // namespace
}  // namespace ecpipe::features_test
