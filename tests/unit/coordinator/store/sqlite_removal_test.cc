// SPDX-License-Identifier: Apache-2.0
// SqliteCatalog: stripes that are removed, calls that are only tried, and damaged stripes in lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/sqlite_catalog.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::sqlite_removal_test {
namespace {

using ::testing::HasSubstr;

// Stripe "s<number>" with blocks "b<number>-<i>" on nodes "n<i>".
Stripe MakeStripe(int number) {
  const std::string text = std::to_string(number);
  Stripe stripe{"s" + text, "rs-cauchy(4,2)", 1 << 20, {}, {}};
  for (int i = 0; i < 4; ++i) {
    const std::string index = std::to_string(i);
    stripe.blocks.push_back({"b" + text + "-" + index, "n" + index});
  }
  return stripe;
}

class SqliteRemovalTest : public testing::Test {
 protected:
  void SetUp() override {
    auto catalog = SqliteCatalog::Open(path_, {});
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
    ASSERT_TRUE(catalog_->Put({MakeStripe(1), MakeStripe(2), MakeStripe(3)}).ok());
  }

  // Changes the file behind the catalog's back.
  void Damage(const char* sql) {
    auto db = SqliteDb::Open(path_, {});
    ASSERT_TRUE(db.ok()) << db.status();
    ASSERT_TRUE((*db)->Run(sql).ok());
  }

