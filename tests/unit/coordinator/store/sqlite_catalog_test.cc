// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::sqlite_catalog_test {
namespace {

using ::testing::HasSubstr;

std::string Text(int number) { return std::to_string(number); }

// Stripe "s<number>" with blocks "b<number>-<i>" on nodes "n<i>".
Stripe MakeStripe(int number, int n = 4) {
  Stripe stripe{"s" + Text(number), "rs-cauchy(4,2)", 1 << 20, {}};
  for (int i = 0; i < n; ++i) {
    stripe.blocks.push_back({"b" + Text(number) + "-" + Text(i), "n" + Text(i)});
  }
  return stripe;
}

class SqliteCatalogTest : public testing::Test {
 protected:
  void SetUp() override { Open({}); }

  void Open(const SqliteCatalog::Options& options) {
    catalog_.reset();
    auto catalog = SqliteCatalog::Open(path_, options);
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
  }

  // Of the stripe as it is now.
  absl::Status Move(const std::string& block_id, const std::string& node) {
    const auto found = catalog_->FindBlock(block_id);
    return catalog_->MoveBlock(block_id, node, found.ok() ? found->stripe : Stripe{});
  }

  // Changes the file behind the catalog's back.
  void Damage(const char* sql) {
    auto db = SqliteDb::Open(path_, {});
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status status = (*db)->Run(sql);
    ASSERT_TRUE(status.ok()) << status;
  }

  int64_t Query(const char* sql) {
    auto db = SqliteDb::Open(path_, {});
    EXPECT_TRUE(db.ok()) << db.status();
    auto query = (*db)->Prepare(sql);
    EXPECT_TRUE(query.ok()) << query.status();
    EXPECT_TRUE(query->Step().value_or(false));
    return query->Int(0);
  }

  void ExpectFound(const Stripe& stripe) {
    for (size_t i = 0; i < stripe.blocks.size(); ++i) {
      const auto found = catalog_->FindBlock(stripe.blocks[i].block_id);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->stripe, stripe);
      EXPECT_EQ(found->block_index, static_cast<int>(i));
    }
    EXPECT_EQ(catalog_->FindStripe(stripe.stripe_id).value_or(Stripe{}), stripe);
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.File("ecpipe.db");
  std::unique_ptr<SqliteCatalog> catalog_;
};

TEST_F(SqliteCatalogTest, EmptyCatalog) {
  EXPECT_EQ(catalog_->CountStripes().value(), 0u);
  EXPECT_TRUE(catalog_->List("", 10).value().stripes.empty());
  const absl::Status missing = catalog_->FindBlock("b").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("\"b\""));
  EXPECT_TRUE(absl::IsNotFound(catalog_->FindStripe("s").status()));
  EXPECT_TRUE(absl::IsNotFound(catalog_->MoveBlock("b", "n", {})));
  EXPECT_TRUE(catalog_->Put({}).ok());
}

TEST_F(SqliteCatalogTest, PutThenFindAndAfterARestart) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(2), MakeStripe(1)}).ok());
  for (int restart = 0; restart < 2; ++restart) {
    ExpectFound(MakeStripe(1));
    ExpectFound(MakeStripe(2));
    EXPECT_EQ(catalog_->CountStripes().value(), 2u);
    EXPECT_TRUE(absl::IsNotFound(catalog_->FindBlock("b1-4").status()));
    Open({});
  }
}

TEST_F(SqliteCatalogTest, ListGoesInPages) {
  std::vector<Stripe> stripes;
  for (int i = 10; i < 35; ++i) stripes.push_back(MakeStripe(i));
  ASSERT_TRUE(catalog_->Put(stripes).ok());
  std::vector<Stripe> listed;
  std::string after;
  while (true) {
    const auto page = catalog_->List(after, 10);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->damaged_count, 0u);
    if (page->stripes.empty()) break;
    EXPECT_LE(page->stripes.size(), 10u);
    listed.insert(listed.end(), page->stripes.begin(), page->stripes.end());
    after = listed.back().stripe_id;
  }
  EXPECT_EQ(listed, stripes);
  EXPECT_TRUE(absl::IsInvalidArgument(catalog_->List("", 0).status()));
  EXPECT_EQ(catalog_->List("", INT_MAX).value().stripes.size(), 25u);
}

