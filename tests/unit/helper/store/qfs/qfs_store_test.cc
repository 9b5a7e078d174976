// SPDX-License-Identifier: Apache-2.0
#include "helper/store/qfs/qfs_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/mutex.h"
#include "helper/sessions/zero_ended_block.h"
#include "helper/store/qfs/qfs_header.h"
#include "model/corrupt_block.h"
#include "unit/coordinator/store/scratch_directory.h"
#include "unit/helper/store/qfs/qfs_files.h"

namespace ecpipe::qfs_store_test {
namespace {

using ::testing::HasSubstr;

const QfsChunkId kChunk{5, 65539, 1};

class QfsStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) {
      directories_.push_back(scratch_.File(name));
      std::filesystem::create_directories(directories_.back());
    }
  }
  std::unique_ptr<BlockStore> Store(const DirectoryOpener& open = nullptr) {
    auto store = OpenQfsStore(directories_, "10.0.0.7:22000", std::chrono::milliseconds(10), open);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static absl::StatusOr<QfsBytes> Read(BlockReader* reader, uint64_t offset, size_t bytes) {
    QfsBytes out(bytes);
    const absl::Status read = reader->ReadAt(offset, out);
    if (!read.ok()) return read;
    return out;
  }
  static QfsBytes Part(const QfsBytes& content, size_t offset, size_t bytes) {
    return {content.begin() + static_cast<std::ptrdiff_t>(offset),
            content.begin() + static_cast<std::ptrdiff_t>(offset + bytes)};
  }
  static void Overwrite(const std::string& path, uint64_t at, const QfsBytes& bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  ScratchDirectory scratch_;
  std::vector<std::string> directories_;
};

TEST_F(QfsStoreTest, ReadsAChunkInAnyDirectory) {
  const QfsBytes content = QfsContent(1'676'947);
  WriteQfsChunk(directories_[1], kChunk, content, 4096);
  const auto store = Store();
  EXPECT_EQ(store->storage_id(), "qfs.10.0.0.7_22000");
  const auto reader = store->Open("qfs.5.65539.1");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->bytes(), content.size()) << "by the header, not by the file";
  EXPECT_EQ((*reader)->checksum(), (ChecksumKind{ChecksumKind::Type::kAdler32, kQfsChecksumBlock}));
  EXPECT_EQ(Read(reader->get(), 0, content.size()).value(), content);
  for (const auto& [offset, bytes] : std::vector<std::pair<size_t, size_t>>{{0, 1},
                                                                            {65535, 2},
                                                                            {32768, 32768},
                                                                            {100'000, 32768},
                                                                            {1'676'946, 1},
                                                                            {1'600'000, 76'947},
                                                                            {0, 65536}}) {
    EXPECT_EQ(Read(reader->get(), offset, bytes).value(), Part(content, offset, bytes)) << offset;
  }
}

TEST_F(QfsStoreTest, HasNoOtherVersionAndNothingUnfinished) {
  const QfsBytes content = QfsContent(1000);
  WriteQfsChunk(directories_[0], {5, 65539, 2}, content);
  WriteQfsChunk(directories_[0] + "/dirty", {5, 65540, 0}, content);
  WriteQfsChunk(directories_[0] + "/lost+found", {5, 65541, 1}, content);
  WriteQfsChunk(directories_[0], {5, 65542, 0}, content);
  const auto store = Store();
  for (const char* id :
       {"qfs.5.65539.1", "qfs.5.65540.0", "qfs.5.65541.1", "qfs.5.65542.0", "qfs.5.65543.1"}) {
    EXPECT_TRUE(absl::IsNotFound(store->Open(id).status())) << id;
  }
  EXPECT_TRUE(store->Open("qfs.5.65539.2").ok());
  for (const char* id : {"", "../a", "5.65539.2", "qfs.5.65539.2/..", "hdfs.1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store->Open(id).status())) << id;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Create("qfs.5.65539.2", 5).status()));
}

TEST_F(QfsStoreTest, FollowsNoLinksAndOpensNoFifos) {
  const QfsBytes content = QfsContent(1000);
  const std::string elsewhere = WriteQfsChunk(scratch_.File("c"), kChunk, content);
  ASSERT_EQ(::symlink(elsewhere.c_str(), (directories_[0] + "/5.65539.1").c_str()), 0);
  ASSERT_EQ(::mkfifo((directories_[1] + "/5.65540.1").c_str(), 0600), 0);
  const auto store = Store();
  EXPECT_FALSE(store->Open("qfs.5.65539.1").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(store->Open("qfs.5.65540.1").status()));
}

TEST_F(QfsStoreTest, ACorruptByteIsFoundWithItsBlockAlone) {
  const QfsBytes content = QfsContent(200'000);
  const std::string path = WriteQfsChunk(directories_[0], kChunk, content);
  Overwrite(path, 16384 + 70'000, {static_cast<uint8_t>(content[70'000] ^ 1)});
  const auto store = Store();
  const auto reader = store->Open("qfs.5.65539.1");
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(Read(reader->get(), 0, 65536).ok());
  EXPECT_TRUE(Read(reader->get(), 131'072, 100).ok());
  // Also for a slice that is smaller than a checksum's block, and does not have the byte.
  for (const size_t offset : {65'536, 100'000}) {
    const absl::Status status = Read(reader->get(), offset, 100).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(CorruptBlockOf(status), "qfs.5.65539.1");
  }
}

TEST_F(QfsStoreTest, TheLastBlockIsSummedWithZeros) {
  for (const size_t bytes : {1, 65535, 65536, 65537, 131'071}) {
    const QfsBytes content = QfsContent(bytes);
    WriteQfsChunk(directories_[0], kChunk, content);
    const auto store = Store();
    const auto reader = store->Open("qfs.5.65539.1");
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(Read(reader->get(), 0, bytes).value(), content) << bytes;
    EXPECT_EQ(Read(reader->get(), bytes - 1, 1).value(), Part(content, bytes - 1, 1)) << bytes;
  }
}

TEST_F(QfsStoreTest, BlocksThatWereNeverWrittenAreZeros) {
  const QfsBytes zeros(100'000, 0);
  const std::string path = WriteQfsChunk(directories_[0], kChunk, zeros);
  QfsBytes header = QfsFileHeader(kChunk, zeros);
  std::fill(header.begin() + 40, header.begin() + 4136, uint8_t{0});
  std::fill(header.begin() + 4400, header.begin() + 4408, uint8_t{0});  // "none"
  Overwrite(path, 0, header);
  const auto store = Store();
  const auto reader = store->Open("qfs.5.65539.1");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(Read(reader->get(), 0, zeros.size()).value(), zeros);
  Overwrite(path, 16384 + 99'999, {1});
  EXPECT_TRUE(absl::IsDataLoss(Read(reader->get(), 99'000, 100).status()));
}

TEST_F(QfsStoreTest, HeadersThatAreNoneAreRefused) {
  const QfsBytes content = QfsContent(1000);
  const auto refused = [&](const QfsBytes& header) {
    const std::string path = WriteQfsChunk(directories_[0], kChunk, content);
    Overwrite(path, 0, header);
    return Store()->Open("qfs.5.65539.1").status();
  };
  const QfsBytes good = QfsFileHeader(kChunk, content);
  EXPECT_TRUE(refused(good).ok());
  for (const size_t at : {0, 9, 17, 33, 41, 4140, 4401}) {
    QfsBytes bad = good;
    bad[at] ^= 0x40;
    EXPECT_TRUE(absl::IsDataLoss(refused(bad))) << at << refused(bad);
  }
  EXPECT_TRUE(absl::IsDataLoss(refused(QfsFileHeader({5, 65540, 1}, content))));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused(QfsFileHeader({5, 65539, 2}, content))));
  QfsBytes swapped = good;
  std::reverse(swapped.begin(), swapped.begin() + 4);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused(swapped)));
  const std::string path = WriteQfsChunk(directories_[0], kChunk, content);
  std::filesystem::resize_file(path, 4000);
  EXPECT_TRUE(absl::IsDataLoss(Store()->Open("qfs.5.65539.1").status()));
}

TEST_F(QfsStoreTest, AFileThatEndsEarlyIsCorrupt) {
  const QfsBytes content = QfsContent(200'000);
  const std::string path = WriteQfsChunk(directories_[0], kChunk, content);
  const auto store = Store();
  const auto reader = store->Open("qfs.5.65539.1");
  ASSERT_TRUE(reader.ok());
  std::filesystem::resize_file(path, 16384 + 100'000);
  EXPECT_TRUE(Read(reader->get(), 0, 65536).ok());
  EXPECT_TRUE(absl::IsDataLoss(Read(reader->get(), 120'000, 10).status()));
}

TEST_F(QfsStoreTest, AChunkThatVanishesIsReadToItsEnd) {
  const QfsBytes content = QfsContent(200'000);
  const std::string path = WriteQfsChunk(directories_[0], kChunk, content);
  const auto store = Store();
  const auto reader = store->Open("qfs.5.65539.1");
  ASSERT_TRUE(reader.ok());
  std::filesystem::remove(path);
  EXPECT_EQ(Read(reader->get(), 0, content.size()).value(), content);
  EXPECT_TRUE(absl::IsNotFound(store->Open("qfs.5.65539.1").status()));
  WriteQfsChunk(directories_[1], kChunk, content);
  EXPECT_TRUE(store->Open("qfs.5.65539.1").ok()) << "it has moved";
}

// Nobody may take a chunk that QFS writes anew for a corrupt one.
TEST_F(QfsStoreTest, AChunkThatIsWrittenAnewIsNotCorrupt) {
  const QfsBytes content = QfsContent(200'000);
  const std::string path = WriteQfsChunk(directories_[0], kChunk, content);
  const auto store = Store();
  const auto reader = store->Open("qfs.5.65539.1");
  ASSERT_TRUE(reader.ok());
  const QfsBytes other = QfsContent(200'000, 2);
  Overwrite(path, 0, QfsFileHeader({5, 65539, 2}, other));
  Overwrite(path, 16384, other);
  const absl::Status status = Read(reader->get(), 0, 100).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is being changed"));
}

// What a scan has found at last.
StoreInventory Awaited(BlockStore* store, uint64_t blocks, size_t failed) {
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
  while (true) {
    const StoreInventory inventory = store->TakeInventory().value();
    const bool there = inventory.block_count == blocks && inventory.failed_roots.size() == failed;
    if (there || Clock::System().Now() > give_up) return inventory;
    std::this_thread::yield();
  }
}

TEST_F(QfsStoreTest, ListsStableChunks) {
  WriteQfsChunk(directories_[0], kChunk, QfsContent(1000));
  WriteQfsChunk(directories_[1], {6, 70000, 3}, QfsContent(2000));
  WriteQfsChunk(directories_[1], {6, 70000, 2}, QfsContent(500));
  WriteQfsChunk(directories_[1], {6, 70001, 0}, QfsContent(500));
  WriteQfsChunk(directories_[1] + "/dirty", {6, 70002, 1}, QfsContent(500));
  WriteBytes(directories_[0] + "/evacuate", {1, 2, 3});
  const auto store = Store();
  const StoreInventory inventory = Awaited(store.get(), 2, 0);
  EXPECT_EQ(inventory.block_count, 2u);
  EXPECT_EQ(inventory.block_bytes, 3000u);
  const auto& chunks = store->Listing().blocks->at(kQfsPool);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].block, (InternalBlock{65539, 1, 1000}));
  EXPECT_EQ(chunks[1].block, (InternalBlock{70000, 3, 2000}));
}

TEST_F(QfsStoreTest, ADirectoryThatVanishesCostsOnlyItself) {
  WriteQfsChunk(directories_[1], kChunk, QfsContent(1000));
  WriteQfsChunk(directories_[0], {5, 65540, 1}, QfsContent(1000));
  const auto store = Store();
  Awaited(store.get(), 2, 0);
  std::filesystem::rename(directories_[0], scratch_.File("away"));
  EXPECT_TRUE(store->Open("qfs.5.65539.1").ok());
  const absl::Status gone = store->Open("qfs.5.65540.1").status();
  EXPECT_TRUE(absl::IsNotFound(gone));
  EXPECT_THAT(std::string(gone.message()), HasSubstr(directories_[0]));
  EXPECT_THAT(Awaited(store.get(), 1, 1).failed_roots[0], HasSubstr(directories_[0]));
  std::filesystem::rename(scratch_.File("away"), directories_[0]);
  EXPECT_TRUE(store->Open("qfs.5.65540.1").ok());
}

// What a directory's disk does, and when it goes on.
struct Disk {
  Mutex mutex;
  CondVar changed;
  bool hangs ABSL_GUARDED_BY(mutex) = true;

  void Wait() {
    MutexLock lock(&mutex);
    while (hangs) changed.Wait(lock);
  }
  void GoOn() {
    {
      MutexLock lock(&mutex);
      hangs = false;
    }
    changed.NotifyAll();
  }
};

TEST_F(QfsStoreTest, ADirectoryThatHangsCostsOnlyItself) {
  WriteQfsChunk(directories_[1], kChunk, QfsContent(1000));
  const auto disk = std::make_shared<Disk>();  // shared with the thread that hangs
  const std::string hanging = directories_[0];
  const auto begun = Clock::System().Now();
  {
    const auto store = Store([disk, hanging](const std::string& path) {
      if (path == hanging) disk->Wait();
      return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    });
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(store->Open("qfs.5.65539.1").ok());
    EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(2)) << "it is not waited for";
    const absl::Status nowhere = store->Open("qfs.5.65540.1").status();
    EXPECT_THAT(std::string(nowhere.message()), HasSubstr("does not answer"));
  }
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(30)) << "the end waits not for it";
  disk->GoOn();
}

UniqueFd OpenedDirectory(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

TEST_F(QfsStoreTest, AListingThatTakesLongKeepsNobodyWaiting) {
  WriteQfsChunk(directories_[0], kChunk, QfsContent(1000));
  const auto disk = std::make_shared<Disk>();
  const auto opened = std::make_shared<std::atomic<int>>(0);
  const auto store = Store([disk, opened](const std::string& path) {
    if ((*opened)++ < 2) disk->Wait();  // the first listing, of both
    return OpenedDirectory(path);
  });
  while (*opened < 2) std::this_thread::yield();
  const auto begun = Clock::System().Now();
  const auto reader = store->Open("qfs.5.65539.1");
  EXPECT_TRUE(reader.ok()) << reader.status();
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(1));
  disk->GoOn();
}

TEST_F(QfsStoreTest, AnOpenWaitsASecondForADirectoryThatHangs) {
  const auto disk = std::make_shared<Disk>();
  const auto store = Store([disk](const std::string& path) {
    disk->Wait();
    return OpenedDirectory(path);
  });
  const auto begun = Clock::System().Now();
  EXPECT_FALSE(store->Open("qfs.5.65540.1").ok());
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::milliseconds(1900));
  disk->GoOn();
}

TEST_F(QfsStoreTest, WhatCannotBeListedHasWhatItHad) {
  WriteQfsChunk(directories_[0], kChunk, QfsContent(1000));
  WriteQfsChunk(directories_[1], {5, 65540, 1}, QfsContent(1000));
  const std::string file = WriteQfsChunk(scratch_.File("c"), kChunk, QfsContent(1));
  const auto broken = std::make_shared<std::atomic<bool>>(false);
  const auto store = Store([broken, file, bad = directories_[0]](const std::string& path) {
    if (*broken && path == bad) return UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    return OpenedDirectory(path);
  });
  EXPECT_EQ(Awaited(store.get(), 2, 0).block_count, 2u);
  *broken = true;
  const StoreInventory inventory = Awaited(store.get(), 2, 1);
  EXPECT_EQ(inventory.block_count, 2u);
  ASSERT_EQ(inventory.failed_roots.size(), 1u);
  EXPECT_THAT(inventory.failed_roots[0], HasSubstr("list the chunk directory"));
  EXPECT_EQ(store->Listing().blocks->at(kQfsPool).size(), 2u);
  *broken = false;
  EXPECT_EQ(Awaited(store.get(), 2, 0).failed_roots.size(), 0u);
}

TEST_F(QfsStoreTest, SmallSlicesInARowReadAndCheckABlockOnce) {
  const QfsBytes content = QfsContent(150'000);
  const std::string path = WriteQfsChunk(directories_[0], kChunk, content);
  const auto store = Store();
  const auto reader = store->Open("qfs.5.65539.1");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(Read(reader->get(), 65'536, 32'768).value(), Part(content, 65'536, 32'768));
  // What the file has now is seen only where it is read.
  Overwrite(path, 16384 + 98'304, {static_cast<uint8_t>(content[98'304] ^ 1)});
  EXPECT_EQ(Read(reader->get(), 98'304, 32'768).value(), Part(content, 98'304, 32'768));
  QfsBytes quick(100);
  const auto had = (*reader)->TryReadAt(65'600, quick);
  ASSERT_TRUE(had.ok());
  EXPECT_TRUE(*had) << "it is kept, whatever the file system can tell";
  EXPECT_EQ(quick, Part(content, 65'600, 100));
  EXPECT_EQ(Read(reader->get(), 131'072, 18'928).value(), Part(content, 131'072, 18'928));
  EXPECT_TRUE(absl::IsDataLoss(Read(reader->get(), 98'304, 32'768).status())) << "read again";
  EXPECT_TRUE(absl::IsDataLoss(Read(reader->get(), 65'536, 100).status())) << "nothing is kept";
}

TEST_F(QfsStoreTest, WhatAChunkLacksCountsAsZeros) {
  const QfsBytes content = QfsContent(70'000);
  WriteQfsChunk(directories_[0], kChunk, content);
  const auto store = Store();
  EXPECT_TRUE(store->missing_ends_are_zeros());
  ZeroEndedBlock block(store->Open("qfs.5.65539.1").value(), 200'000);
  EXPECT_EQ(block.bytes(), 200'000u);
  EXPECT_EQ(block.checksum(), (ChecksumKind{ChecksumKind::Type::kAdler32, kQfsChecksumBlock}));
  QfsBytes whole = content;
  whole.resize(200'000, 0);
  EXPECT_EQ(Read(&block, 0, 200'000).value(), whole);
  for (const size_t offset : {65'536, 69'999, 70'000, 190'000}) {
    EXPECT_EQ(Read(&block, offset, 100).value(), Part(whole, offset, 100)) << offset;
    QfsBytes quick(100, 1);
    const auto had = block.TryReadAt(offset, quick);
    ASSERT_TRUE(had.ok()) << had.status();
    if (*had || offset >= 70'000) EXPECT_EQ(quick, Part(whole, offset, 100)) << offset;
  }
}

TEST_F(QfsStoreTest, NeedsAPlaceOfItsChunkserver) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      OpenQfsStore(directories_, "nowhere", std::chrono::seconds(1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenQfsStore({}, "h:1", std::chrono::seconds(1)).status()));
}

}  // namespace
}  // namespace ecpipe::qfs_store_test
