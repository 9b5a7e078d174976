// SPDX-License-Identifier: Apache-2.0
// Repairs whose blocks helpers store, after a fault.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "coordinator/repairs/hosted_left.h"
#include "coordinator/repairs/hosted_watch.h"
#include "model/fault.h"
#include "unit/coordinator/repairs/hosted_fixture.h"

namespace ecpipe::hosted_attempts_test {
namespace {

class HostedAttempts : public HostedRepairs {
 protected:
  static absl::Status Lost(const std::string& node) {
    return WithFault(absl::UnavailableError("node " + node + " closed the stream"), node);
  }
  static PartProgress Ended(const absl::Status& status,
                            std::optional<std::vector<SliceRun>> missing) {
    PartProgress progress;
    progress.ended = status;
    progress.missing = std::move(missing);
    return progress;
  }
  // The host has all slices before `from`.
  void HostHas(uint32_t from, const std::string& faulty) {
    helpers_.answers["spare"] = Ended(Lost(faulty), {{{from, 10 - from, 1}}});
  }
  std::set<std::string> AtWork() const {
    std::set<std::string> nodes;
    for (const auto& handout : helpers_.last) nodes.insert(handout.helper.node);
    return nodes;
  }
};

TEST_F(HostedAttempts, AnotherOneBringsOnlyWhatTheHostLacks) {
  const RepairId id = Begin();
  ASSERT_TRUE(AtWork().contains("n3"));
  helpers_.down = {"n3"};
  HostHas(6, "n3");
  coordinator_.ReportPart("spare", id, 0, Lost("n3"));
  EXPECT_EQ(helpers_.ended, std::vector<uint32_t>{0}) << "its parts end, the host keeps its slices";
  EXPECT_TRUE(helpers_.cancelled.empty());
  EXPECT_TRUE(ends_.empty());
  ASSERT_EQ(helpers_.rounds, 2);
  EXPECT_FALSE(AtWork().contains("n3"));
  EXPECT_TRUE(AtWork().contains("n5"));
  for (const auto& handout : helpers_.last) {
    EXPECT_EQ(handout.part.attempt, 1u);
    EXPECT_EQ(handout.part.grid, helpers_.all[0][0].part.grid);
    EXPECT_EQ(handout.part.hops[0].slices.runs(), (std::vector<SliceRun>{{6, 4, 1}}));
  }
  EXPECT_EQ(PartOf("spare").stores[0].block_id, "b0");
  EXPECT_TRUE(PartOf("n5").background) << "it is a recovery's, still";
  EXPECT_EQ(coordinator_.Find(id)->attempt, 1u);
  coordinator_.ReportPart("spare", id, 0, absl::CancelledError("the attempt before"));
  EXPECT_EQ(helpers_.rounds, 2);
  coordinator_.ReportPart("spare", id, 1, absl::OkStatus());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok()) << ends_[0].status;
  EXPECT_EQ(catalog_.stripes["s1000"].blocks[0].node, "spare");
  EXPECT_EQ(journal_.records.at(id).state, RepairState::kDone);
}

TEST_F(HostedAttempts, AHostThatHasAllGetsASliceMoreToEndWith) {
  const RepairId id = Begin();
  helpers_.answers["spare"] = Ended(Lost("n3"), std::vector<SliceRun>{});
  coordinator_.ReportPart("spare", id, 0, Lost("n3"));
  ASSERT_EQ(helpers_.rounds, 2);
  EXPECT_EQ(PartOf("spare").hops[0].slices.runs(), (std::vector<SliceRun>{{9, 1, 1}}));
}

TEST_F(HostedAttempts, TheyAreBounded) {
  const RepairId id = Begin();
  HostHas(6, kFaultUnknown);
  for (uint32_t attempt = 0; ends_.empty() && attempt < 100; ++attempt) {
    coordinator_.ReportPart("spare", id, attempt, Lost(kFaultUnknown));
  }
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(Says(ends_[0].status, "given up after 16 attempts")) << ends_[0].status;
  EXPECT_EQ(helpers_.rounds, 17) << "the first brought six slices";
  EXPECT_EQ(helpers_.cancelled, std::vector<uint32_t>{16});
  EXPECT_EQ(coordinator_.counts().failed, 1u);
}

TEST_F(HostedAttempts, ThoseThatBringSomethingDoNotCount) {
  const RepairId id = Begin();
  uint32_t attempt = 0;
  for (uint32_t from = 1; from < 10; ++from) {
    HostHas(from, kFaultUnknown);
    for (uint32_t i = 0; i < AttemptBound::kMostInVain; ++i) {
      coordinator_.ReportPart("spare", id, attempt++, Lost(kFaultUnknown));
      ASSERT_TRUE(ends_.empty()) << "from " << from << ": " << ends_[0].status;
    }
  }
  coordinator_.ReportPart("spare", id, attempt, absl::OkStatus());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].status.ok()) << ends_[0].status;
}

