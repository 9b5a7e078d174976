// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/fault_points.h"
#include "helper/store/hdfs_inventory.h"
#include "helper/store/hdfs_scan.h"
#include "helper/store/hdfs_volume.h"
#include "helper/store/hung_reads.h"
#include "model/corrupt_block.h"
#include "unit/helper/store/hdfs_volume_fixture.h"

namespace ecpipe::hdfs_store_test {
namespace {

using ::testing::HasSubstr;
using Volume = HdfsVolumeFixture;

constexpr Duration kInterval = std::chrono::minutes(10);  // one scan a test
const HdfsBlock kBlock{"BP-1-127.0.0.1-17", INT64_MIN + 16 + 3, 1001};

class HdfsStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = OpenHdfsStore({first_.path(), second_.path()}, kInterval);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  static absl::StatusOr<std::string> Read(BlockReader* block, uint64_t offset, size_t bytes) {
    std::vector<uint8_t> out(bytes);
    if (absl::Status read = block->ReadAt(offset, out); !read.ok()) return read;
    return std::string(out.begin(), out.end());
  }
  absl::Status OpenStatus(const HdfsBlock& block) { return store_->Open(block.Name()).status(); }

  const ScratchDirectory scratch_;
  const Volume first_{scratch_.File("data1")};
  const Volume second_{scratch_.File("data2")};
  std::unique_ptr<BlockStore> store_;
};

TEST_F(HdfsStoreTest, ReadsAReplicaOfAnyVolume) {
  EXPECT_EQ(store_->storage_id(), "dn-uuid-1");
  const std::string data = Volume::Noise(3000);
  for (const Volume* volume : {&first_, &second_}) {
    volume->Put(kBlock, data);
    auto block = store_->Open(kBlock.Name());
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ((*block)->bytes(), 3000u);
    EXPECT_EQ((*block)->checksum(), (ChecksumKind{ChecksumKind::Type::kCrc32c, 512}));
    EXPECT_EQ(Read(block->get(), 0, 3000).value(), data);
    volume->Remove(kBlock);
  }
  EXPECT_TRUE(absl::IsNotFound(OpenStatus(kBlock)));
}

TEST_F(HdfsStoreTest, AVolumeWhoseReadsHangIsNotUsedUntilTheyComeBack) {
  first_.Put(kBlock, Volume::Noise(3000));
  ArmFault("store.read:" + first_.path(), {.action = Fault::Action::kHang});
  std::vector<std::unique_ptr<BlockReader>> blocks;
  for (size_t i = 0; i < HungReads::kMost; ++i) {
    blocks.push_back(store_->Open(kBlock.Name()).value());
  }
  std::vector<std::thread> reads;
  for (const auto& block : blocks) {
    reads.emplace_back([&] { EXPECT_TRUE(Read(block.get(), 0, 3000).ok()); });
  }
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(30);
  while (OpenStatus(kBlock).ok() && Clock::System().Now() < give_up) std::this_thread::yield();
  EXPECT_TRUE(absl::IsUnavailable(OpenStatus(kBlock))) << OpenStatus(kBlock);
  EXPECT_THAT(store_->TakeInventory()->failed_roots,
              testing::ElementsAre(HasSubstr(first_.path())));
  DisarmAllFaults();
  for (std::thread& read : reads) read.join();
  EXPECT_TRUE(OpenStatus(kBlock).ok()) << OpenStatus(kBlock);
}

TEST_F(HdfsStoreTest, FindsTheDirectoriesOfHadoop) {
  // Seen on the disks of a real cluster: 5 bits each of the id, and an arithmetic shift.
  EXPECT_THAT(ReplicaDirectory({"P", 1073741825, 1}),
              testing::ElementsAre("current", "P", "current", "finalized", "subdir0", "subdir0"));
  EXPECT_THAT(ReplicaDirectory({"P", INT64_MIN + 0x1f1e00, 1}),
              testing::ElementsAre("current", "P", "current", "finalized", "subdir31", "subdir30"));
}

TEST_F(HdfsStoreTest, EveryRangeIsReadAndChecked) {
  for (const ChecksumKind kind : {ChecksumKind{ChecksumKind::Type::kCrc32c, 512},
                                  {ChecksumKind::Type::kCrc32, 512},
                                  {ChecksumKind::Type::kCrc32c, 100},
                                  {ChecksumKind::Type::kCrc32, 4096}}) {
    const std::string data = Volume::Noise(2500);
    first_.Put(kBlock, data, kind);
    auto block = store_->Open(kBlock.Name());
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ((*block)->checksum(), kind);
    for (size_t offset = 0; offset < data.size(); offset += 83) {
      for (const size_t bytes : {size_t{1}, size_t{99}, size_t{512}, size_t{1500}}) {
        const size_t step = std::min(bytes, data.size() - offset);
        ASSERT_EQ(Read(block->get(), offset, step).value(), data.substr(offset, step));
        std::vector<uint8_t> out(step);
        const auto tried = (*block)->TryReadAt(offset, out);
        ASSERT_TRUE(tried.ok());
        if (*tried) {
          ASSERT_EQ(std::string(out.begin(), out.end()), data.substr(offset, step));
        }
      }
    }
  }
}

// Any damaged byte within a chunk that is used, of the block or of its checksum.
TEST_F(HdfsStoreTest, ADamagedByteIsFoundAndNamesTheBlock) {
  const std::string data = Volume::Noise(1300);
  for (const size_t at : {0u, 511u, 512u, 1023u, 1299u}) {
    for (const bool in_meta : {false, true}) {
      first_.Put(kBlock, data);
      if (in_meta) {
        const size_t place = 7 + at / 512 * 4;
        const char byte = Volume::MetaOf(data)[place];
        Volume::Overwrite(first_.MetaFile(kBlock), place, std::string(1, char(byte ^ 1)));
      } else {
        Volume::Overwrite(first_.DataFile(kBlock), at, std::string(1, char(data[at] ^ 1)));
      }
      auto block = store_->Open(kBlock.Name());
      ASSERT_TRUE(block.ok());
      for (size_t chunk = 0; chunk < 3; ++chunk) {
        const auto read = Read(block->get(), chunk * 512 + 5, 10);
        EXPECT_EQ(read.ok(), chunk != at / 512) << at;
        if (read.ok()) continue;
        EXPECT_TRUE(absl::IsDataLoss(read.status()));
        EXPECT_EQ(CorruptBlockOf(read.status()), kBlock.Name());
      }
    }
  }
}

TEST_F(HdfsStoreTest, ChecksumsOfAnotherLengthAreDamage) {
  for (const size_t other : {0u, 1000u, 2000u}) {
    first_.Put(kBlock, Volume::Noise(1500));
    Volume::Write(first_.MetaFile(kBlock), Volume::MetaOf(Volume::Noise(other)));
    EXPECT_EQ(CorruptBlockOf(OpenStatus(kBlock)), kBlock.Name()) << other;
  }
  Volume::Write(first_.MetaFile(kBlock), "");
  EXPECT_TRUE(absl::IsDataLoss(OpenStatus(kBlock)));
}

TEST_F(HdfsStoreTest, WhatCannotBeVerifiedIsRefused) {
  first_.Put(kBlock, Volume::Noise(100));
  Volume::Overwrite(first_.MetaFile(kBlock), 2, std::string(1, '\0'));
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenStatus(kBlock)));
  EXPECT_THAT(std::string(OpenStatus(kBlock).message()), HasSubstr("no checksums"));
}

