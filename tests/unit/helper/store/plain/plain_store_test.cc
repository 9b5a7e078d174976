// SPDX-License-Identifier: Apache-2.0
#include "helper/store/plain/plain_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fault_points.h"
#include "helper/store/root_calls.h"
#include "unit/helper/store/plain/plain_store_fixture.h"

namespace ecpipe::plain_store_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(PlainStoreTest, ReadsABlockAnywhere) {
  Put(first_ + "/block", "0123456789");
  auto block = store_->Open("block");
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ((*block)->bytes(), 10u);
  EXPECT_EQ(Read(block->get(), 0, 10).value(), "0123456789");
  EXPECT_EQ(Read(block->get(), 7, 3).value(), "789");
  EXPECT_EQ(Read(block->get(), 10, 0).value(), "");
}

TEST_F(PlainStoreTest, QuickReadsAreRightOrSayThatTheyCannotBe) {
  Put(first_ + "/block", "0123456789");
  auto block = store_->Open("block").value();
  std::vector<uint8_t> out(4);
  const absl::StatusOr<bool> read = block->TryReadAt(3, out);
  ASSERT_TRUE(read.ok()) << read.status();
  if (*read) {
    EXPECT_THAT(out, testing::ElementsAre('3', '4', '5', '6'));
  }
  EXPECT_FALSE(block->TryReadAt(8, out).value()) << "a short read is left to the one that waits";
}

TEST_F(PlainStoreTest, LooksInEveryRootInOrder) {
  Put(second_ + "/b", "second");
  EXPECT_EQ(ReadAll("b").value(), "second");
  Put(first_ + "/b", "first");
  EXPECT_EQ(ReadAll("b").value(), "first");
}

TEST_F(PlainStoreTest, AnUnknownBlockIsNotFoundAndNamed) {
  const absl::Status status = store_->Open("missing").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing"));
}

TEST_F(PlainStoreTest, OnlyIdsAreOpenedNeverPaths) {
  Put(scratch_.File("secret"), "secret");
  Put(first_ + "/.hidden", "hidden");
  std::filesystem::create_directory(first_ + "/sub");
  Put(first_ + "/sub/block", "nested");
  for (const std::string& id : {std::string("../secret"), scratch_.File("secret"),
                                std::string("sub/block"), std::string(".hidden"), std::string(".."),
                                std::string(), std::string("b\0lock", 6), std::string(256, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Open(id).status())) << "'" << id << "'";
  }
}

TEST_F(PlainStoreTest, SymbolicLinksAreNotFollowed) {
  Put(scratch_.File("secret"), "secret");
  Put(first_ + "/real", "real");
  std::filesystem::create_symlink(scratch_.File("secret"), first_ + "/outside");
  std::filesystem::create_symlink("real", first_ + "/inside");
  for (const char* id : {"outside", "inside"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(store_->Open(id).status())) << store_->Open(id).status();
  }
}

TEST_F(PlainStoreTest, OnlyRegularFilesAreBlocks) {
  std::filesystem::create_directory(first_ + "/directory");
  // A FIFO without a writer would block the open for ever.
  ASSERT_EQ(::mkfifo((first_ + "/fifo").c_str(), 0600), 0);
  for (const char* id : {"directory", "fifo"}) {
    const absl::Status status = store_->Open(id).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not a regular file"));
  }
}

TEST_F(PlainStoreTest, AShrinkingBlockIsDataLoss) {
  Put(first_ + "/block", std::string(100, 'x'));
  auto block = store_->Open("block").value();
  std::filesystem::resize_file(first_ + "/block", 60);
  EXPECT_EQ(block->bytes(), 100u) << "what it was when it was opened";
  EXPECT_TRUE(Read(block.get(), 0, 60).ok());
  const absl::Status status = Read(block.get(), 50, 20).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 60"));
}

TEST_F(PlainStoreTest, AnOpenBlockOutlivesItsName) {
  Put(first_ + "/block", "still here");
  auto block = store_->Open("block").value();
  std::filesystem::remove(first_ + "/block");
  EXPECT_TRUE(absl::IsNotFound(store_->Open("block").status()));
  EXPECT_EQ(Read(block.get(), 0, 10).value(), "still here");
}

