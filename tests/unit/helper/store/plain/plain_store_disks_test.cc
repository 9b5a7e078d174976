// SPDX-License-Identifier: Apache-2.0
// A plain store whose disks go, come, fill up and hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fault_points.h"
#include "helper/store/hung_reads.h"
#include "helper/store/plain/plain_root.h"
#include "helper/store/plain/plain_store.h"
#include "model/block_checksums.h"
#include "unit/helper/store/plain/plain_store_fixture.h"

namespace ecpipe::plain_store_disks_test {
namespace {

using ::testing::HasSubstr;

TEST_F(PlainStoreTest, ADirectoryThatIsExchangedIsOpenedAgain) {
  Put(first_ + "/old", "1");
  store_ = OpenPlainStore({first_}).value();
  EXPECT_EQ(ReadAll("old").value(), "1");
  std::filesystem::rename(first_, scratch_.File("detached"));
  EXPECT_TRUE(absl::IsUnavailable(ReadAll("old").status())) << "nobody knows what it has";
  EXPECT_THAT(std::string(store_->TroubleOf(first_).message()), HasSubstr(first_));
  EXPECT_THAT(store_->TakeInventory().value().failed_roots, testing::SizeIs(1));
  std::filesystem::create_directory(first_);  // a new disk
  EXPECT_TRUE(absl::IsNotFound(ReadAll("old").status()));
  auto writer = store_->Create("block", 1).value();
  ASSERT_TRUE(writer->WriteAt(0, std::vector<uint8_t>{'x'}).ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_TRUE(store_->TroubleOf(first_).ok());
  for (const std::string& name : {std::string("block"), ChecksumFileName("block")}) {
    EXPECT_TRUE(std::filesystem::exists(first_ + "/" + name)) << name;
  }
}

TEST_F(PlainStoreTest, ABlockInADirectoryThatWasExchangedMeanwhileIsNotStored) {
  auto store = OpenPlainStore({first_}).value();
  auto writer = store->Create("block", 1).value();
  ASSERT_TRUE(writer->WriteAt(0, std::vector<uint8_t>{'x'}).ok());
  std::filesystem::rename(first_, scratch_.File("detached"));
  std::filesystem::create_directory(first_);
  const absl::Status status = writer->Commit();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(std::filesystem::is_empty(first_));
}

// In a mount namespace of its own.
TEST_F(PlainStoreTest, TheDirectoryBelowADiskThatHasGoneIsNotUsed) {
  const std::string disk = scratch_.File("disk");
  const std::string root = disk + "/blocks";
  std::filesystem::create_directories(root);  // on the system's disk
  const auto mount_one = [&] {
    return ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") == 0 &&
           std::filesystem::create_directory(root);
  };
  std::thread elsewhere([&] {
    const bool may = ::unshare(CLONE_FS | CLONE_NEWNS) == 0 &&
                     ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (!may || !mount_one()) GTEST_SKIP() << "no mounts for this user";
    const PlainRoot opened(root, 0);
    ASSERT_TRUE(opened.Use().ok());
    ASSERT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
    const absl::Status gone = opened.Use().status();
    EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
    EXPECT_THAT(std::string(gone.message()), HasSubstr("has gone"));
    EXPECT_EQ(opened.trouble().message(), gone.message());
    ASSERT_TRUE(mount_one());  // another one
    EXPECT_TRUE(opened.Use().ok()) << opened.Use().status();
    EXPECT_TRUE(opened.trouble().ok());
    ::umount2(disk.c_str(), MNT_DETACH);
  });
  elsewhere.join();
}

TEST_F(PlainStoreTest, BlocksUnderWayHaveTheirRoom) {
  for (const bool set_aside : {true, false}) {
    if (!set_aside) ArmFault("file_io.reserve", {});
    const StoreInventory before = store_->TakeInventory().value();
    constexpr uint64_t kBytes = 16 << 20;
    auto writer = store_->Create("block", kBytes);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const StoreInventory during = store_->TakeInventory().value();
    EXPECT_LE(*during.free_bytes + kBytes / 2, *before.free_bytes) << set_aside;
    DisarmAllFaults();
  }
}

TEST_F(PlainStoreTest, ManyBlocksAtOnceAreNoMoreThanTheDiskHolds) {
  ArmFault("file_io.reserve", {});
  const uint64_t free = store_->TakeInventory()->free_bytes.value();
  const uint64_t bytes = free / 3 * 2;
  auto one = store_->Create("one", bytes);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(absl::IsResourceExhausted(store_->Create("two", bytes).status()));
  one->reset();
  EXPECT_TRUE(store_->Create("two", bytes).ok());
  DisarmAllFaults();
}

// Its directory answers, and so do its checksum files.
TEST_F(PlainStoreTest, ARootWhoseReadsHangIsNotUsedUntilTheyComeBack) {
  Put(first_ + "/in-first", "1");
  Put(second_ + "/in-second", "22");
  ArmFault("store.read:" + first_, {.action = Fault::Action::kHang});
  std::vector<std::unique_ptr<BlockReader>> blocks;
  for (size_t i = 0; i < HungReads::kMost; ++i) {
    blocks.push_back(store_->Open("in-first").value());
  }
  std::vector<std::thread> reads;
  for (const auto& block : blocks) {
    reads.emplace_back([&] { EXPECT_EQ(Read(block.get(), 0, 1).value(), "1"); });
  }
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(30);
  while (store_->Open("in-first").ok() && Clock::System().Now() < give_up) {
    std::this_thread::yield();
  }
  const absl::Status refused = store_->Open("in-first").status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("4 reads"));
  EXPECT_EQ(store_->TroubleOf(first_), refused);
  const StoreInventory inventory = store_->TakeInventory().value();
  ASSERT_EQ(inventory.failed_roots.size(), 1u);
  EXPECT_THAT(inventory.failed_roots[0], HasSubstr("4 reads"));
  EXPECT_EQ(ReadAll("in-second").value(), "22");
  ASSERT_TRUE(store_->Create("new", 1).ok()) << "in the other one";
  DisarmAllFaults();
  for (std::thread& read : reads) read.join();
  EXPECT_EQ(ReadAll("in-first").value(), "1");
  EXPECT_TRUE(store_->TroubleOf(first_).ok());
}

}  // namespace
}  // namespace ecpipe::plain_store_disks_test