TEST_F(HdfsStoreTest, AnotherGenerationIsNotThere) {
  first_.Put(kBlock, Volume::Noise(100));
  HdfsBlock other = kBlock;
  for (const uint64_t stamp : {1000u, 1002u}) {
    other.stamp = stamp;
    EXPECT_TRUE(absl::IsNotFound(OpenStatus(other)));
    EXPECT_THAT(std::string(OpenStatus(other).message()), HasSubstr("generation"));
  }
  EXPECT_TRUE(OpenStatus(kBlock).ok());
}

TEST_F(HdfsStoreTest, WhatIsRemovedOrMovedWhileItIsOpenIsReadToItsEnd) {
  const std::string data = Volume::Noise(200'000);
  first_.Put(kBlock, data);
  auto block = store_->Open(kBlock.Name());
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(Read(block->get(), 0, 1000).value(), data.substr(0, 1000));
  second_.Put(kBlock, data);
  first_.Remove(kBlock);
  EXPECT_EQ(Read(block->get(), 1000, 199'000).value(), data.substr(1000));
  EXPECT_TRUE(OpenStatus(kBlock).ok()) << "and it is found where it is now";
}

// An append writes data, and a new checksum over that of the last chunk.
TEST_F(HdfsStoreTest, WhatGrowsIsRefusedAndNotTakenForCorrupt) {
  const std::string data = Volume::Noise(1300);
  first_.Put(kBlock, data.substr(0, 1200));
  auto block = store_->Open(kBlock.Name());
  ASSERT_TRUE(block.ok());
  Volume::Overwrite(first_.DataFile(kBlock), 1200, data.substr(1200));
  Volume::Overwrite(first_.MetaFile(kBlock), 0, Volume::MetaOf(data));
  EXPECT_EQ(Read(block->get(), 0, 1024).value(), data.substr(0, 1024)) << "whole chunks stay";
  const auto read = Read(block->get(), 1024, 176);
  EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status();
  EXPECT_EQ(CorruptBlockOf(read.status()), "");
  ASSERT_EQ(::truncate(first_.DataFile(kBlock).c_str(), 600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Read(block->get(), 512, 512).status()));
}

TEST_F(HdfsStoreTest, NothingOutsideTheVolumesIsRead) {
  const std::string data = Volume::Noise(100);
  const Volume elsewhere(scratch_.File("elsewhere"));
  elsewhere.Put(kBlock, data);
  std::filesystem::create_directories(first_.path() + "/current/" + kBlock.pool + "/current");
  std::filesystem::create_directory_symlink(
      elsewhere.path() + "/current/" + kBlock.pool + "/current/finalized",
      first_.path() + "/current/" + kBlock.pool + "/current/finalized");
  EXPECT_FALSE(OpenStatus(kBlock).ok()) << "a directory that is a link";
  second_.Put(kBlock, data);
  std::filesystem::remove(second_.DataFile(kBlock));
  std::filesystem::create_symlink(elsewhere.DataFile(kBlock), second_.DataFile(kBlock));
  EXPECT_FALSE(OpenStatus(kBlock).ok()) << "a file that is a link";
  std::filesystem::remove(second_.DataFile(kBlock));
  ASSERT_EQ(::mkfifo(second_.DataFile(kBlock).c_str(), 0600), 0);
  EXPECT_FALSE(OpenStatus(kBlock).ok()) << "a FIFO";
  for (const char* name : {"../x", "block", "BP-1.blk_1_1.meta", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Open(name).status())) << name;
  }
}

TEST_F(HdfsStoreTest, StoresNothing) {
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Create(kBlock.Name(), 100).status()));
}