TEST_F(PlainStoreTest, CountsWhatCouldBeOpened) {
  EXPECT_EQ(store_->TakeInventory().value().block_count, 0u);
  Put(first_ + "/a", "12345");
  Put(first_ + "/b", "");
  Put(second_ + "/c", "1234567");
  Put(first_ + "/.ecpipe-tmp-1", "half a block");
  Put(first_ + "/not an id", "x");
  std::filesystem::create_directory(first_ + "/directory");
  std::filesystem::create_symlink("a", first_ + "/link");
  for (int again = 0; again < 2; ++again) {
    const StoreInventory inventory = store_->TakeInventory().value();
    EXPECT_EQ(inventory.block_count, 3u);
    EXPECT_EQ(inventory.block_bytes, 12u);
  }
}

TEST_F(PlainStoreTest, ABlockIsThereOnceItIsCommitted) {
  const std::vector<uint8_t> bytes{'n', 'e', 'w'};
  {
    auto dropped = store_->Create("block", 3).value();
    ASSERT_TRUE(dropped->WriteAt(0, bytes).ok());
    EXPECT_TRUE(absl::IsNotFound(store_->Open("block").status()));
  }
  auto writer = store_->Create("block", 3).value();
  ASSERT_TRUE(writer->WriteAt(0, bytes).ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(ReadAll("block").value(), "new");
  EXPECT_EQ(store_->TakeInventory().value().block_count, 1u);
}

TEST_F(PlainStoreTest, ABlockThatIsThereIsReplacedWhereItIs) {
  Put(second_ + "/block", "old");
  auto writer = store_->Create("block", 4).value();
  ASSERT_TRUE(writer->WriteAt(0, std::vector<uint8_t>{'n', 'e', 'w', '!'}).ok());
  EXPECT_EQ(ReadAll("block").value(), "old");
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(ReadAll("block").value(), "new!");
  EXPECT_FALSE(std::filesystem::exists(first_ + "/block"));
}

TEST_F(PlainStoreTest, WhatCannotBeStoredIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Create("../x", 1).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(store_->Create("block", UINT64_MAX).status()));
}

TEST_F(PlainStoreTest, OpeningCleansUpAfterTheDead) {
  Put(first_ + "/.ecpipe-tmp-1-0", "half");
  auto writer = store_->Create("block", 3).value();
  ASSERT_TRUE(writer->WriteAt(0, std::vector<uint8_t>{'n', 'e', 'w'}).ok());
  ASSERT_TRUE(OpenPlainStore({first_, second_}).ok());
  EXPECT_FALSE(std::filesystem::exists(first_ + "/.ecpipe-tmp-1-0"));
  EXPECT_TRUE(writer->Commit().ok()) << "what is being written stays";
}

// What one root does wrong costs nothing of the other.
class OneBadRoot : public PlainStoreTest, public testing::WithParamInterface<Fault::Action> {
 protected:
  // Long enough for every wait of the store, and too short for a call that never returns.
  static constexpr Duration kBound = std::chrono::seconds(20);

  void SetUp() override {
    PlainStoreTest::SetUp();
    Put(first_ + "/in-first", "1");
    Put(second_ + "/in-second", "22");
    ASSERT_EQ(store_->TakeInventory().value().block_count, 2u);
    begun_ = Clock::System().Now();
    for (const char* fault : {"plain_store.open0", "plain_store.count0"}) {
      ArmFault(fault, {.action = GetParam()});
    }
  }
  void TearDown() override {
    EXPECT_LT(Clock::System().Now() - begun_, kBound);
    DisarmAllFaults();
  }
  TimePoint begun_;
};
INSTANTIATE_TEST_SUITE_P(By, OneBadRoot,
                         testing::Values(Fault::Action::kError, Fault::Action::kHang),
                         [](const auto& action) {
                           return action.param == Fault::Action::kHang ? "Hang" : "Error";
                         });

TEST_P(OneBadRoot, TheOthersBlocksAreRead) {
  EXPECT_EQ(ReadAll("in-second").value(), "22");
  const absl::Status status = ReadAll("in-first").status();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsNotFound(status)) << "it may be there: " << status;
}

TEST_P(OneBadRoot, OnceKnownItCostsNoTime) {
  for (size_t i = 0; i < RootCalls::kMaxThreads; ++i) {
    EXPECT_EQ(ReadAll("in-second").value(), "22");
  }
  const TimePoint begun = Clock::System().Now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ReadAll("in-second").value(), "22");
  EXPECT_LT(Clock::System().Now() - begun, RootCalls::kPatience);
}

TEST_P(OneBadRoot, BlocksAreStoredInTheOthers) {
  auto writer = store_->Create("new", 3);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->WriteAt(0, std::vector<uint8_t>{'n', 'e', 'w'}).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_EQ(ReadAll("new").value(), "new");
  EXPECT_TRUE(std::filesystem::exists(second_ + "/new"));
}

