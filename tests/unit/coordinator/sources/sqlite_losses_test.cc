// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/sqlite_losses.h"

#include <gtest/gtest.h>

#include "coordinator/store/sqlite_schema.h"
#include "unit/coordinator/fakes.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::sqlite_losses_test {
namespace {

class SqliteLossesTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    losses_.reset();
    auto opened = SqliteLosses::Open(path_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    losses_ = *std::move(opened);
  }
  static NodeRecord Node(const std::string& name) {
    NodeRecord record;
    record.node_id = name;
    record.rack = "/rack-1";
    record.control_address = name + ":9001";
    record.data_address = name + ":9002";
    record.storage_id = "uuid-" + name;
    return record;
  }
  static NodeBlocks Blocks() {
    NodeBlocks blocks;
    blocks.pools["BP-1-127.0.0.1-17"] =
        BlockList({{INT64_MIN, 0, 0}, {-1, UINT64_MAX, UINT64_MAX}});
    blocks.pools["BP-2-127.0.0.1-17"] = BlockList({{-2, 1001, 7}});
    return blocks;
  }
  std::vector<std::string> Nodes() { return losses_->Nodes().value(); }
  void Run(const char* sql) {
    losses_.reset();
    auto db = SqliteDb::Open(path_, {});
    ASSERT_TRUE(db.ok()) << db.status();
    ASSERT_TRUE((*db)->Run(sql).ok());
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.File("losses.db");
  std::unique_ptr<SqliteLosses> losses_;
};

TEST_F(SqliteLossesTest, SurvivesARestart) {
  NodeRecord record = Node("n1");
  ASSERT_TRUE(losses_->Keep(record, 1'234, Blocks()).ok());
  Open();
  const auto lost = losses_->Load("n1");
  ASSERT_TRUE(lost.ok()) << lost.status();
  EXPECT_EQ(lost->record, record);
  EXPECT_EQ(lost->heard_unix_ms, 1'234);
  EXPECT_EQ(lost->blocks.pools, Blocks().pools);
  EXPECT_EQ(lost->blocks.incarnation, 0u);
  EXPECT_TRUE(absl::IsNotFound(losses_->Load("n2").status()));
}

TEST_F(SqliteLossesTest, TheLatestCountsAndWhatIsForgottenHasGone) {
  ASSERT_TRUE(losses_->Keep(Node("n1"), 1, Blocks()).ok());
  NodeBlocks fewer = Blocks();
  fewer.pools.erase("BP-1-127.0.0.1-17");
  ASSERT_TRUE(losses_->Keep(Node("n1"), 2, fewer).ok());
  EXPECT_EQ(losses_->Load("n1")->blocks.pools, fewer.pools);
  ASSERT_TRUE(losses_->Keep(Node("n2"), 5, {}).ok());
  EXPECT_TRUE(losses_->Load("n2")->blocks.pools.empty());
  ASSERT_TRUE(losses_->Keep(Node("n3"), 9, Blocks()).ok());
  EXPECT_EQ(Nodes(), (std::vector<std::string>{"n1", "n2", "n3"}));
  ASSERT_TRUE(losses_->ForgetOlder(5).ok());
  EXPECT_EQ(Nodes(), (std::vector<std::string>{"n2", "n3"}));
  ASSERT_TRUE(losses_->Forget("n3").ok());
  EXPECT_EQ(Nodes(), (std::vector<std::string>{"n2"}));
  ASSERT_TRUE(losses_->Keep(Node("n3"), 9, {}).ok());
  EXPECT_TRUE(losses_->Load("n3")->blocks.pools.empty()) << "its old pools are back";
}

TEST_F(SqliteLossesTest, BlocksOfAnySystemAreKept) {
  const std::vector<InternalBlock> chunks = {{65539, 1, 1000}, {65540, 7, 64 << 20}};
  EXPECT_EQ(UnpackBlocks(PackBlocks(BlockList(chunks))).value(), chunks);
  EXPECT_TRUE(absl::IsDataLoss(UnpackBlocks(PackBlocks(BlockList({{0, 1, 1}}))).status()));
}

TEST_F(SqliteLossesTest, DamageIsFound) {
  for (const char* blocks : {"x'00'", "zeroblob(24)"}) {
    Open();
    ASSERT_TRUE(losses_->Keep(Node("n1"), 1, Blocks()).ok());
    Run((std::string("UPDATE lost_blocks SET blocks = ") + blocks).c_str());
    Open();
    EXPECT_TRUE(absl::IsDataLoss(losses_->Load("n1").status())) << blocks;
  }
  const std::string packed = PackBlocks(BlockList({{-3, 1, 1}, {-2, 1, 1}}));
  EXPECT_TRUE(UnpackBlocks(packed).ok());
  EXPECT_TRUE(absl::IsDataLoss(UnpackBlocks(packed.substr(24) + packed.substr(0, 24)).status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackBlocks(packed.substr(0, 24) + packed.substr(0, 24)).status()));
}

}  // namespace
}  // namespace ecpipe::sqlite_losses_test
