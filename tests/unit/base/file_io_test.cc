// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "base/fault_points.h"
#include "unit/base/fifo_reader.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::file_io_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Bytes = std::vector<uint8_t>;

std::set<std::string> Names(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

Bytes Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t PagesInMemory(const std::string& path) {
  const UniqueFd fd = OpenForReading(path).value();
  const size_t bytes = FileBytes(fd.get()).value();
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(::mincore(mapped, bytes, pages.data()), 0);
  ::munmap(mapped, bytes);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

void Put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

class FileIo : public testing::Test {
 protected:
  const ScratchDirectory scratch_;
  const std::string directory_ = scratch_.File("");
  const std::string path_ = scratch_.File("block");
};

TEST_F(FileIo, ReadsWhatWasWritten) {
  Put(path_, "0123456789");
  const UniqueFd fd = OpenForReading(path_).value();
  EXPECT_EQ(FileBytes(fd.get()).value(), 10u);
  Bytes out(4);
  ASSERT_TRUE(ReadFully(fd.get(), 3, out).ok());
  EXPECT_THAT(out, ElementsAre('3', '4', '5', '6'));
  EXPECT_TRUE(ReadFully(fd.get(), 100, {}).ok()) << "nothing can be read anywhere";
}

TEST_F(FileIo, ReadingPastTheEndIsOutOfRange) {
  Put(path_, "0123456789");
  const UniqueFd fd = OpenForReading(path_).value();
  Bytes out(4);
  for (const uint64_t offset : {7u, 10u, 1000u}) {
    const absl::Status read = ReadFully(fd.get(), offset, out);
    EXPECT_EQ(read.code(), absl::StatusCode::kOutOfRange) << offset;
    EXPECT_THAT(std::string(read.message()), HasSubstr("ends")) << offset;
  }
}

TEST_F(FileIo, OpensRegularFilesOnly) {
  EXPECT_TRUE(absl::IsNotFound(OpenForReading(path_).status()));
  EXPECT_THAT(std::string(OpenForReading(path_).status().message()), HasSubstr(path_));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenForReading(directory_).status()));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  // A FIFO without a writer would block the open for ever.
  EXPECT_TRUE(absl::IsInvalidArgument(OpenForReading(path_).status()));
}

TEST_F(FileIo, AFullDiskIsResourceExhausted) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.valid()) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(WriteFully(full.get(), 0, Bytes(10)).code(), absl::StatusCode::kResourceExhausted);
}

// Whether files have temporary names, as where a file system knows nothing better.
class AtomicFiles : public FileIo, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) ArmFault("file_io.unnamed", {});
  }
  void TearDown() override { DisarmAllFaults(); }
  bool Named() const {
    const UniqueFd unnamed(::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    return GetParam() || !unnamed.valid();
  }
};
INSTANTIATE_TEST_SUITE_P(Named, AtomicFiles, testing::Bool(), [](const auto& named) {
  return std::string(named.param ? "ByATemporaryName" : "ByNone");
});