// The root with the newer copy no longer answers.
TEST_P(OneBadRoot, AnOlderCopyElsewhereIsNotRead) {
  DisarmAllFaults();
  Put(second_ + "/block", "old");
  Put(first_ + "/block", "new");
  std::filesystem::last_write_time(
      second_ + "/block", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(ReadAll("block").value(), "new");
  ArmFault("plain_store.open0", {.action = GetParam()});
  const absl::Status status = ReadAll("block").status();
  EXPECT_FALSE(status.ok()) << "the old one";
  EXPECT_FALSE(absl::IsNotFound(status)) << status;
}

// The block was stored anew while the root with its old copy did not answer.
TEST_P(OneBadRoot, TheNewCopyIsReadWhenItsRootAnswersAgain) {
  DisarmAllFaults();
  Put(first_ + "/block", "old");
  ArmFault("plain_store.open0", {.action = GetParam()});
  auto writer = store_->Create("block", 3);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->WriteAt(0, std::vector<uint8_t>{'n', 'e', 'w'}).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  DisarmAllFaults();
  EXPECT_EQ(ReadAll("block").value(), "new");
  ArmFault("plain_store.open1", {.action = GetParam()});
  EXPECT_FALSE(ReadAll("block").ok()) << "the old one";
}

TEST_F(PlainStoreTest, ADiskWithTwoDirectoriesCountsOnce) {
  struct statvfs disk{};
  ASSERT_EQ(::statvfs(first_.c_str(), &disk), 0);
  const StoreInventory inventory = store_->TakeInventory().value();
  ASSERT_TRUE(inventory.disk_bytes && inventory.free_bytes);
  EXPECT_EQ(*inventory.disk_bytes, uint64_t{disk.f_blocks} * disk.f_frsize);
  EXPECT_LE(*inventory.free_bytes, *inventory.disk_bytes);
}

TEST_F(PlainStoreTest, ALargeDirectoryIsNotSaidToHang) {
  Put(first_ + "/a", "12345");
  ASSERT_EQ(store_->TakeInventory().value().block_count, 1u);
  ArmFault("plain_store.count0", {.action = Fault::Action::kHang});
  testing::internal::CaptureStderr();
  const StoreInventory inventory = store_->TakeInventory().value();
  DisarmAllFaults();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("root_hangs")));
  EXPECT_THAT(inventory.failed_roots, testing::IsEmpty());
  EXPECT_EQ(inventory.block_count, 1u);
}

TEST_P(OneBadRoot, ItIsNamedAndItsBlocksGoOnCounting) {
  Put(second_ + "/more", "333");
  const StoreInventory inventory = store_->TakeInventory().value();
  EXPECT_EQ(inventory.block_count, 3u);
  EXPECT_EQ(inventory.block_bytes, 6u);
  ASSERT_EQ(inventory.failed_roots.size(), 1u);
  EXPECT_THAT(inventory.failed_roots[0], HasSubstr(first_ + ": "));
}

TEST_P(OneBadRoot, ItIsUsedAgainWhenItAnswers) {
  EXPECT_FALSE(ReadAll("in-first").ok());
  DisarmAllFaults();
  const TimePoint deadline = Clock::System().Now() + kBound;
  while (!ReadAll("in-first").ok() && Clock::System().Now() < deadline) {
  }
  EXPECT_EQ(ReadAll("in-first").value(), "1");
}

TEST_F(PlainStoreTest, OfTwoCopiesTheOneWrittenLastCounts) {
  Put(first_ + "/b", "before its root hung");
  Put(second_ + "/b", "meanwhile");
  const timespec times[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (first_ + "/b").c_str(), times, 0), 0);
  EXPECT_EQ(ReadAll("b").value(), "meanwhile");
}

TEST_F(PlainStoreTest, BlocksAreForTheGroupWhateverTheUmask) {
  const mode_t before = ::umask(0);
  auto writer = store_->Create("block", 1).value();
  ASSERT_TRUE(writer->WriteAt(0, std::vector<uint8_t>{'x'}).ok());
  ASSERT_TRUE(writer->Commit().ok());
  ::umask(before);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_.File(""))) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(static_cast<unsigned>(entry.status().permissions()), 0640u) << entry.path();
  }
}

TEST_F(PlainStoreTest, RootsMustBeDirectories) {
  Put(scratch_.File("file"), "x");
  const absl::Status status = OpenPlainStore({first_, scratch_.File("file")}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(scratch_.File("file")));
}

