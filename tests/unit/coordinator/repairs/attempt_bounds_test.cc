// SPDX-License-Identifier: Apache-2.0
// How often a repair that fails is tried again.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "model/attempt_bound.h"
#include "model/fault.h"
#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::attempt_bounds_test {
namespace {

class AttemptBounds : public Repairs {
 protected:
  // A repair of b0 in 10 slices of 100 bytes, of which `from` have come when an attempt fails.
  RepairGrant Begin() {
    auto grant = coordinator_.BeginRepair(request_);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return *grant;
  }
  ResumePoint After(const RepairGrant& grant, uint32_t from = 6) const {
    return {grant.repair_id,
            grant.part.attempt,
            {grant.part.grid, {{from, 10 - from, 1}}},
            grant.scheme,
            WithFault(absl::UnavailableError("again"), kFaultUnknown)};
  }

  const RepairRequest request_ = Request("b0");
};

TEST_F(AttemptBounds, AreBounded) {
  RepairGrant grant = Begin();
  absl::Status status;
  int attempts = 0;
  for (; status.ok() && attempts < 100; ++attempts) {
    const auto next = coordinator_.ResumeRepair(request_, After(grant));
    status = next.status();
    if (next.ok()) grant = *next;
  }
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(attempts, 17) << "the first brought six slices";
  EXPECT_TRUE(Says(status, "given up after 16 attempts in a row")) << status;
  EXPECT_TRUE(Says(status, "again"));
  EXPECT_EQ(journal_.records.at(grant.repair_id).state, RepairState::kFailed);
}

TEST_F(AttemptBounds, TheFirstAttemptCountsToo) {
  RepairGrant grant = Begin();
  for (uint32_t failed = 1; failed < AttemptBound::kMostInVain; ++failed) {
    const auto next = coordinator_.ResumeRepair(request_, After(grant, 0));
    ASSERT_TRUE(next.ok()) << next.status();
    grant = *next;
  }
  EXPECT_TRUE(absl::IsAborted(coordinator_.ResumeRepair(request_, After(grant, 0)).status()));
}

// Nine times as many attempts as there may be in a row in vain, but for one.
TEST_F(AttemptBounds, ThatBringSomethingDoNotCount) {
  RepairGrant grant = Begin();
  for (uint32_t from = 1; from < 10; ++from) {
    for (uint32_t i = 0; i < AttemptBound::kMostInVain; ++i) {
      const auto next = coordinator_.ResumeRepair(request_, After(grant, from));
      ASSERT_TRUE(next.ok()) << "from " << from << ": " << next.status();
      grant = *next;
    }
  }
  EXPECT_EQ(grant.part.attempt, 9 * AttemptBound::kMostInVain);
  coordinator_.FinishRepair(grant.repair_id, {absl::OkStatus(), 1000});
  EXPECT_EQ(journal_.records.at(grant.repair_id).state, RepairState::kDone);
}

// A list of many holes may name as many slices as before, though some have come.
TEST_F(AttemptBounds, ThatBringSomethingByWhatChecksToldDoNotCountEither) {
  RepairGrant grant = Begin();
  for (uint64_t attempt = 0; attempt < 3 * AttemptBound::kMostInVain; ++attempt) {
    ASSERT_TRUE(coordinator_
                    .CheckProgress(grant.repair_id, grant.part.attempt, 399 - attempt,
                                   /*quiet=*/false)
                    .ok());
    const auto next = coordinator_.ResumeRepair(request_, After(grant));
    ASSERT_TRUE(next.ok()) << next.status();
    grant = *next;
  }
}

TEST_F(AttemptBounds, WhatChecksToldBeforeIsNoNews) {
  RepairGrant grant = Begin();
  absl::Status status;
  int attempts = 0;
  for (; status.ok() && attempts < 100; ++attempts) {
    const auto checked =
        coordinator_.CheckProgress(grant.repair_id, grant.part.attempt, 390, false);
    ASSERT_TRUE(checked.ok()) << checked.status();
    const auto next = coordinator_.ResumeRepair(request_, After(grant));
    status = next.status();
    if (next.ok()) grant = *next;
  }
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(attempts, 17);
}

// Each of its helpers in turn is killed and started again: more than the code can lose, but for one
// at a time.
TEST_F(AttemptBounds, NodesThatComeBackHelpAgain) {
  RepairGrant grant = Begin();
  for (uint64_t start = 2; start < 10; ++start) {
    const std::string victim = helpers_.last[start % helpers_.last.size()].helper.node;
    helpers_.down = {victim};
    const auto next = coordinator_.ResumeRepair(request_, After(grant));
    ASSERT_TRUE(next.ok()) << "start " << start << ": " << next.status();
    grant = *next;
    helpers_.down.clear();
    NodeRecord again = FakeNode(victim);
    again.incarnation = start;
    ASSERT_TRUE(coordinator_.Register(again).ok());
  }
}

// Each handout finds another one that has lost its block, and as many are left as there must be.
TEST_F(AttemptBounds, ACallFindsAllWhoHaveLostTheirBlocks) {
  Stripe wide = catalog_.stripes["s1000"];
  wide.code = "rs(20,10)";
  for (int i = 6; i < 20; ++i) {
    const std::string number = std::to_string(i);
    wide.blocks.push_back({"w" + number, "w" + number});
    Register("w" + number);
  }
  catalog_.stripes["s1000"] = wide;
  // All but the last ten survivors, one at each handout.
  std::set<std::string> found;
  helpers_.on_handouts = [&](const std::vector<HelperGateway::Handout>& handouts) {
    helpers_.down.clear();
    for (const auto& handout : handouts) {
      if (found.size() == 9 || found.contains(handout.helper.node)) continue;
      found.insert(handout.helper.node);
      helpers_.down = {handout.helper.node};
      return;
    }
  };
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->part.attempt, 9u);
  for (const auto& handout : helpers_.last) EXPECT_FALSE(found.contains(handout.helper.node));
}

}  // namespace
}  // namespace ecpipe::attempt_bounds_test