TEST_F(SqliteCatalogTest, ReplacingForgetsTheOldBlocks) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1), MakeStripe(2)}).ok());
  Stripe changed = MakeStripe(1);
  changed.code = "rs-cauchy(5,3)";
  changed.block_bytes = UINT64_MAX;
  changed.blocks = {{"b1-1", "m1"}, {"new", "m2"}, {"b1-0", "n0"}};
  ASSERT_TRUE(catalog_->Put({changed}).ok());
  ExpectFound(changed);
  ExpectFound(MakeStripe(2));
  EXPECT_TRUE(absl::IsNotFound(catalog_->FindBlock("b1-2").status()));
  EXPECT_EQ(catalog_->CountStripes().value(), 2u);
  EXPECT_EQ(Query("SELECT count(*) FROM blocks"), 3 + 4);
}

TEST_F(SqliteCatalogTest, PuttingTheSameAgainAddsNothing) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  ExpectFound(MakeStripe(1));
  EXPECT_EQ(catalog_->CountStripes().value(), 1u);
  EXPECT_EQ(Query("SELECT count(*) FROM blocks"), 4);
}

TEST_F(SqliteCatalogTest, ABlockBelongsToOneStripe) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  Stripe thief = MakeStripe(2);
  thief.blocks[2].block_id = "b1-3";
  const absl::Status status = catalog_->Put({MakeStripe(3), thief}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  for (const char* name : {"\"b1-3\"", "\"s1\"", "\"s2\""}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
  // Nothing of the batch was stored, and its new names are not taken for stored ones later.
  EXPECT_TRUE(absl::IsNotFound(catalog_->FindStripe("s3").status()));
  EXPECT_TRUE(absl::IsNotFound(catalog_->FindBlock("b2-0").status()));
  EXPECT_EQ(catalog_->CountStripes().value(), 1u);
  ExpectFound(MakeStripe(1));
}

TEST_F(SqliteCatalogTest, ABlockInTwoStripesOfABatch) {
  Stripe thief = MakeStripe(2);
  thief.blocks[0].block_id = "b1-3";
  EXPECT_TRUE(absl::IsAlreadyExists(catalog_->Put({MakeStripe(1), thief}).status()));
  EXPECT_EQ(catalog_->CountStripes().value(), 0u);
}

TEST_F(SqliteCatalogTest, ABlockMayChangeItsStripeWithinABatch) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1), MakeStripe(2)}).ok());
  Stripe one = MakeStripe(1);
  Stripe two = MakeStripe(2);
  std::swap(one.blocks[0], two.blocks[0]);
  ASSERT_TRUE(catalog_->Put({two, one}).ok());
  ExpectFound(one);
  ExpectFound(two);
}

TEST_F(SqliteCatalogTest, NamesOfARolledBackPutAreForgotten) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  Stripe failing = MakeStripe(2);
  failing.code = "code-x";
  failing.blocks[0] = {"b1-0", "node-x"};  // takes the number that node-y gets below
  ASSERT_FALSE(catalog_->Put({failing}).ok());
  Stripe good = MakeStripe(3);
  good.code = "code-y";
  good.blocks[0].node = "node-y";
  ASSERT_TRUE(catalog_->Put({good}).ok());
  ExpectFound(good);
  Open({});
  ExpectFound(good);
}

TEST_F(SqliteCatalogTest, BadStripesAreRefused) {
  std::vector<Stripe> bad(12, MakeStripe(1));
  bad[0].stripe_id = "";
  bad[1].stripe_id = std::string(kMaxCatalogIdBytes + 1, 's');
  bad[2].blocks.clear();
  bad[3].blocks[1].block_id = "";
  bad[4].blocks[1].block_id = std::string(kMaxCatalogIdBytes + 1, 'b');
  bad[5].blocks[1].block_id = bad[5].blocks[3].block_id;
  bad[6].block_bytes = 0;
  bad[7] = MakeStripe(1, kMaxStripeBlocks + 1);
  bad[8].blocks[0].node = "";
  bad[9].code = "";
  for (BlockPlace& block : bad[10].blocks) block.sha256 = std::string(63, 'a');
  bad[11].blocks[2].sha256 = std::string(64, 'a');  // and no other one
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_TRUE(absl::IsInvalidArgument(catalog_->Put({MakeStripe(7), bad[i]}).status())) << i;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(catalog_->Put({MakeStripe(1), MakeStripe(1)}).status()));
  Stripe ragged = MakeStripe(1);
  ragged.block_lengths.assign(ragged.blocks.size(), ragged.block_bytes);
  EXPECT_TRUE(absl::IsInvalidArgument(catalog_->Put({ragged}).status()));
  EXPECT_EQ(catalog_->CountStripes().value(), 0u);
}

