// SPDX-License-Identifier: Apache-2.0
#include "model/plan/features.h"

#include <gtest/gtest.h>

namespace ecpipe::features_test {
namespace {

using Names = std::vector<std::string>;

TEST(Features, NamesThatAreNotKnownArePassedOverWhereTheyAreAnnounced) {
  const Features features = FeaturesNamed({"raw-rows", "of-the-future"});
  EXPECT_EQ(FeatureNames(features), Names{"raw-rows"});
  EXPECT_EQ(FeaturesNamed(FeatureNames(OwnFeatures())), OwnFeatures());
}

TEST(Features, NamesThatAreNotKnownAreRefusedWhereTheyAreNeeded) {
  EXPECT_EQ(*NeedsNamed({"sub-blocks", "check-rows"}), FeaturesNamed({"sub-blocks", "check-rows"}));
  const absl::Status refused = NeedsNamed({"sub-blocks", "of-the-future"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("of-the-future"), std::string::npos) << refused;
}

// One helper, which sends rows as they are, and a requestor, which multiplies and compares.
TEST(Features, ANodeNeedsOnlyWhatItsOwnHopsDo) {
  RepairPlan plan;
  plan.failed = {0};
  plan.check.rows = 1;
  PlanHop helper;
  helper.node = "n1";
  PlanHop requestor;
  requestor.node = "requestor:r";
  requestor.inputs = {{0, {0}, {1, 2}}};
  requestor.stored_rows = {0, 1};
  plan.lanes.push_back({{}, {helper, requestor}});
  EXPECT_TRUE(NeedsOf(plan, helper).empty());
  EXPECT_EQ(NeedsOf(plan, requestor), FeaturesNamed({"raw-rows", "check-rows"}));
  plan.layout = {2, 4096};
  EXPECT_EQ(NeedsOf(plan, helper), FeaturesNamed({"sub-blocks"}));
}

}  // namespace
}  // namespace ecpipe::features_test
