// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "unit/helper/store/hdfs_volume_fixture.h"

namespace ecpipe::hdfs_scan_test {
namespace {

const std::string kPool = "BP-1-127.0.0.1-17";
constexpr int64_t kFirstGroup = INT64_MIN + 16;

class HdfsScanTest : public testing::Test {
 protected:
  void SetUp() override {
    scan_ = std::make_unique<HdfsScan>(HdfsVolumes::Open({first_.path(), second_.path()}).value());
  }

  HdfsContents Take() {
    auto contents = scan_->Take([] { return false; });
    EXPECT_TRUE(contents.ok()) << contents.status();
    return *std::move(contents);
  }
  std::vector<InternalBlock> Blocks() {
    std::vector<InternalBlock> blocks;
    const HdfsContents contents = Take();
    const auto pool = contents.blocks->find(kPool);
    if (pool == contents.blocks->end()) return blocks;
    for (const ListedBlock& listed : pool->second) blocks.push_back(listed.block);
    return blocks;
  }
  // As if nothing had happened in the directory for an hour.
  static void MakeOld(const std::string& directory) {
    timespec times[2] = {{0, UTIME_OMIT}, {}};
    ASSERT_EQ(::clock_gettime(CLOCK_REALTIME, &times[1]), 0);
    times[1].tv_sec -= 3600;
    ASSERT_EQ(::utimensat(AT_FDCWD, directory.c_str(), times, 0), 0);
  }