TEST_F(SqliteCatalogTest, ChecksumsOfBlocksAreKept) {
  Stripe stripe = MakeStripe(1);
  for (BlockPlace& block : stripe.blocks) block.sha256 = std::string(64, block.block_id.back());
  ASSERT_TRUE(catalog_->Put({MakeStripe(1), MakeStripe(2)}).ok());
  ASSERT_TRUE(catalog_->Put({stripe}).ok());
  Open({});
  ExpectFound(stripe);
  ExpectFound(MakeStripe(2));
  ASSERT_TRUE(Move("b1-2", "n9").ok());
  stripe.blocks[2].node = "n9";
  ExpectFound(stripe);
}

TEST_F(SqliteCatalogTest, OddIdsAndLimits) {
  Stripe odd = MakeStripe(1);
  odd.stripe_id = std::string("nul\0 quote' \xff\xfe", 14);
  odd.blocks[0].block_id = std::string("\0", 1);
  odd.blocks[1].block_id = "'; DROP TABLE stripes; --";
  odd.blocks[2].block_id = std::string("a\0b", 3);
  odd.blocks[3].block_id = "a";
  odd.blocks[3].node = "\xf0\x9f\x98\x80";
  Stripe largest = MakeStripe(2, kMaxStripeBlocks);
  largest.stripe_id = std::string(kMaxCatalogIdBytes, 's');
  for (size_t i = 0; i < largest.blocks.size(); ++i) {
    largest.blocks[i].block_id.resize(kMaxCatalogIdBytes, 'x');
    largest.blocks[i].node = Text(static_cast<int>(i)) + std::string(200, 'n');
  }
  ASSERT_TRUE(catalog_->Put({odd, largest}).ok());
  Open({});
  ExpectFound(odd);
  ExpectFound(largest);
  EXPECT_EQ(catalog_->List("", 10).value().stripes, (std::vector<Stripe>{odd, largest}));
}

// What a recovery of `node` would see, in pages of two stripes.
std::vector<std::pair<std::string, Stripe>> BlocksOn(Catalog* catalog, const std::string& node) {
  std::vector<std::pair<std::string, Stripe>> blocks;
  std::string next;
  do {
    const auto page = catalog->ListNode(node, next, 2);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return blocks;
    for (const NodeBlock& block : page->blocks) {
      blocks.emplace_back(block.block_id, block.stripe.value_or(Stripe{}));
    }
    EXPECT_LE(page->blocks.size(), 4u);
    next = page->next;
  } while (!next.empty());
  return blocks;
}