TEST_F(HostedAttempts, OfSeveralHostsTheOnesThatAreDoneAreLeftInPeace) {
  RepairRequest request = Request("b0");
  request.block_ids = {"b0", "b3"};
  request.hosts = {"n0", "spare"};
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  const RepairId id = grant->repair_id;
  helpers_.answers["n0"] = Ended(absl::OkStatus(), std::nullopt);
  HostHas(8, kFaultUnknown);
  coordinator_.ReportPart("spare", id, 0, Lost(kFaultUnknown));
  EXPECT_EQ(catalog_.moves["b0"], 1) << "its host's own report has not come yet";
  ASSERT_EQ(helpers_.rounds, 2);
  ASSERT_EQ(PartOf("spare").stores.size(), 1u);
  EXPECT_EQ(PartOf("spare").stores[0].block_id, "b3");
  EXPECT_EQ(PartOf("spare").stores[0].row, 0);
  coordinator_.ReportPart("n0", id, 0, absl::OkStatus());
  // It helps now, if it is at work at all.
  coordinator_.ReportPart("n0", id, 1, absl::OkStatus());
  EXPECT_EQ(catalog_.moves["b0"], 1);
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kRunning);
  coordinator_.ReportPart("spare", id, 1, absl::OkStatus());
  EXPECT_EQ(coordinator_.Find(id)->state, RepairState::kDone);
  EXPECT_EQ(catalog_.stripes["s1000"].blocks[3].node, "spare");
  EXPECT_EQ(ends_.size(), 2u);
}

TEST_F(HostedAttempts, OfSeveralHostsTheNextOneBringsWhatAnyLacks) {
  const SliceGrid grid{0, 1000, 100};
  PartAnswers answers;
  answers.emplace("a", Ended(Lost("?"), {{{6, 4, 1}}}));
  answers.emplace("b", Ended(Lost("?"), {{{4, 1, 1}, {9, 1, 1}}}));
  HostedLeft left = LeftOnHosts(answers, grid);
  EXPECT_TRUE(left.fault.ok()) << left.fault;
  EXPECT_EQ(left.missing, (std::vector<SliceRun>{{4, 1, 1}, {6, 4, 1}}));
  answers.emplace("c", absl::UnavailableError("connection refused"));
  left = LeftOnHosts(answers, grid);
  EXPECT_TRUE(Says(left.fault, "node c")) << left.fault;
}

TEST_F(HostedAttempts, AThreadOfItsOwnTakesThemOn) {
  const RepairId id = Begin();
  HostHas(6, "n3");
  {
    HostedWatch watch;
    watch.Start(&coordinator_);
    listener_.on_fault = [&](RepairId fault) { return watch.OnHostedFault(fault); };
    coordinator_.ReportPart("spare", id, 0, Lost("n3"));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto attempt = [&] { return coordinator_.Find(id)->attempt; };
    while (attempt() == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(attempt(), 1u);
    watch.Stop();
    coordinator_.ReportPart("spare", id, 1, Lost("n2"));
    EXPECT_EQ(attempt(), 1u) << "the next coordinator finds it in the journal";
  }
  EXPECT_EQ(helpers_.rounds, 2);
}

}  // namespace
}  // namespace ecpipe::hosted_attempts_test