TEST_P(AtomicFiles, AFileAppearsOnlyAtCommit) {
  auto file = AtomicFile::Create(path_).value();
  EXPECT_EQ(file.path(), path_);
  ASSERT_TRUE(file.WriteAt(2, Bytes{3, 4}).ok());
  ASSERT_TRUE(file.WriteAt(0, Bytes{1, 2}).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_THAT(Content(path_), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Names(directory_), ElementsAre("block"));
}

TEST_P(AtomicFiles, WhatIsNotCommittedLeavesNothing) {
  {
    auto file = AtomicFile::Create(path_).value();
    ASSERT_TRUE(file.WriteAt(0, Bytes(100)).ok());
    if (Named()) {  // which is no block id
      EXPECT_THAT(*Names(directory_).begin(), testing::StartsWith(AtomicFile::kTempPrefix));
    } else {
      EXPECT_THAT(Names(directory_), IsEmpty()) << "nor does a killed process leave any";
    }
  }
  EXPECT_THAT(Names(directory_), IsEmpty());
}

TEST_P(AtomicFiles, AMovedFileIsRemovedOnce) {
  auto first = AtomicFile::Create(path_).value();
  {
    AtomicFile second = std::move(first);
    ASSERT_TRUE(second.WriteAt(0, Bytes{7}).ok());
    ASSERT_TRUE(second.Commit().ok());
  }
  EXPECT_THAT(Content(path_), ElementsAre(7));
}

TEST_P(AtomicFiles, ReadsBackBeforeCommit) {
  auto file = AtomicFile::Create(path_).value();
  ASSERT_TRUE(file.WriteAt(0, Bytes{1, 2, 3}).ok());
  Bytes out(2);
  ASSERT_TRUE(file.ReadAt(1, out).ok());
  EXPECT_THAT(out, ElementsAre(2, 3));
  EXPECT_EQ(file.ReadAt(2, out).code(), absl::StatusCode::kOutOfRange);
}

TEST_P(AtomicFiles, RoomCanBeSetAside) {
  constexpr uint64_t kBytes = 1 << 20;
  const std::string path = scratch_.File("a");
  auto file = AtomicFile::Create(path).value();
  const absl::StatusOr<bool> set_aside = file.Reserve(kBytes);
  ASSERT_TRUE(set_aside.ok()) << set_aside.status();
  if (!*set_aside) GTEST_SKIP() << "this file system cannot";
  ASSERT_TRUE(file.WriteAt(0, std::vector<uint8_t>{1, 2, 3}).ok());
  ASSERT_TRUE(file.Commit().ok());
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 3) << "it is as long as what was written";
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, kBytes);
}

TEST_P(AtomicFiles, MoreRoomThanThereIsIsRefused) {
  struct statvfs disk{};
  ASSERT_EQ(::statvfs(scratch_.File("").c_str(), &disk), 0);
  auto file = AtomicFile::Create(scratch_.File("a")).value();
  const absl::StatusOr<bool> small = file.Reserve(4096);
  ASSERT_TRUE(small.ok()) << small.status();
  if (!*small) GTEST_SKIP() << "this file system cannot";
  const uint64_t all = uint64_t{disk.f_blocks} * disk.f_frsize;
  EXPECT_TRUE(absl::IsResourceExhausted(file.Reserve(2 * all).status()));
}

TEST_P(AtomicFiles, ReplacesByDefault) {
  Put(path_, "old");
  auto file = AtomicFile::Create(path_).value();
  ASSERT_TRUE(file.WriteAt(0, Bytes{'n'}).ok());
  EXPECT_THAT(Content(path_), ElementsAre('o', 'l', 'd'));
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_THAT(Content(path_), ElementsAre('n'));
}

TEST_P(AtomicFiles, CanRefuseToReplace) {
  constexpr auto kRefuse = AtomicFile::Existing::kRefuse;
  auto early = AtomicFile::Create(path_, kRefuse).value();
  Put(path_, "old");
  EXPECT_TRUE(absl::IsAlreadyExists(AtomicFile::Create(path_, kRefuse).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(early.Commit())) << "it came in between";
  EXPECT_THAT(Content(path_), ElementsAre('o', 'l', 'd'));

  auto free = AtomicFile::Create(scratch_.File("other"), kRefuse).value();
  EXPECT_TRUE(free.Commit().ok());
  EXPECT_TRUE(std::filesystem::exists(scratch_.File("other")));
}

TEST_P(AtomicFiles, NeedsTheDirectory) {
  const auto file = AtomicFile::Create(scratch_.File("missing/block"));
  EXPECT_TRUE(absl::IsNotFound(file.status()));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("missing/block"));
}

TEST_P(AtomicFiles, AFailedCommitLeavesTheTargetAndNoTemporaryFile) {
  {
    auto file = AtomicFile::Create(path_).value();
    std::filesystem::create_directory(path_);
    Put(path_ + "/inside", "x");  // no rename replaces a directory with something in it
    EXPECT_FALSE(file.Commit().ok());
  }
  EXPECT_THAT(Names(directory_), ElementsAre("block"));
}

TEST_P(AtomicFiles, TakesTheLongestNames) {
  const std::string longest = scratch_.File(std::string(255, 'x'));
  auto file = AtomicFile::Create(longest).value();
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_TRUE(std::filesystem::exists(longest));
}