  void ExpectAllThree() {
    EXPECT_EQ(catalog_->List("", 100).value().stripes,
              (std::vector<Stripe>{MakeStripe(1), MakeStripe(2), MakeStripe(3)}));
    EXPECT_EQ(catalog_->FindBlock("b1-0").value().stripe.stripe_id, "s1");
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.File("catalog.db");
  std::unique_ptr<SqliteCatalog> catalog_;
};

TEST_F(SqliteRemovalTest, RemovesAllStripesOrNone) {
  const absl::Status unknown = catalog_->Remove({"s1", "s7"}).status();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("s7"));
  ExpectAllThree();
  EXPECT_EQ(catalog_->Remove({"s1", "s3"}).value(),
            (std::vector<Stripe>{MakeStripe(1), MakeStripe(3)}));
  EXPECT_EQ(catalog_->List("", 100).value().stripes, std::vector<Stripe>{MakeStripe(2)});
  EXPECT_EQ(catalog_->CountStripes().value(), 1u);
  EXPECT_TRUE(absl::IsNotFound(catalog_->FindBlock("b1-0").status()));
  EXPECT_EQ(catalog_->ListNode("n0", "", 100).value().blocks.size(), 1u);
  // Its blocks may be of another stripe now.
  Stripe other = MakeStripe(1);
  other.stripe_id = "other";
  EXPECT_TRUE(catalog_->Put({other}).ok());
  EXPECT_EQ(catalog_->FindBlock("b1-0").value().stripe, other);
}

TEST_F(SqliteRemovalTest, ADamagedStripeCanBeRemoved) {
  Damage("UPDATE stripes SET code = 'rs(9,6)' WHERE stripe_id = 's1'");
  ASSERT_TRUE(absl::IsDataLoss(catalog_->FindStripe("s1").status()));
  EXPECT_EQ(catalog_->Remove({"s1"}).value().size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(catalog_->FindStripe("s1").status()));
  EXPECT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  ExpectAllThree();
}

TEST_F(SqliteRemovalTest, TryingToRemoveChangesNothing) {
  EXPECT_EQ(catalog_->TryRemove({"s3"}).value(), std::vector<Stripe>{MakeStripe(3)});
  EXPECT_TRUE(absl::IsNotFound(catalog_->TryRemove({"s1", "s7"}).status()));
  ExpectAllThree();
}

TEST_F(SqliteRemovalTest, TryingToPutSaysWhatPutWouldDo) {
  Stripe moved = MakeStripe(2);
  moved.blocks[0].node = "elsewhere";
  const PutCounts counts = catalog_->TryPut({MakeStripe(1), moved, MakeStripe(9)}).value();
  EXPECT_EQ(counts.added, 1u);
  EXPECT_EQ(counts.replaced, 1u);
  EXPECT_EQ(counts.unchanged, 1u);
  ExpectAllThree();
  Stripe thief = MakeStripe(9);
  thief.blocks[0].block_id = "b2-0";
  const absl::Status taken = catalog_->TryPut({thief}).status();
  EXPECT_EQ(taken, catalog_->Put({thief}).status());
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  Stripe bad = MakeStripe(9);
  bad.blocks[0].sha256 = "abc";
  EXPECT_EQ(catalog_->TryPut({bad}).status(), catalog_->Put({bad}).status());
  EXPECT_TRUE(absl::IsInvalidArgument(catalog_->TryPut({bad}).status()));
  ExpectAllThree();
  // What was tried has taken no names of nodes.
  EXPECT_TRUE(catalog_->Put({moved}).ok());
  EXPECT_EQ(catalog_->ListNode("elsewhere", "", 100).value().blocks.size(), 1u);
}

// Each with one page, and not all by name.
TEST_F(SqliteRemovalTest, DamagedStripesAreCountedOnceInAList) {
  ASSERT_TRUE(catalog_->Remove({"s1", "s2", "s3"}).ok());
  std::vector<Stripe> stripes;
  for (int i = 100; i < 400; ++i) stripes.push_back(MakeStripe(i));
  ASSERT_TRUE(catalog_->Put(stripes).ok());
  Damage("UPDATE stripes SET block_bytes = 7 WHERE stripe_id NOT IN ('s110', 's120')");
  const StripePage first = catalog_->List("", 1).value();
  EXPECT_EQ(first.stripes, std::vector<Stripe>{MakeStripe(110)});
  EXPECT_EQ(first.damaged_count, 10u);
  EXPECT_EQ(first.damaged.front(), "s100");
  EXPECT_EQ(catalog_->List("s110", 1).value().damaged_count, 9u);
  const StripePage last = catalog_->List("s120", 1).value();
  EXPECT_TRUE(last.stripes.empty());
  EXPECT_EQ(last.damaged_count, 279u);
  EXPECT_EQ(last.damaged.size(), kMaxNamedDamaged);
  EXPECT_EQ(last.damaged.back(), "s220");
}

// Of each of these a repair that began before knows nothing: what it has stored may be old.
TEST_F(SqliteRemovalTest, ABlockMovesOnlyInTheStripeAndFromThePlaceThatTheRepairSaw) {
  Stripe was = MakeStripe(1);
  Stripe loaded = was;
  loaded.block_bytes *= 2;
  Stripe renamed = was;
  renamed.blocks[0].block_id = "another";
  Stripe hashed = was;
  for (BlockPlace& place : hashed.blocks) place.sha256 = std::string(64, 'a');
  Stripe elsewhere = was;
  elsewhere.blocks[2].node = "n-other";
  for (const Stripe& now : {loaded, renamed, hashed, elsewhere}) {
    ASSERT_TRUE(catalog_->Put({now}).ok());
    const absl::Status moved = catalog_->MoveBlock("b1-2", "host", was);
    EXPECT_TRUE(absl::IsAborted(moved)) << moved;
    EXPECT_EQ(catalog_->FindStripe(was.stripe_id).value(), now);
  }
  // That others of its blocks have moved does not matter, nor that this move came twice.
  Stripe others = was;
  others.blocks[0].node = "n-other";
  ASSERT_TRUE(catalog_->Put({others}).ok());
  EXPECT_TRUE(catalog_->MoveBlock("b1-2", "host", was).ok());
  EXPECT_TRUE(catalog_->MoveBlock("b1-2", "host", was).ok());
  EXPECT_EQ(catalog_->FindBlock("b1-2")->stripe.blocks[2].node, "host");
}

TEST_F(SqliteRemovalTest, BlocksOfANodeAreCountedWhileThereAreSome) {
  using Counts = std::map<std::string, uint64_t>;
  ASSERT_TRUE(catalog_->MoveBlock("b1-2", "n4", MakeStripe(1)).ok());
  EXPECT_EQ(catalog_->CountBlocksBut({"n0"}).value(),
            (Counts{{"n1", 3}, {"n2", 2}, {"n3", 3}, {"n4", 1}}));
  ASSERT_TRUE(catalog_->Remove({"s1"}).ok());
  EXPECT_EQ(catalog_->CountBlocksBut({}).value(),
            (Counts{{"n0", 2}, {"n1", 2}, {"n2", 2}, {"n3", 2}}));
}

TEST_F(SqliteRemovalTest, AMovedBlockStaysWhereItIs) {
  ASSERT_TRUE(catalog_->MoveBlock("b1-2", "elsewhere", MakeStripe(1)).ok());
  Stripe moved = MakeStripe(1);
  moved.blocks[2].node = "elsewhere";
  EXPECT_EQ(catalog_->FindStripe("s1").value(), moved);
  catalog_ = SqliteCatalog::Open(path_, {}).value();
  EXPECT_EQ(catalog_->FindBlock("b1-2").value().stripe, moved);
  EXPECT_EQ(catalog_->FindStripe("s2").value(), MakeStripe(2));
  EXPECT_TRUE(absl::IsInvalidArgument(catalog_->MoveBlock("b1-2", "", moved)));
}

TEST_F(SqliteRemovalTest, PutTellsWhatItHasReplaced) {
  Stripe other = MakeStripe(2);
  other.blocks[1].node = "n-other";
  const PutCounts counts = catalog_->Put({MakeStripe(1), other, MakeStripe(4)}).value();
  EXPECT_EQ(counts.were, std::vector<Stripe>{MakeStripe(2)});
  EXPECT_EQ(counts.added, 1u);
  EXPECT_EQ(counts.unchanged, 1u);
}

}  // namespace
}  // namespace ecpipe::sqlite_removal_test