TEST_F(SqliteCatalogTest, ListsTheBlocksOfANode) {
  std::vector<Stripe> stripes;
  for (int i = 10; i < 15; ++i) stripes.push_back(MakeStripe(i));
  stripes[1].blocks[3].node = "n0";  // which then has two of this stripe
  stripes[2].blocks[0].node = "m";
  ASSERT_TRUE(catalog_->Put(stripes).ok());
  using Blocks = std::vector<std::pair<std::string, Stripe>>;
  EXPECT_EQ(BlocksOn(catalog_.get(), "n0"), (Blocks{{"b10-0", stripes[0]},
                                                    {"b11-0", stripes[1]},
                                                    {"b11-3", stripes[1]},
                                                    {"b13-0", stripes[3]},
                                                    {"b14-0", stripes[4]}}));
  EXPECT_EQ(BlocksOn(catalog_.get(), "m"), (Blocks{{"b12-0", stripes[2]}}));
  EXPECT_EQ(BlocksOn(catalog_.get(), "nobody"), Blocks{});

  ASSERT_TRUE(Move("b12-0", "n0").ok());
  EXPECT_EQ(BlocksOn(catalog_.get(), "m"), Blocks{});
  EXPECT_EQ(BlocksOn(catalog_.get(), "n0").size(), 6u);
  stripes[1].blocks.pop_back();
  ASSERT_TRUE(catalog_->Put({stripes[1]}).ok());
  EXPECT_EQ(BlocksOn(catalog_.get(), "n0").size(), 5u);
  EXPECT_EQ(catalog_->ListNode("n0", "", 6)->next, "") << "the last page says so";

  EXPECT_TRUE(absl::IsInvalidArgument(catalog_->ListNode("n0", "", 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(catalog_->ListNode("n0", "s10", 1).status()));
}

TEST_F(SqliteCatalogTest, BlocksThatMoveAwayDoNotDisturbAListing) {
  for (int i = 10; i < 20; ++i) ASSERT_TRUE(catalog_->Put({MakeStripe(i)}).ok());
  std::vector<std::string> listed;
  std::string next;
  do {
    const auto page = catalog_->ListNode("n0", next, 3);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const NodeBlock& block : page->blocks) {
      listed.push_back(block.block_id);
      ASSERT_TRUE(Move(block.block_id, "m").ok());
    }
    next = page->next;
  } while (!next.empty());
  EXPECT_EQ(listed.size(), 10u);
  EXPECT_EQ(BlocksOn(catalog_.get(), "m").size(), 10u);
}

// The work that a listing does, in steps of SQLite's machine, does not grow with other nodes'
// blocks.
TEST_F(SqliteCatalogTest, ListingANodeTakesNoWorkForOthers) {
  auto db = SqliteDb::Open(path_, {});
  ASSERT_TRUE(db.ok());
  auto plan = (*db)->Prepare(
      "EXPLAIN QUERY PLAN SELECT DISTINCT stripe FROM blocks"
      " WHERE node = (SELECT node FROM nodes WHERE name = ?1) AND stripe > ?2"
      " ORDER BY stripe LIMIT ?3");
  ASSERT_TRUE(plan.ok());
  std::string steps;
  while (plan->Step().value_or(false)) steps += std::string(plan->Bytes(3)) + "\n";
  EXPECT_THAT(steps, HasSubstr("INDEX blocks_by_node (node=? AND stripe>?)"));
  EXPECT_THAT(steps, testing::Not(HasSubstr("SCAN")));
  EXPECT_THAT(steps, testing::Not(HasSubstr("TEMP B-TREE")));
}

TEST_F(SqliteCatalogTest, DamagedStripeIsReportedAndCanBePutAgain) {
  for (const char* damage :
       {"DELETE FROM blocks WHERE block_id = 'b1-3'", "DELETE FROM blocks WHERE block_id = 'b1-2'",
        "DELETE FROM blocks WHERE block_id LIKE 'b1-%' AND block_id <> 'b1-0'",
        "UPDATE blocks SET position = 7 WHERE block_id = 'b1-3'",
        "UPDATE blocks SET position = 9 WHERE block_id = 'b1-1';"
        "UPDATE blocks SET position = 1 WHERE block_id = 'b1-3';"
        "UPDATE blocks SET position = 3 WHERE block_id = 'b1-1'",
        "UPDATE blocks SET position = 'x' WHERE block_id = 'b1-3'",
        "UPDATE blocks SET block_id = 'other' WHERE block_id = 'b1-3'",
        "UPDATE blocks SET block_id = 5 WHERE block_id = 'b1-3'",
        "UPDATE blocks SET node = 77 WHERE block_id = 'b1-3'",
        "UPDATE blocks SET node = 'n1' WHERE block_id = 'b1-3'",
        "UPDATE blocks SET node = (SELECT node FROM nodes WHERE name = 'n0')"
        " WHERE block_id = 'b1-3'",
        "UPDATE blocks SET sha256 = zeroblob(100000) WHERE block_id = 'b1-3'",
        "INSERT INTO blocks SELECT stripe, 4, 'more', node, '' FROM blocks WHERE block_id = 'b1-0'",
        "INSERT INTO blocks SELECT b.stripe, n.node + 3, 'more' || n.node, b.node, ''"
        " FROM blocks AS b, (WITH RECURSIVE c(node) AS (SELECT 1 UNION ALL SELECT node + 1 FROM c"
        " WHERE node < 300) SELECT node FROM c) AS n WHERE b.block_id = 'b1-0'",
        "UPDATE stripes SET block_bytes = 7 WHERE stripe_id = 's1'",
        "UPDATE stripes SET code = 'rs-cauchy(4,3)' WHERE stripe_id = 's1'",
        "UPDATE stripes SET crc32c = crc32c + 1 WHERE stripe_id = 's1'",
        "UPDATE stripes SET crc32c = 'text', code = 12.5 WHERE stripe_id = 's1'"}) {
    ASSERT_TRUE(catalog_->Put({MakeStripe(1), MakeStripe(2)}).ok());
    Damage(damage);
    const absl::Status status = catalog_->FindBlock("b1-0").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << damage << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"s1\""));
    EXPECT_TRUE(absl::IsDataLoss(catalog_->FindStripe("s1").status()));
    EXPECT_TRUE(absl::IsDataLoss(Move("b1-0", "n")));
    // The others are not held up, and a recovery learns that there is a block it cannot rebuild.
    ExpectFound(MakeStripe(2));
    const StripePage first = catalog_->List("", 1).value();
    EXPECT_EQ(first.stripes, std::vector<Stripe>{MakeStripe(2)}) << damage;
    EXPECT_EQ(first.damaged, std::vector<std::string>{"s1"}) << damage;
    EXPECT_EQ(first.damaged_count, 1u) << damage;
    const auto page = catalog_->ListNode("n0", "", 10);
    ASSERT_TRUE(page.ok() && page->blocks.size() >= 2) << damage << ": " << page.status();
    EXPECT_EQ(page->blocks[0].block_id, "b1-0");
    EXPECT_TRUE(absl::IsDataLoss(page->blocks[0].stripe.status()));
    EXPECT_EQ(page->blocks.back().stripe.value_or(Stripe{}), MakeStripe(2));

    ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok()) << damage;
    ExpectFound(MakeStripe(1));
    EXPECT_EQ(Query("SELECT count(*) FROM blocks"), 8) << damage;
  }
}