TEST_F(HdfsStoreTest, RefusesVolumesOfTwoDatanodesOrNone) {
  const Volume other(scratch_.File("other"), "dn-uuid-2");
  EXPECT_TRUE(
      absl::IsInvalidArgument(OpenHdfsStore({first_.path(), other.path()}, kInterval).status()));
  std::filesystem::create_directories(scratch_.File("empty"));
  for (const std::string& path : {scratch_.File("empty"), scratch_.File("missing")}) {
    const absl::Status status = OpenHdfsStore({path}, kInterval).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  EXPECT_EQ(DatanodeUuidIn("a=b\r\ndatanodeUuid=x-1\r\n").value(), "x-1");
  for (const char* text : {"", "datanodeUuid=", "datanodeUuid=a b", "xdatanodeUuid=x"}) {
    EXPECT_FALSE(DatanodeUuidIn(text).ok()) << text;
  }
}

TEST_F(HdfsStoreTest, AFailedVolumeIsToleratedAndComesBack) {
  const std::string away = first_.path() + ".away";
  first_.Put(kBlock, Volume::Noise(100));
  second_.Put({"BP-2", 1073741825, 7}, Volume::Noise(50));
  std::filesystem::rename(first_.path(), away);
  const auto volumes = HdfsVolumes::Open({first_.path(), second_.path()}).value();
  EXPECT_EQ(volumes->datanode_uuid(), "dn-uuid-1");
  ASSERT_EQ(volumes->failed().size(), 1u);
  EXPECT_THAT(volumes->failed()[0], HasSubstr(first_.path() + ": "));
  HdfsScan scan(volumes);
  const auto count = [&] { return scan.Take([] { return false; }).value().inventory.block_count; };
  EXPECT_EQ(count(), 1u);
  std::filesystem::rename(away, first_.path());
  EXPECT_EQ(count(), 1u);  // nobody has looked yet
  volumes->Look();
  EXPECT_THAT(volumes->failed(), testing::IsEmpty());
  EXPECT_EQ(count(), 2u);
  // It fails while the helper runs: what has gone is no longer counted.
  const std::shared_ptr<const HdfsVolume> before = volumes->opened()[1];
  std::filesystem::rename(first_.path(), away);
  volumes->Look();
  EXPECT_EQ(volumes->opened()[0], nullptr);
  EXPECT_EQ(volumes->opened()[1], before);
  EXPECT_EQ(count(), 1u);
  // Another DataNode's is none of ours, even in the same place.
  const Volume stranger(first_.path(), "dn-uuid-2");
  volumes->Look();
  ASSERT_EQ(volumes->failed().size(), 1u);
  EXPECT_THAT(volumes->failed()[0], HasSubstr("belongs to DataNode dn-uuid-2"));
  // Another directory in its place: a disk that was mounted anew.
  std::filesystem::remove_all(first_.path());
  std::filesystem::rename(away, first_.path());
  volumes->Look();
  const std::shared_ptr<const HdfsVolume> first = volumes->opened()[0];
  std::filesystem::rename(first_.path(), away);
  const Volume anew(first_.path());
  volumes->Look();
  EXPECT_NE(volumes->opened()[0], first);
  EXPECT_EQ(count(), 1u);
}

TEST_F(HdfsStoreTest, WithAFailedVolumeTheOthersAreRead) {
  second_.Put(kBlock, Volume::Noise(300));
  const std::string missing = scratch_.File("missing");
  const auto store = OpenHdfsStore({missing, second_.path()}, kInterval).value();
  EXPECT_EQ(Read(store->Open(kBlock.Name()).value().get(), 0, 300).value(), Volume::Noise(300));
  ASSERT_EQ(store->TakeInventory().value().failed_roots.size(), 1u);
  const absl::Status gone = store->Open(HdfsBlock{"P", INT64_MIN, 1}.Name()).status();
  EXPECT_TRUE(absl::IsNotFound(gone));
  EXPECT_THAT(std::string(gone.message()), HasSubstr("failed volume " + missing));
}

TEST_F(HdfsStoreTest, AVolumeThatHangsCostsOnlyItsOwnBlocks) {
  const std::string fault = "hdfs_store.open:" + first_.path();
  const std::string data = Volume::Noise(3000);
  second_.Put(kBlock, data);
  HdfsBlock other = kBlock;
  ++other.id;
  first_.Put(other, data);
  ArmFault(fault, {.action = Fault::Action::kHang});
  const TimePoint begun = Clock::System().Now();
  auto block = store_->Open(kBlock.Name());
  EXPECT_TRUE(block.ok()) << block.status();
  const absl::Status there = OpenStatus(other);
  EXPECT_TRUE(absl::IsUnavailable(there)) << there;
  EXPECT_THAT(std::string(there.message()), HasSubstr(first_.path()));
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(20)) << "each waits a second";
  DisarmAllFaults();
}