TEST_F(PlainStoreTest, AnOnlyRootThatIsMissingAtTheStartIsTakenWhenItComes) {
  const std::string late = scratch_.File("late");
  auto opened = OpenPlainStore({late});
  ASSERT_TRUE(opened.ok()) << opened.status();
  store_ = *std::move(opened);
  EXPECT_TRUE(absl::IsUnavailable(ReadAll("block").status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->Create("new", 1).status()));
  EXPECT_THAT(store_->TakeInventory().value().failed_roots, testing::SizeIs(1));
  std::filesystem::create_directories(late);
  Put(late + "/block", "1");
  EXPECT_EQ(ReadAll("block").value(), "1");
  EXPECT_THAT(store_->TakeInventory().value().failed_roots, testing::IsEmpty());
}

// Its disk comes later, or never.
TEST_F(PlainStoreTest, ARootThatIsMissingAtTheStartCostsOnlyItself) {
  Put(second_ + "/in-second", "22");
  const std::string late = scratch_.File("late");
  store_ = OpenPlainStore({late, second_}).value();
  EXPECT_EQ(ReadAll("in-second").value(), "22");
  const absl::Status unknown = ReadAll("in-late").status();
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << "it may be there: " << unknown;
  const StoreInventory without = store_->TakeInventory().value();
  EXPECT_EQ(without.block_count, 1u);
  ASSERT_EQ(without.failed_roots.size(), 1u);
  EXPECT_THAT(without.failed_roots[0], HasSubstr(late + ": "));
  ASSERT_TRUE(store_->Create("new", 1).ok()) << "in the other one";
  std::filesystem::create_directories(late);
  Put(late + "/in-late", "1");
  Put(late + "/.ecpipe-tmp-1-0", "half");
  EXPECT_EQ(ReadAll("in-late").value(), "1");
  const StoreInventory with = store_->TakeInventory().value();
  EXPECT_EQ(with.block_count, 2u);
  EXPECT_THAT(with.failed_roots, testing::IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(late + "/.ecpipe-tmp-1-0")) << "it is cleaned late";
}

TEST_F(PlainStoreTest, AnOnlyRootThatIsSlowIsWaitedFor) {
  Put(first_ + "/block", "1");
  ArmFault("plain_store.root0", {.action = Fault::Action::kHang});
  std::thread mends([] {
    std::this_thread::sleep_for(RootCalls::kPatience * 3 / 2);  // sleep-ok: it is slow that long
    DisarmAllFaults();
  });
  absl::StatusOr<std::unique_ptr<BlockStore>> opened = OpenPlainStore({first_});
  mends.join();
  ASSERT_TRUE(opened.ok()) << opened.status();
  store_ = *std::move(opened);
  EXPECT_EQ(ReadAll("block").value(), "1");
}

class OneBadRootAtTheStart : public PlainStoreTest,
                             public testing::WithParamInterface<Fault::Action> {};
INSTANTIATE_TEST_SUITE_P(By, OneBadRootAtTheStart,
                         testing::Values(Fault::Action::kError, Fault::Action::kHang),
                         [](const auto& action) {
                           return action.param == Fault::Action::kHang ? "Hang" : "Error";
                         });

TEST_P(OneBadRootAtTheStart, CostsOnlyItselfUntilItAnswers) {
  Put(first_ + "/in-first", "1");
  Put(second_ + "/in-second", "22");
  constexpr Duration kBound = std::chrono::seconds(20);
  const TimePoint begun = Clock::System().Now();
  ArmFault("plain_store.root0", {.action = GetParam()});
  store_ = OpenPlainStore({first_, second_}).value();
  EXPECT_EQ(ReadAll("in-second").value(), "22");
  const absl::Status unknown = ReadAll("in-first").status();
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << "it may be there: " << unknown;
  const StoreInventory inventory = store_->TakeInventory().value();
  EXPECT_EQ(inventory.block_count, 1u);
  ASSERT_EQ(inventory.failed_roots.size(), 1u);
  EXPECT_THAT(inventory.failed_roots[0], HasSubstr(first_ + ": "));
  EXPECT_LT(Clock::System().Now() - begun, kBound);
  DisarmAllFaults();
  const TimePoint deadline = Clock::System().Now() + kBound;
  while (!ReadAll("in-first").ok() && Clock::System().Now() < deadline) {
  }
  EXPECT_EQ(ReadAll("in-first").value(), "1");
  EXPECT_THAT(store_->TakeInventory().value().failed_roots, testing::IsEmpty());
}

}  // namespace
}  // namespace ecpipe::plain_store_test
