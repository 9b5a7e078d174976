// SPDX-License-Identifier: Apache-2.0
// What a part that failed has of the blocks that it stores, and the attempt after it.
#include <chrono>
#include <thread>

#include "unit/helper/sessions/sessions_fixture.h"

namespace ecpipe::kept_parts_test {
namespace {

using ::testing::HasSubstr;

// Hosts a block whose first half it has by itself, and whose second half never comes.
class KeptParts : public SessionManagerTest {
 protected:
  static RepairPart Hosting(RepairId repair_id, uint32_t attempt, std::vector<SliceRun> own) {
    RepairPart part = Part(repair_id, attempt);
    part.hops[0].outputs.clear();
    part.hops[0].stored_rows = {0};
    part.hops[0].slices = LaneSlices::Create(std::move(own), 10).value();
    part.stores = {{0, "new", 1000}};
    return part;
  }
  static RepairPart HalfHosting(RepairId repair_id) {
    RepairPart part = Hosting(repair_id, 0, {{0, 5, 1}});
    HopSpec& hop = part.hops.emplace_back();
    hop.lane = 1;
    hop.slices = LaneSlices::Create({{5, 5, 1}}, 10).value();
    hop.rows = {0};
    hop.inputs.push_back({{repair_id, 0, 1, 0, 0}, {}, "address", "far", {0}, {}});
    hop.stored_rows = {0};
    EXPECT_TRUE(ValidatePart(part).ok()) << ValidatePart(part);
    return part;
  }
  template <typename Condition>
  static void Await(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }
  // Attempt 0, ended for another one to follow.
  void KeepHalf(RepairId repair_id) {
    const uint64_t before = store_.written;
    ASSERT_TRUE(manager_->Start(HalfHosting(repair_id)).ok());
    Await([&] { return store_.written == before + 500; });
    Await([&] { return manager_->Progress(repair_id, 0)->missing_bytes == 500; });
    EXPECT_EQ(manager_->CancelAndKeep(repair_id, 0), 1u);
    Await([&] { return manager_->counts().active_sessions == 0; });
  }
};

TEST_F(KeptParts, TheNextAttemptGoesOnFromWhatIsVerified) {
  KeepHalf(1);
  EXPECT_EQ(manager_->counts().kept_parts, 1u);
  EXPECT_EQ(manager_->counts().buffer_bytes, 0u);
  const auto progress = manager_->Progress(1, 0);
  ASSERT_TRUE(progress.ok() && progress->missing) << progress.status();
  EXPECT_FALSE(progress->running);
  EXPECT_TRUE(absl::IsCancelled(progress->ended));
  EXPECT_EQ(*progress->missing, (std::vector<SliceRun>{{5, 5, 1}}));

  // Two slices of it come again.
  ASSERT_TRUE(manager_->Start(Hosting(1, 1, {{3, 7, 1}})).ok());
  const absl::Status ended = WaitForReports(2)[1].status;
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(store_.written, 1000u) << "each slice is written once";
  EXPECT_EQ(store_.created, 1);
  EXPECT_EQ(store_.committed, 1);
  EXPECT_EQ(store_.writers, 0);
  EXPECT_EQ(manager_->counts().kept_parts, 0u);
}

// What the fake reads back are zeros.
constexpr char kSha256OfZeros[] =
    "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53";

TEST_F(KeptParts, ABlockThatIsWhatItsManifestKnowsIsStored) {
  RepairPart part = Hosting(1, 0, {{0, 10, 1}});
  part.sha256 = {kSha256OfZeros};
  ASSERT_TRUE(manager_->Start(std::move(part)).ok());
  const absl::Status ended = WaitForReports(1)[0].status;
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(store_.committed, 1);
  EXPECT_EQ(store_.noted_sha256, kSha256OfZeros);
}

TEST_F(KeptParts, ABlockThatIsNotWhatItsManifestKnowsIsNotStored) {
  KeepHalf(1);
  RepairPart part = Hosting(1, 1, {{5, 5, 1}});
  // Of an attempt before, too: what counts is the block as a whole.
  part.sha256 = {std::string(64, '0')};
  ASSERT_TRUE(manager_->Start(std::move(part)).ok());
  const absl::Status ended = WaitForReports(2)[1].status;
  EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("block new was rebuilt with SHA-256 541b"));
  EXPECT_EQ(store_.committed, 0);
  Await([&] { return store_.writers == 0; });
  EXPECT_EQ(manager_->counts().kept_parts, 0u);
}

TEST_F(KeptParts, AnAttemptThatLacksSlicesStoresNothing) {
  KeepHalf(1);
  ASSERT_TRUE(manager_->Start(Hosting(1, 1, {{5, 3, 1}})).ok());
  const absl::Status ended = WaitForReports(2)[1].status;
  EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("lacks 2 slices"));
  EXPECT_EQ(store_.committed, 0);
  Await([&] { return store_.writers == 0; });
}