TEST_F(HdfsStoreTest, AVolumeThatHangsAtTheStartIsUsedWhenItAnswers) {
  first_.Put(kBlock, Volume::Noise(300));
  second_.Put({"BP-2", 1073741825, 7}, Volume::Noise(50));
  ArmFault("hdfs_store.volume:" + first_.path(), {.action = Fault::Action::kHang});
  const TimePoint begun = Clock::System().Now();
  const auto store =
      OpenHdfsStore({first_.path(), second_.path()}, std::chrono::milliseconds(10)).value();
  const auto wait_for = [&](uint64_t blocks) {
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
    while (store->TakeInventory().value().block_count != blocks && Clock::System().Now() < give_up)
      std::this_thread::yield();
    EXPECT_EQ(store->TakeInventory().value().block_count, blocks);
  };
  wait_for(1);
  ASSERT_EQ(store->TakeInventory().value().failed_roots.size(), 1u);
  EXPECT_THAT(store->TakeInventory().value().failed_roots[0],
              HasSubstr(first_.path() + " does not answer"));
  EXPECT_FALSE(store->Open(kBlock.Name()).ok());
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(20));
  DisarmAllFaults();
  wait_for(2);
  EXPECT_TRUE(store->Open(kBlock.Name()).ok());
  EXPECT_THAT(store->TakeInventory().value().failed_roots, testing::IsEmpty());
}

TEST_F(HdfsStoreTest, CountsFinalizedReplicas) {
  first_.Put(kBlock, Volume::Noise(100));
  second_.Put({"BP-2", 1073741825, 7}, Volume::Noise(50));
  Volume::Write(first_.Directory(kBlock) + "/blk_9.tmp", "x");
  std::filesystem::create_directories(first_.path() + "/current/BP-2/current/rbw");
  Volume::Write(first_.path() + "/current/BP-2/current/rbw/blk_5", "x");
  HdfsInventory inventory(HdfsVolumes::Open({first_.path(), second_.path()}).value(), kInterval);
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
  while (inventory.latest().block_count == 0 && Clock::System().Now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ(inventory.latest().block_count, 2u);
  EXPECT_EQ(inventory.latest().block_bytes, 150u);
  const TakenListing listing = inventory.listing();
  EXPECT_EQ(listing.scans, 1u);
  EXPECT_EQ(listing.blocks->at(kBlock.pool)[0].block, (InternalBlock{kBlock.id, 1001, 100}));
}

}  // namespace
}  // namespace ecpipe::hdfs_store_test
