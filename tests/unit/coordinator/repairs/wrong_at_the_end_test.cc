// SPDX-License-Identifier: Apache-2.0
// Repairs that bring a block with another SHA-256 than the catalog has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/upkeep/block_checker.h"
#include "model/fault.h"
#include "unit/coordinator/repairs/hosted_fixture.h"

namespace ecpipe::wrong_at_the_end_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const std::string kSha(64, 'a');

class WrongAtTheEnd : public HostedRepairs {
 protected:
  void SetUp() override {
    HostedRepairs::SetUp();
    for (BlockPlace& place : catalog_.stripes["s1000"].blocks) place.sha256 = kSha;
  }
  RepairId BeginForRequestor() {
    const auto grant = coordinator_.BeginRepair(Request("b0"));
    EXPECT_TRUE(grant.ok()) << grant.status();
    return grant.ok() ? grant->part.repair_id : 0;
  }
  std::vector<std::string> Marked() {
    std::vector<std::string> marked;
    for (const CorruptBlock& block : coordinator_.corrupt().All()) {
      marked.push_back(block.block_id + (block.suspect ? "?" : ""));
    }
    return marked;
  }
  std::vector<std::string> Helpers() const {
    std::vector<std::string> nodes;
    for (const auto& handout : helpers_.last) nodes.push_back(handout.helper.node);
    return nodes;
  }
  // b1 has another SHA-256 by now, though no store has checksums.
  void CheckAll() {
    BlockChecker checker(
        &coordinator_.corrupt(), &coordinator_.nodes(), &catalog_, &clock_,
        [](const HelperAddress&, const std::string& block_id, const std::stop_token&) {
          return WholeBlock{1000, block_id == "b1" ? std::string(64, 'b') : kSha, false};
        });
    while (checker.CheckNext()) {
    }
  }

  const absl::Status wrong_ = absl::DataLossError("b0 was rebuilt with another SHA-256");
};

TEST_F(WrongAtTheEnd, TheWrongOneOfKPlusOneIsFoundAndLeftOut) {
  coordinator_.FinishRepair(BeginForRequestor(), {wrong_, 1000});
  EXPECT_THAT(Helpers(), UnorderedElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_THAT(Marked(), UnorderedElementsAre("b1?", "b2?", "b3?", "b4?"));
  CheckAll();
  EXPECT_THAT(Marked(), ElementsAre("b1"));
  BeginForRequestor();
  EXPECT_THAT(Helpers(), UnorderedElementsAre("n2", "n3", "n4", "n5"));
}

TEST_F(WrongAtTheEnd, AlsoOfABlockThatAHostStores) {
  const RepairId id = Begin();
  helpers_.answers["spare"] = {.running = false, .ended = wrong_, .hops = {}};
  coordinator_.ReportPart("spare", id, 0, wrong_);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(ends_[0].status)) << ends_[0].status;
  EXPECT_THAT(Marked(), UnorderedElementsAre("b1?", "b2?", "b3?", "b4?"));
  CheckAll();
  Begin();
  EXPECT_THAT(Helpers(), Not(Contains("n1")));
}

TEST_F(WrongAtTheEnd, NobodyIsDoubtedWhereOneIsNamed) {
  const RepairId id = BeginForRequestor();
  coordinator_.ReportCorrupt("", id, "b2", "does not fit");
  coordinator_.FinishRepair(id, {wrong_, 0});
  EXPECT_THAT(Marked(), ElementsAre("b2?"));
}

TEST_F(WrongAtTheEnd, NorForAnotherFailureNorWithoutASha256) {
  coordinator_.FinishRepair(BeginForRequestor(), {absl::UnavailableError("the stream broke"), 0});
  EXPECT_THAT(Marked(), IsEmpty());
  for (BlockPlace& place : catalog_.stripes["s1000"].blocks) place.sha256 = "";
  coordinator_.FinishRepair(BeginForRequestor(), {wrong_, 1000});
  EXPECT_THAT(Marked(), IsEmpty());
}

}  // namespace
}  // namespace ecpipe::wrong_at_the_end_test