TEST_F(FileIo, PassesOverWhatAKilledProcessLeft) {
  ArmFault("file_io.unnamed", {});
  // The next names that this process would take.
  std::vector<std::string> left;
  {
    auto probe = AtomicFile::Create(path_).value();
    left.assign(1, *Names(directory_).begin());
  }
  const size_t dash = left[0].rfind('-');
  const uint64_t number = std::stoull(left[0].substr(dash + 1));
  for (uint64_t i = 1; i <= 3; ++i) {
    Put(scratch_.File(left[0].substr(0, dash + 1) + std::to_string(number + i)), "stale");
  }
  auto file = AtomicFile::Create(path_).value();
  ASSERT_TRUE(file.WriteAt(0, Bytes{1}).ok());
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_THAT(Content(path_), ElementsAre(1));
  DisarmAllFaults();
}

// Writes and commits `text`, as two pieces in the wrong order.
absl::Status PutText(const std::string& path, const std::string& text) {
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(path);
  if (!file.ok()) return file.status();
  const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  const size_t half = bytes.size() / 2;
  absl::Status status = file->WriteAt(half, bytes.subspan(half));
  status.Update(file->WriteAt(0, bytes.first(half)));
  return status.ok() ? file->Commit() : status;
}

TEST_P(AtomicFiles, LinksStayAndWhatTheyLeadToIsReplaced) {
  Put(scratch_.File("target"), "old");
  std::filesystem::create_symlink("target", scratch_.File("second"));
  std::filesystem::create_symlink(scratch_.File("second"), path_);
  ASSERT_TRUE(PutText(path_, "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_TRUE(std::filesystem::is_symlink(scratch_.File("second")));
  EXPECT_EQ(Content(scratch_.File("target")), (Bytes{'n', 'e', 'w'}));
}

TEST_P(AtomicFiles, ALinkToNothingYetMakesTheFile) {
  std::filesystem::create_symlink("later", path_);
  ASSERT_TRUE(PutText(path_, "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(Content(scratch_.File("later")), (Bytes{'n', 'e', 'w'}));
}

TEST_P(AtomicFiles, LinksInACircleAndDirectoriesAreRefused) {
  std::filesystem::create_symlink("block", path_);
  EXPECT_TRUE(absl::IsPermissionDenied(PutText(path_, "new")));
  const absl::Status status = PutText(directory_ + ".", "new");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST_P(AtomicFiles, AnotherUsersLinkInASharedDirectoryIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's link";
  const std::string shared = scratch_.File("shared");
  std::filesystem::create_directory(shared);
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  Put(path_, "old");
  std::filesystem::create_symlink(path_, shared + "/link");
  ASSERT_EQ(::lchown((shared + "/link").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(PutText(shared + "/link", "new")));
  EXPECT_EQ(Content(path_), (Bytes{'o', 'l', 'd'}));
}

TEST_P(AtomicFiles, AFifoStaysAndItsReaderHasAllInOrder) {
  FifoReader reader(path_);
  const std::string text(200'001, 'x');
  const absl::Status status = PutText(path_, "first" + text + "last");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(reader.Finish(), "first" + text + "last");
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_THAT(Names(directory_), ElementsAre("block"));
}

TEST_F(FileIo, AReaderThatLeavesIsAnErrorAndNoSignal) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const UniqueFd writer = OpenStream({path_, true, -1}, nullptr).value();
  reader.reset();
  const Bytes bytes(1000);
  const absl::Status status = WriteStream(writer.get(), bytes, nullptr);
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("its reader has closed it"));
}

TEST_P(AtomicFiles, ADeviceStays) {
  // A device of its own: a defect here must not cost the machine its /dev/null.
  if (::mknod(path_.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "needs root";
  const absl::Status status = PutText(path_, "gone");
  if (absl::IsPermissionDenied(status)) GTEST_SKIP() << "the file system knows no devices";
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(std::filesystem::is_character_file(path_));
}

TEST_P(AtomicFiles, ADescriptorsPathAppendsToIt) {
  const UniqueFd log(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(log.get(), "a", 1), 1);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(log.get()),
                                  scratch_.File("stdout"));
  ASSERT_TRUE(PutText(scratch_.File("stdout"), "bc").ok());
  EXPECT_EQ(Content(path_), (Bytes{'a', 'b', 'c'}));
}

TEST_P(AtomicFiles, FilesAreReadableAsTheUmaskSays) {
  auto file = AtomicFile::Create(path_).value();
  ASSERT_TRUE(file.Commit().ok());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0666u & ~mask);
}

TEST_P(AtomicFiles, ADaemonsFilesAreItsGroupsWhateverTheUmask) {
  for (const mode_t mask : {0, 077}) {
    const mode_t before = ::umask(mask);
    auto file = AtomicFile::Create(path_, {.access = AtomicFile::Access::kService}).value();
    ASSERT_TRUE(file.Commit().ok());
    ::umask(before);
    struct stat info{};
    ASSERT_EQ(::stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0640u) << "umask " << mask;
  }
}

TEST_P(AtomicFiles, StayInTheDirectoryThatWasOpened) {
  const std::string root = scratch_.File("root");
  std::filesystem::create_directory(root);
  const UniqueFd opened(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto below = AtomicFile::CreateBelow(opened.get(), root + "/a", {}).value();
  auto by_path = AtomicFile::Create(root + "/b").value();
  std::filesystem::rename(root, scratch_.File("moved"));
  std::filesystem::create_directory(root);  // what the system disk has below a mount point
  auto later = AtomicFile::CreateBelow(opened.get(), root + "/c", {}).value();
  for (AtomicFile* file : {&below, &by_path, &later}) ASSERT_TRUE(file->Commit().ok());
  EXPECT_THAT(Names(root), IsEmpty());
  EXPECT_THAT(Names(scratch_.File("moved")), testing::UnorderedElementsAre("a", "b", "c"));
}

TEST_P(AtomicFiles, CleaningUpDoesNotTakeWhatIsBeingCommitted) {
  std::atomic<bool> done{false};
  std::thread cleaner([&] {
    // A file that has a name and no lock yet may go: its creator takes another name.
    while (!done) ASSERT_TRUE(RemoveAbandonedFiles(directory_).ok());
  });
  int failed = 0;
  for (int i = 0; i < 300; ++i) {
    auto file = AtomicFile::Create(path_).value();
    if (!file.Commit().ok()) ++failed;
  }
  done = true;
  cleaner.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(FileIo, WhatIsNotReadAgainLeavesThePageCache) {
  struct statfs system{};
  ASSERT_EQ(::statfs(directory_.c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "a file system in memory drops nothing";
  const Bytes piece(1 << 20, 7);
  for (const auto& [cache, kept] :
       {std::pair(AtomicFile::Cache::kKeep, true), std::pair(AtomicFile::Cache::kDrop, false)}) {
    auto file = AtomicFile::Create(path_, {.cache = cache}).value();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(file.WriteAt(uint64_t(i) << 20, piece).ok());
    Bytes back(piece.size());
    ASSERT_TRUE(file.ReadAt(0, back).ok());
    EXPECT_EQ(back, piece);
    ASSERT_TRUE(file.Commit().ok());
    const size_t pages = PagesInMemory(path_);
    EXPECT_EQ(pages > 20 * 256 / 2, kept) << pages << " pages";
  }
}

TEST_P(AtomicFiles, OnlyAbandonedFilesAreRemoved) {
  const std::string prefix = directory_ + AtomicFile::kTempPrefix;
  Put(prefix + "1-0", "left behind");
  Put(prefix + "1-1", "");
  Put(directory_ + "block", "a block");
  std::filesystem::create_symlink("block", prefix + "link");
  auto file = AtomicFile::Create(directory_ + "new").value();
  ASSERT_TRUE(file.WriteAt(0, Bytes{1}).ok());
  EXPECT_EQ(RemoveAbandonedFiles(directory_).value(), 2);
  EXPECT_EQ(RemoveAbandonedFiles(directory_).value(), 0);
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(Names(directory_).count("block"), 1u);
  EXPECT_EQ(Names(directory_).count("new"), 1u);
  EXPECT_TRUE(absl::IsNotFound(RemoveAbandonedFiles(directory_ + "nowhere").status()));
}

}  // namespace
}  // namespace ecpipe::file_io_test