TEST_F(SqliteCatalogTest, BlocksWithoutTheirStripe) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  Damage("DELETE FROM stripes");
  EXPECT_TRUE(absl::IsDataLoss(catalog_->FindBlock("b1-0").status()));
  const auto page = catalog_->ListNode("n0", "", 10);
  ASSERT_TRUE(page.ok() && page->blocks.size() == 1) << page.status();
  EXPECT_TRUE(absl::IsDataLoss(page->blocks[0].stripe.status()));
  // They join no other stripe, and the one that they belong to can be put again.
  ASSERT_TRUE(catalog_->Put({MakeStripe(2)}).ok());
  ExpectFound(MakeStripe(2));
  ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  ExpectFound(MakeStripe(1));
  EXPECT_EQ(Query("SELECT count(*) FROM blocks"), 8);
}

// What docs/operations.md tells operators to ask.
TEST_F(SqliteCatalogTest, AnybodyCanReadTheTables) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1), MakeStripe(2)}).ok());
  EXPECT_EQ(Query("SELECT count(*) FROM blocks JOIN nodes USING (node) JOIN stripes USING (stripe)"
                  " WHERE name = 'n3' AND code = 'rs-cauchy(4,2)'"),
            2);
}

TEST_F(SqliteCatalogTest, DamagedPagesNeverCrash) {
  std::vector<Stripe> stripes;
  for (int i = 0; i < 500; ++i) stripes.push_back(MakeStripe(i));
  ASSERT_TRUE(catalog_->Put(stripes).ok());
  catalog_.reset();
  const auto size = std::filesystem::file_size(path_);
  for (uint64_t page = 1; page < size / 4096; ++page) {
    const std::string copy = directory_.File("copy.db");
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    for (uint64_t at = page * 4096; at < (page + 1) * 4096; at += 97) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put('\xa5');
    }
    file.close();
    auto damaged = SqliteCatalog::Open(copy, {});
    if (!damaged.ok()) continue;
    for (int i = 0; i < 500; i += 7) {
      const Stripe stripe = MakeStripe(i);
      const auto found = (*damaged)->FindBlock(stripe.blocks[1].block_id);
      EXPECT_EQ(found.ok() ? found->stripe : stripe, stripe);  // right or not at all
    }
    (*damaged)->List("", 1000).IgnoreError();
    const auto on_node = (*damaged)->ListNode("n1", "", 1000);
    for (const NodeBlock& block : on_node.value_or(NodeBlockPage{}).blocks) {
      if (!block.stripe.ok()) continue;
      const Stripe stripe = MakeStripe(std::atoi(block.stripe->stripe_id.c_str() + 1));
      EXPECT_EQ(*block.stripe, stripe);
    }
    (*damaged)->Put({MakeStripe(3, 5)}).IgnoreError();
  }
}