  const ScratchDirectory scratch_;
  const HdfsVolumeFixture first_{scratch_.File("data1")};
  const HdfsVolumeFixture second_{scratch_.File("data2")};
  std::unique_ptr<HdfsScan> scan_;
};

TEST_F(HdfsScanTest, ListsBlocksOfGroupsWithLengthAndGeneration) {
  first_.Put({kPool, kFirstGroup + 3, 1001}, std::string(100, 'x'));
  second_.Put({kPool, kFirstGroup + 1, 1002}, "y");
  second_.Put({kPool, 1073741825, 7}, "a replicated one");
  const HdfsContents contents = Take();
  EXPECT_EQ(contents.inventory.block_count, 3u);
  EXPECT_EQ(contents.inventory.block_bytes, 117u);
  const std::vector<InternalBlock> expected = {{kFirstGroup + 1, 1002, 1},
                                               {kFirstGroup + 3, 1001, 100}};
  EXPECT_EQ(Blocks(), expected);
}

TEST_F(HdfsScanTest, AReplicaWithoutExactlyOneMetaIsNotListed) {
  const HdfsBlock bare{kPool, kFirstGroup, 1001};
  const HdfsBlock two{kPool, kFirstGroup + 1, 1001};
  first_.Put(bare, "x");
  first_.Put(two, "x");
  std::filesystem::remove(first_.MetaFile(bare));
  HdfsVolumeFixture::Write(first_.MetaFile({kPool, two.id, 1002}), "");
  HdfsVolumeFixture::Write(first_.Directory(bare) + "/blk_-7_1.meta", "");
  for (const char* name : {"/blk_", "/blk_-", "/blk_-5x", "/blk_-5_.meta", "/blk_-5_-1.meta",
                           "/blk__1.meta", "/blk_.meta", "/x.meta"}) {
    HdfsVolumeFixture::Write(first_.Directory(bare) + name, "");
  }
  EXPECT_TRUE(Blocks().empty());
  EXPECT_EQ(Take().inventory.block_count, 2u);
}

TEST_F(HdfsScanTest, OfTwoReplicasTheNewerGenerationCounts) {
  first_.Put({kPool, kFirstGroup, 1002}, "new");
  second_.Put({kPool, kFirstGroup, 1001}, "stale");
  EXPECT_EQ(Blocks(), std::vector({InternalBlock{kFirstGroup, 1002, 3}}));
}

TEST_F(HdfsScanTest, ListsADirectoryAgainOnlyWhenItHasChanged) {
  const HdfsBlock here{kPool, kFirstGroup, 1001};
  const HdfsBlock elsewhere{kPool, kFirstGroup + (1 << 8), 1001};
  first_.Put(here, "x");
  first_.Put(elsewhere, "x");
  Take();
  EXPECT_EQ(scan_->directories_listed(), 2u);
  Take();
  EXPECT_EQ(scan_->directories_listed(), 4u) << "changes within the grain of time are not seen";
  MakeOld(first_.Directory(here));
  MakeOld(first_.Directory(elsewhere));
  const auto settled = Take().blocks;
  EXPECT_EQ(scan_->directories_listed(), 6u);
  EXPECT_EQ(Take().blocks, settled) << "the same object";
  EXPECT_EQ(scan_->directories_listed(), 6u);
  first_.Put({kPool, kFirstGroup + 1, 1001}, "x");
  EXPECT_EQ(Blocks().size(), 3u);
  EXPECT_EQ(scan_->directories_listed(), 7u) << "one of the two";
}

TEST_F(HdfsScanTest, SeesWhatGoes) {
  const HdfsBlock block{kPool, kFirstGroup, 1001};
  first_.Put(block, "x");
  second_.Put({"BP-2", kFirstGroup, 1001}, "x");
  EXPECT_EQ(Take().blocks->size(), 2u);
  first_.Remove(block);
  std::filesystem::remove_all(second_.path() + "/current/BP-2");
  EXPECT_TRUE(Take().blocks->empty());
  first_.Put(block, "x");
  EXPECT_EQ(Blocks().size(), 1u);
  std::filesystem::remove_all(first_.path() + "/current/" + kPool + "/current/finalized/subdir0");
  EXPECT_TRUE(Blocks().empty());
}

TEST_F(HdfsScanTest, ANewFileOfTheSameLengthIsAnotherOne) {
  const HdfsBlock block{kPool, kFirstGroup, 1001};
  first_.Put(block, "x");
  const HdfsContents before = Take();
  HdfsVolumeFixture::Write(first_.path() + "/new", "y");
  std::filesystem::rename(first_.path() + "/new", first_.DataFile(block));
  const HdfsContents after = Take();
  const auto changes = ChangesBetween(*before.blocks, *after.blocks, INT64_MAX);
  ASSERT_EQ(changes.size(), 1u);
  ASSERT_EQ(changes.at(kPool).added.size(), 1u);
  EXPECT_EQ(changes.at(kPool).added[0].block, (InternalBlock{block.id, 1001, 1}));
}

TEST_F(HdfsScanTest, StopsWhenAsked) {
  first_.Put({kPool, kFirstGroup, 1001}, "x");
  EXPECT_TRUE(absl::IsCancelled(scan_->Take([] { return true; }).status()));
}

TEST(BlockListing, ChangesNameWhatIsNewAndWhatHasGone) {
  constexpr int64_t kMillisecond = 1'000'000;
  const BlockListing before = {{"a", {{{-5, 1, 10}, 0}, {{-4, 1, 10}, 0}, {{-2, 1, 10}, 0}}},
                               {"b", {{{-5, 1, 10}, 0}}},
                               {"c", {{{-9, 1, 1}, 0}}}};
  const BlockListing after = {
      {"a", {{{-6, 1, 10}, 2 * kMillisecond}, {{-5, 1, 10}, 0}, {{-4, 2, 10}, 9 * kMillisecond}}},
      {"b", {{{-5, 1, 10}, 0}}},
      {"d", {{{-1, 1, 1}, 0}}}};
  const auto changes = ChangesBetween(before, after, 5 * kMillisecond);
  ASSERT_EQ(changes.size(), 3u) << "nothing of b";
  const std::vector<BlockChanges::Added> added = {{{-6, 1, 10}, 3}, {{-4, 2, 10}, 0}};
  EXPECT_EQ(changes.at("a").added, added);
  EXPECT_EQ(changes.at("a").removed, std::vector<int64_t>{-2});
  EXPECT_EQ(changes.at("c").removed, std::vector<int64_t>{-9});
  EXPECT_EQ(changes.at("d").added.size(), 1u);
  EXPECT_TRUE(ChangesBetween(after, after, 0).empty());
}

}  // namespace
}  // namespace ecpipe::hdfs_scan_test
