// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/corrupt_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "coordinator/store/sqlite_marks.h"
#include "unit/coordinator/repairs/repairs_fixture.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::corrupt_blocks_test {
namespace {

TEST(CorruptBlocks, KnowsWhatWasAddedUntilItIsForgotten) {
  CorruptBlocks blocks;
  EXPECT_TRUE(blocks.Add({"b1", "n1", "flipped", 5}));
  EXPECT_FALSE(blocks.Add({"b1", "n1", "once more", 6}));
  EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped");
  EXPECT_EQ(blocks.Reason("b1", "n2"), "") << "another copy";
  EXPECT_EQ(blocks.Reason("b2", "n1"), "");
  EXPECT_TRUE(blocks.Add({"b1", "n2", "there, too", 7}));
  ASSERT_EQ(blocks.All().size(), 2u);
  EXPECT_EQ(blocks.All()[1].node, "n2");
  EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped") << "what is said of one says nothing of another";
  EXPECT_EQ(blocks.found(), 2u);
  EXPECT_TRUE(blocks.HasAnyOf({"b0", "b1"}));
  EXPECT_FALSE(blocks.HasAnyOf({"b0", "b2"}));
  blocks.Forget("b1");
  blocks.Forget("b1");
  EXPECT_TRUE(blocks.All().empty());
  EXPECT_EQ(blocks.Reason("b1", "n2"), "");
}

TEST(CorruptBlocks, AWordAboutAnotherCopyReplacesNoFinding) {
  const ScratchDirectory directory;
  const std::string path = directory.File("marks.db");
  {
    const auto store = SqliteMarks::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    CorruptBlocks blocks(store->get());
    EXPECT_TRUE(blocks.Add({"b1", "n1", "flipped", 5}));
    EXPECT_TRUE(blocks.Add({"b1", "n2", "says somebody", 6, /*suspect=*/true}));
    EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped");
    EXPECT_EQ(blocks.Suspicion("b1", "n2"), "says somebody");
    const auto due = blocks.NextCheck({});
    ASSERT_TRUE(due);
    EXPECT_EQ(due->block.node, "n2");
    blocks.Decide(*due, CorruptBlocks::Verdict::kSound, "", {});
    EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped");
    EXPECT_TRUE(blocks.Add({"b1", "n3", "flipped, too", 7}));
    EXPECT_TRUE(blocks.Forget("b1", "n3")) << "it was stored anew";
    EXPECT_FALSE(blocks.Forget("b1", "n3"));
  }
  const auto store = SqliteMarks::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  CorruptBlocks blocks(store->get());
  ASSERT_TRUE(blocks.Restore().ok());
  ASSERT_EQ(blocks.All().size(), 1u);
  EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped");
}

TEST(CorruptBlocks, TheStoreTakesOverTheMarksOfAnEarlierVersion) {
  const ScratchDirectory directory;
  const std::string path = directory.File("marks.db");
  ASSERT_TRUE(SqliteMarks::Open(path).ok());
  {
    const auto db = SqliteDb::Open(path, {});
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status made = (*db)->Run(
        "DROP TABLE marks; CREATE TABLE corrupt_blocks("
        " block_id TEXT PRIMARY KEY, node TEXT NOT NULL, reason TEXT NOT NULL,"
        " found_unix_ms BIGINT NOT NULL, suspect INTEGER NOT NULL);"
        "INSERT INTO corrupt_blocks VALUES('b1', 'n1', 'flipped', 5, 0)");
    ASSERT_TRUE(made.ok()) << made;
  }
  for (int start = 0; start < 2; ++start) {
    const auto store = SqliteMarks::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto kept = (*store)->Load();
    ASSERT_TRUE(kept.ok() && kept->size() == 1) << kept.status();
    EXPECT_EQ((*kept)[0].reason, "flipped");
  }
}

TEST(CorruptBlocks, AreBoundedAndWhatIsProvedStays) {
  CorruptBlocks blocks;
  for (size_t i = 0; i < CorruptBlocks::kMost; ++i) {
    EXPECT_TRUE(blocks.Add({"b" + std::to_string(i), "n", std::string(10'000, 'x'), 0}));
  }
  EXPECT_FALSE(blocks.Add({"one-more", "n", "flipped", 0}));
  EXPECT_EQ(blocks.refused(), 1u);
  EXPECT_EQ(blocks.found(), CorruptBlocks::kMost);
  EXPECT_EQ(blocks.All().size(), CorruptBlocks::kMost);
  EXPECT_EQ(blocks.Reason("b0", "n").size(), CorruptBlocks::kMaxReasonBytes)
      << "the oldest is not trusted again";
  EXPECT_TRUE(blocks.Forget("b1"));
  EXPECT_TRUE(blocks.Add({"one-more", "n", "flipped", 0}));
  EXPECT_EQ(blocks.Reason("one-more", "n"), "flipped");
}

using Verdict = CorruptBlocks::Verdict;

CorruptBlock Suspect(const std::string& block_id, const std::string& node) {
  return {block_id, node, "says somebody", 5, /*suspect=*/true, "", 0};
}

TEST(CorruptBlocks, WordsDriveOutNoFinding) {
  CorruptBlocks blocks;
  blocks.Add({"found", "n", "flipped", 0});
  for (size_t i = 0; i < 2 * CorruptBlocks::kMost; ++i) {
    blocks.Add(Suspect("b" + std::to_string(i), "n"));
  }
  EXPECT_EQ(blocks.All().size(), CorruptBlocks::kMost);
  EXPECT_EQ(blocks.Reason("found", "n"), "flipped");
  EXPECT_EQ(blocks.found(), 1u);
}

TEST(CorruptBlocks, ASuspectIsNotCorruptUntilItsHelperSaysSo) {
  CorruptBlocks blocks;
  EXPECT_TRUE(blocks.Add(Suspect("b1", "n1")));
  EXPECT_EQ(blocks.Reason("b1", "n1"), "");
  EXPECT_EQ(blocks.Suspicion("b1", "n1"), "says somebody");
  EXPECT_FALSE(blocks.HasAnyOf({"b1"}));
  EXPECT_TRUE(blocks.Add({"b1", "n1", "flipped", 6}));
  EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped");
  EXPECT_EQ(blocks.Suspicion("b1", "n1"), "");
  EXPECT_FALSE(blocks.Add(Suspect("b1", "n1"))) << "it is known";
  EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped");
}

TEST(CorruptBlocks, AChecksVerdictHolds) {
  CorruptBlocks blocks;
  const TimePoint now{};
  for (const char* id : {"sound", "corrupt", "undecided", "silent"}) blocks.Add(Suspect(id, "n"));
  for (const auto& [id, verdict] :
       std::vector<std::pair<std::string, Verdict>>{{"sound", Verdict::kSound},
                                                    {"corrupt", Verdict::kCorrupt},
                                                    {"undecided", Verdict::kUndecided},
                                                    {"silent", Verdict::kAskAgain}}) {
    const auto due = blocks.NextCheck(now);
    ASSERT_TRUE(due);
    EXPECT_EQ(due->block.block_id, id) << "the oldest first";
    EXPECT_EQ(blocks.Decide(*due, verdict, "why", now), verdict == Verdict::kCorrupt);
  }
  EXPECT_FALSE(blocks.NextCheck(now)) << "each is asked once";
  EXPECT_EQ(blocks.All().size(), 3u);
  EXPECT_EQ(blocks.Reason("corrupt", "n"), "why");
  EXPECT_EQ(blocks.Suspicion("undecided", "n"), "says somebody (why)");
  const auto again = blocks.NextCheck(now + CorruptBlocks::kCheckAgain);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->block.block_id, "silent");
}

TEST(CorruptBlocks, AVerdictAboutAnEarlierMarkCountsNoMore) {
  CorruptBlocks blocks;
  blocks.Add(Suspect("b", "n"));
  const auto due = blocks.NextCheck({});
  ASSERT_TRUE(due);
  EXPECT_TRUE(blocks.Forget("b")) << "it is stored anew";
  EXPECT_FALSE(blocks.Decide(*due, Verdict::kCorrupt, "as it was", {}));
  EXPECT_TRUE(blocks.All().empty());
  blocks.Add({"b", "n", "and flipped again", 7});
  blocks.Decide(*due, Verdict::kSound, "as it was", {});
  EXPECT_EQ(blocks.Reason("b", "n"), "and flipped again");
}

TEST(CorruptBlocks, OutliveTheProcessUntilTheyAreRepairedOrProvedSound) {
  const ScratchDirectory directory;
  const std::string path = directory.File("marks.db");
  {
    const auto store = SqliteMarks::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    CorruptBlocks blocks(store->get());
    blocks.Add({"repaired", "n1", "flipped", 1});
    blocks.Add({"corrupt", "n2", "flipped", 2});
    blocks.Add(Suspect("sound", "n3"));
    blocks.Add(Suspect("suspect", "n4"));
    blocks.Forget("repaired");
    blocks.Decide(*blocks.NextCheck({}), Verdict::kSound, "", {});
  }
  const auto store = SqliteMarks::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  CorruptBlocks blocks(store->get());
  ASSERT_TRUE(blocks.Restore().ok());
  ASSERT_EQ(blocks.All().size(), 2u);
  EXPECT_EQ(blocks.Reason("corrupt", "n2"), "flipped");
  EXPECT_EQ(blocks.Suspicion("suspect", "n4"), "says somebody");
  ASSERT_TRUE(blocks.NextCheck({})) << "it is checked by the new process";
  EXPECT_EQ(blocks.NextCheck({})->block.block_id, "suspect");
}

class CorruptReports : public Repairs {
 protected:
  std::vector<std::string> Helpers() {
    std::vector<std::string> nodes;
    for (const auto& handout : helpers_.last) nodes.push_back(handout.helper.node);
    return nodes;
  }
  bool Helps(const std::string& node) {
    const std::vector<std::string> nodes = Helpers();
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }
};

TEST_F(CorruptReports, ACorruptBlockIsNoSourceUntilItIsStoredAnew) {
  coordinator_.ReportCorrupt("n2", 1, "b2", "does not match");
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  EXPECT_FALSE(Helps("n2"));
  coordinator_.ReportCorrupt("n3", 1, "b3", "does not match either");
  const absl::Status status = coordinator_.BeginRepair(Request("b0")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Says(status, "b2 on n2: it is corrupt: does not match")) << status;
  EXPECT_TRUE(Says(coordinator_.BeginRepair(Request("b2", "direct")).status(), "it is corrupt"));
}

TEST_F(CorruptReports, ARepairInPlaceDecodesFromTheOthersAndClearsIt) {
  coordinator_.ReportCorrupt("n2", 1, "b2", "does not match");
  RepairRequest request = Request("b2");
  request.hosts = {"n2"};
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  for (const auto& handout : helpers_.last) {
    for (const HopSpec& hop : handout.part.hops) {
      EXPECT_TRUE(!hop.block || hop.block->block_id != "b2");
    }
  }
  for (const std::string& node : Helpers()) {
    coordinator_.ReportPart(node, grant->repair_id, 0, absl::OkStatus());
  }
  EXPECT_EQ(journal_.records.at(grant->repair_id).state, RepairState::kDone);
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
}

TEST_F(CorruptReports, OnlyThoseWhoCanKnowAreHeard) {
  coordinator_.ReportCorrupt("n1", 1, "b2", "says a stranger");
  coordinator_.ReportCorrupt("", 1, "b2", "says nobody's requestor");
  coordinator_.ReportCorrupt("n2", 1, "no-such-block", "");
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  coordinator_.ReportCorrupt("n1", grant->repair_id, "b2", "says a helper that sees no rows");
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
  coordinator_.ReportCorrupt("", grant->repair_id, "b2", "parity");
  ASSERT_EQ(coordinator_.corrupt().All().size(), 1u);
  EXPECT_EQ(coordinator_.corrupt().All()[0].node, "n2");
  EXPECT_TRUE(coordinator_.corrupt().All()[0].suspect) << "a word, not a finding";
}

// Whoever may repair may lie. rs(6,4) has six blocks, and two of them may be missing.
TEST_F(CorruptReports, WordsMakeNoStripeUnreadable) {
  for (int i = 0; i < 6; ++i) {
    const auto grant = coordinator_.BeginRepair(Request("b" + std::to_string((i + 1) % 6)));
    ASSERT_TRUE(grant.ok()) << i << ": " << grant.status();
    coordinator_.ReportCorrupt("", grant->repair_id, "b" + std::to_string(i), "a lie");
    coordinator_.FinishRepair(grant->repair_id, {absl::OkStatus(), 1000});
  }
  EXPECT_EQ(coordinator_.corrupt().All().size(), 6u);
  EXPECT_EQ(coordinator_.corrupt().found(), 0u);
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->part.check.rows, 1u) << "what is called corrupt has to prove that it is not";
  // Its helper has read it, and calls it sound.
  while (const auto due = coordinator_.corrupt().NextCheck(clock_.Now())) {
    coordinator_.corrupt().Decide(*due, Verdict::kSound, "", clock_.Now());
  }
  EXPECT_TRUE(coordinator_.BeginRepair(Request("b0", "direct")).ok());
  EXPECT_EQ(coordinator_.BeginRepair(Request("b0"))->part.check.rows, 0u);
}

TEST_F(CorruptReports, ASuspectIsAvoidedWhereOthersWillDo) {
  const auto first = coordinator_.BeginRepair(Request("b0"));
  coordinator_.ReportCorrupt("", first->repair_id, "b2", "parity");
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_FALSE(Helps("n2"));
  EXPECT_EQ(grant->part.check.rows, 0u);
  EXPECT_TRUE(Says(coordinator_.BeginRepair(Request("b2", "direct")).status(),
                   "it is called corrupt and not yet checked: parity"));
  // Too few without it, and too few to prove it right.
  clock_.Advance(std::chrono::seconds(4));
  for (const char* node : {"n0", "n1", "n2", "n4", "n5"}) Register(node);
  clock_.Advance(std::chrono::seconds(2));  // n3 is dead
  const absl::Status status = coordinator_.BeginRepair(Request("b0")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Says(status, "b2 on n2: it is called corrupt")) << status;
}

// rs(6,4) without b0 has the k + 1 survivors of parity, and with two check rows one more is needed.
TEST_F(CorruptReports, AnAttemptGoesOnWithoutTheBlockThatWasLocated) {
  RepairRequest request = Request("b0");
  request.verify = Verification::kParity;
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  request.verify = Verification::kLocate;
  ResumePoint from;
  from.repair_id = grant->repair_id;
  from.left = {grant->part.grid, {{3, 2, 1}}};
  from.scheme = "rp";
  from.failure = absl::DataLossError("a block is corrupt");
  const auto again = coordinator_.ResumeRepair(request, from);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->part.check.rows, 1u);
}

TEST_F(CorruptReports, ABlockOfAnotherLengthIsCorrupt) {
  helpers_.wrong = {"n2"};
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  ASSERT_EQ(coordinator_.corrupt().All().size(), 1u);
  EXPECT_EQ(coordinator_.corrupt().All()[0].block_id, "b2");
  EXPECT_FALSE(coordinator_.corrupt().All()[0].suspect);
}

TEST_F(CorruptReports, AnotherBlockOfItsNameIsCorruptUnlessItIsTheRightOneByNow) {
  std::vector<BlockPlace>& places = catalog_.stripes["s1000"].blocks;
  for (BlockPlace& place : places) place.sha256 = std::string(64, 'a');
  helpers_.stored_sha256 = {{"b2", std::string(64, 'b')}};
  // Its manifest is loaded while the helper is asked, and that was said of what was before.
  helpers_.on_handouts = [&](const auto&) { places[2].sha256 = std::string(64, 'b'); };
  EXPECT_TRUE(absl::IsAborted(coordinator_.BeginRepair(Request("b0")).status()));
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
  helpers_.on_handouts = nullptr;
  places[2].sha256 = std::string(64, 'a');
  EXPECT_TRUE(coordinator_.BeginRepair(Request("b0")).ok()) << "the others do";
  ASSERT_EQ(coordinator_.corrupt().All().size(), 1u);
  EXPECT_EQ(coordinator_.corrupt().All()[0].block_id, "b2");
  EXPECT_FALSE(coordinator_.corrupt().All()[0].suspect);
}

TEST_F(CorruptReports, AReadTakesTheBlockItselfIfNothingSpeaksAgainstIt) {
  RepairRequest request = Request("b0", "auto");
  request.prefer_direct = true;
  const auto direct = coordinator_.BeginRepair(request);
  ASSERT_TRUE(direct.ok()) << direct.status();
  EXPECT_EQ(direct->scheme, "direct");
  EXPECT_EQ(Helpers(), std::vector<std::string>{"n0"});
  // The rest is rebuilt when its node fails.
  ResumePoint from;
  from.repair_id = direct->repair_id;
  from.left = {direct->part.grid, {{3, 2, 1}}};
  from.scheme = direct->scheme;
  from.failure = absl::UnavailableError("n0 has gone");
  const auto rebuilt = coordinator_.ResumeRepair(request, from);
  ASSERT_TRUE(rebuilt.ok()) << rebuilt.status();
  EXPECT_NE(rebuilt->scheme, "direct");
  EXPECT_FALSE(Helps("n0"));
  // A helper that does not have it refuses.
  helpers_.down = {"n0"};
  EXPECT_NE(coordinator_.BeginRepair(request)->scheme, "direct");
  helpers_.down.clear();
  coordinator_.ReportCorrupt("n0", 1, "b0", "flipped");
  EXPECT_NE(coordinator_.BeginRepair(request)->scheme, "direct");
  coordinator_.corrupt().Forget("b0");
  request.verify = Verification::kParity;
  request.block_ids = {"b1"};
  EXPECT_NE(coordinator_.BeginRepair(request)->scheme, "direct");
  request.verify.reset();
  request.scheme = "rp";
  EXPECT_EQ(coordinator_.BeginRepair(request)->scheme, "rp");
}

TEST_F(CorruptReports, VerificationReadsMoreSurvivorsOrSaysWhyItCannot) {
  RepairRequest request = Request("b0");
  request.verify = Verification::kParity;
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(helpers_.last.size(), 5u);
  EXPECT_EQ(grant->part.check.rows, 1u);
  EXPECT_EQ(grant->part.check.sources.size(), 5u);
  EXPECT_EQ(grant->part.hops[0].stored_rows.size(), 2u);
  request.verify = Verification::kLocate;
  const absl::Status two = coordinator_.BeginRepair(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(two)) << two;
  EXPECT_TRUE(Says(two, "needs 6 survivors, but only 5 can be used")) << two;
  request.scheme = "direct";
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BeginRepair(request).status()));
  EXPECT_FALSE(VerificationNamed("maybe").ok());
}

}  // namespace
}  // namespace ecpipe::corrupt_blocks_test