TEST_F(SqliteCatalogTest, ALockedDatabaseIsUnavailable) {
  auto holder = SqliteDb::Open(path_, {});
  auto other = SqliteDb::Open(path_, {.lock_timeout = std::chrono::milliseconds(20)});
  ASSERT_TRUE(holder.ok() && other.ok());
  auto transaction = SqliteTransaction::Begin(holder->get());
  ASSERT_TRUE(transaction.ok());
  EXPECT_TRUE(absl::IsUnavailable(SqliteTransaction::Begin(other->get()).status()));
  EXPECT_EQ(catalog_->CountStripes().value(), 0u);  // readers do not wait
}

// What a kill -9 leaves: the file and its log, copied while the catalog is open.
TEST_F(SqliteCatalogTest, ACrashKeepsWhatWasPut) {
  ASSERT_TRUE(catalog_->Put({MakeStripe(1)}).ok());
  ASSERT_TRUE(catalog_->Put({MakeStripe(2)}).ok());
  const std::string copy = directory_.File("crashed.db");
  std::filesystem::copy_file(path_, copy);
  std::filesystem::copy_file(path_ + "-wal", copy + "-wal");
  auto crashed = SqliteCatalog::Open(copy, {});
  ASSERT_TRUE(crashed.ok()) << crashed.status();
  catalog_ = *std::move(crashed);
  ExpectFound(MakeStripe(1));
  ExpectFound(MakeStripe(2));
  EXPECT_EQ(catalog_->CountStripes().value(), 2u);
}

TEST_F(SqliteCatalogTest, ReadersAndWritersAtOnce) {
  Open({.reader_connections = 2});
  ASSERT_TRUE(catalog_->Put({MakeStripe(0)}).ok());
  std::atomic<int> put = 1;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 1; i <= 60; ++i) {
        Stripe stripe = MakeStripe(writer * 1000 + i);
        stripe.blocks[0].node = "node-of-" + stripe.stripe_id;  // a new name each time
        EXPECT_TRUE(catalog_->Put({stripe}).ok());
        // The other one may have moved it since it was looked up.
        const absl::Status moved = Move("b0-0", "m" + Text(i));
        EXPECT_TRUE(moved.ok() || absl::IsAborted(moved)) << moved;
        if (writer == 0) put = i + 1;
      }
    });
  }
  for (int reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&, reader] {
      for (int i = reader; !done; ++i) {
        const int number = i % put;
        const auto found = catalog_->FindBlock("b" + Text(number) + "-1");
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_EQ(found->stripe.stripe_id, "s" + Text(number));
        EXPECT_GT(catalog_->CountStripes().value(), 0u);
        EXPECT_TRUE(catalog_->List("s1", 3).ok());
        EXPECT_TRUE(catalog_->ListNode("n1", "", 3).ok());
      }
    });
  }
  threads[0].join();
  threads[1].join();
  done = true;
  for (size_t i = 2; i < threads.size(); ++i) threads[i].join();
  EXPECT_EQ(catalog_->CountStripes().value(), 121u);
}

}  // namespace
}  // namespace ecpipe::sqlite_catalog_test