TEST_F(KeptParts, TheyExpire) {
  Make({.keep_for = std::chrono::milliseconds(20)});
  KeepHalf(1);
  Await([&] { return store_.writers == 0 && manager_->counts().kept_parts == 0; });
  EXPECT_FALSE(manager_->Progress(1, 0)->missing);
  ExpectRefused(Hosting(1, 1, {{5, 5, 1}}), absl::StatusCode::kFailedPrecondition,
                "cannot go on with block new: this helper no longer has the slices");
  ASSERT_TRUE(manager_->Start(Hosting(1, 1, {{0, 10, 1}})).ok()) << "one that brings all";
  EXPECT_TRUE(WaitForReports(2)[1].status.ok());
}

TEST_F(KeptParts, ACancelDiscardsThem) {
  KeepHalf(1);
  KeepHalf(2);
  EXPECT_EQ(manager_->Cancel(1, 0), 0u) << "nothing runs";
  EXPECT_EQ(manager_->counts().kept_parts, 1u);
  EXPECT_EQ(store_.writers, 1);
  ASSERT_TRUE(manager_->Start(HalfHosting(3)).ok());
  EXPECT_EQ(manager_->Cancel(3, 0), 1u);
  WaitForReports(3);
  EXPECT_EQ(store_.writers, 1) << "a part that is cancelled keeps nothing";
}

TEST_F(KeptParts, ShuttingDownDiscardsThem) {
  KeepHalf(1);
  ASSERT_TRUE(manager_->Start(HalfHosting(2)).ok());
  manager_->Drain(Duration(0));
  EXPECT_EQ(manager_->counts().kept_parts, 0u);
  EXPECT_EQ(store_.writers, 0);
}

TEST_F(KeptParts, TheyAreBounded) {
  Make({.max_sessions = 1});
  KeepHalf(1);
  KeepHalf(2);
  Await([&] { return store_.writers == 1; });
  EXPECT_TRUE(manager_->Progress(1, 0)->missing);
  EXPECT_FALSE(manager_->Progress(2, 0)->missing);
}

TEST_F(KeptParts, AnAttemptThatIsRefusedLeavesThem) {
  KeepHalf(1);
  RepairPart next = Hosting(1, 1, {{5, 5, 1}});
  next.hops[0].outputs.push_back({{1, 1, 0, 0, 0}, {}, "next", {0}});
  tcp_.refuse = true;
  EXPECT_TRUE(absl::IsAlreadyExists(manager_->Start(next).status()));
  EXPECT_EQ(manager_->counts().kept_parts, 1u);
  EXPECT_TRUE(manager_->Progress(1, 0)->missing);
  ASSERT_TRUE(manager_->Start(Hosting(1, 2, {{5, 5, 1}})).ok());
  EXPECT_TRUE(WaitForReports(2)[1].status.ok());
}

TEST_F(KeptParts, OtherBlocksOrSlicesDoNotGoOn) {
  KeepHalf(1);
  RepairPart other = Hosting(1, 1, {{5, 5, 1}});
  other.stores[0].block_id = "another";
  ExpectRefused(other, absl::StatusCode::kFailedPrecondition, "no longer has the slices");
  EXPECT_EQ(store_.writers, 0) << "and nobody else will ask for it";
}

TEST_F(KeptParts, AWriteThatFailsLeavesNothingToGoOnFrom) {
  store_.fail_write = true;
  ASSERT_TRUE(manager_->Start(HalfHosting(1)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(WaitForReports(1)[0].status));
  Await([&] { return store_.writers == 0; });
  EXPECT_EQ(manager_->counts().kept_parts, 0u);
}

}  // namespace
}  // namespace ecpipe::kept_parts_test
