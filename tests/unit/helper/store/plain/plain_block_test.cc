// SPDX-License-Identifier: Apache-2.0
// Blocks with checksum files, as the store opens them.
#include "helper/store/plain/plain_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/bytes/sha256.h"
#include "helper/store/plain/plain_store.h"
#include "model/block_checksums.h"
#include "model/corrupt_block.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::plain_block_test {
namespace {

using ::testing::HasSubstr;

constexpr size_t kHeaderBytes = 304;  // of a checksum file
constexpr size_t kBytes = 5 * kChecksumChunkBytes + 123;

class PlainBlockTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ = OpenPlainStore({root_}).value();
    for (size_t i = 0; i < kBytes; ++i) content_.push_back(static_cast<uint8_t>(i * 31 + i / 256));
    ASSERT_TRUE(Store(store_.get()).ok());
  }

  absl::Status Store(BlockStore* store, const std::string& sha256 = "") {
    auto writer = store->Create("b", kBytes);
    if (!writer.ok()) return writer.status();
    // Not in order.
    for (const size_t at : {size_t{10'000}, size_t{0}}) {
      const size_t end = at == 0 ? 10'000 : kBytes;
      if (absl::Status put = (*writer)->WriteAt(at, std::span(content_).subspan(at, end - at));
          !put.ok()) {
        return put;
      }
    }
    if (!sha256.empty()) (*writer)->NoteSha256(sha256);
    return (*writer)->Commit();
  }

  std::string Sha256OfContent() const {
    Sha256 sha256;
    sha256.Update(content_);
    return sha256.FinishHex();
  }

  void Flip(const std::string& path, size_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int was = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(was ^ 1));
  }

  absl::StatusOr<std::vector<uint8_t>> Read(uint64_t offset, size_t bytes) {
    auto block = store_->Open("b");
    if (!block.ok()) return block.status();
    std::vector<uint8_t> out(bytes);
    if (absl::Status read = (*block)->ReadAt(offset, out); !read.ok()) return read;
    std::vector<uint8_t> quick(bytes);
    const absl::StatusOr<bool> had = (*block)->TryReadAt(offset, quick);
    EXPECT_TRUE(had.ok()) << had.status();
    if (had.value_or(false)) {
      EXPECT_EQ(quick, out);
    }
    return out;
  }

  void ExpectCorrupt(const absl::Status& status, const std::string& says) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(CorruptBlockOf(status), "b");
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }

  const ScratchDirectory scratch_;
  const std::string root_ = scratch_.File("");
  const std::string path_ = scratch_.File("b");
  const std::string checksums_ = scratch_.File(ChecksumFileName("b"));
  std::vector<uint8_t> content_;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(PlainBlockTest, ReadsAnyRangeWhateverItsChunks) {
  ASSERT_TRUE(std::filesystem::exists(checksums_));
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{9'999}}) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{4096}, size_t{4097},
                               size_t{8'192}, kBytes - offset}) {
      const auto read = Read(offset, bytes);
      ASSERT_TRUE(read.ok()) << offset << " " << bytes << ": " << read.status();
      EXPECT_TRUE(std::equal(read->begin(), read->end(),
                             content_.begin() + static_cast<std::ptrdiff_t>(offset)));
    }
  }
  EXPECT_EQ(Read(kBytes - 1, 1).value()[0], content_.back());
}

TEST_F(PlainBlockTest, AFlippedBitIsFoundByEveryReadOfItsChunkAndByNoOther) {
  for (const size_t at : {size_t{0}, size_t{5'000}, kBytes - 1}) {
    Flip(path_, at);
    const uint64_t chunk = at / kChecksumChunkBytes * kChecksumChunkBytes;
    for (const auto& [offset, bytes] : {std::pair(size_t{0}, kBytes), std::pair(at, size_t{1}),
                                        std::pair(static_cast<size_t>(chunk), size_t{1})}) {
      ExpectCorrupt(Read(offset, bytes).status(), "from " + std::to_string(chunk));
      auto block = store_->Open("b").value();
      std::vector<uint8_t> out(bytes);
      const absl::StatusOr<bool> quick = block->TryReadAt(offset, out);
      EXPECT_TRUE(!quick.ok() || !*quick) << "the page cache is no way round the check";
    }
    EXPECT_TRUE(Read(2 * kChecksumChunkBytes, 10).ok());
    Flip(path_, at);
  }
  EXPECT_TRUE(Read(0, kBytes).ok());
}

TEST_F(PlainBlockTest, AnotherLengthIsFoundAsItIsOpened) {
  std::filesystem::resize_file(path_, kBytes - 1);
  ExpectCorrupt(store_->Open("b").status(), "its checksum file is for a block of");
}

TEST_F(PlainBlockTest, ABlockThatShrinksWhileItIsReadIsCorrupt) {
  auto block = store_->Open("b").value();
  std::filesystem::resize_file(path_, 9'000);
  std::vector<uint8_t> out(100);
  ExpectCorrupt(block->ReadAt(10'000, out), "it was longer when it was opened");
}

TEST_F(PlainBlockTest, ADamagedChecksumFileMakesTheBlockSuspect) {
  Flip(checksums_, kHeaderBytes + 4);
  ExpectCorrupt(Read(5'000, 1).status(), "from 4096");
  EXPECT_TRUE(Read(0, 4096).ok());
  Flip(checksums_, kHeaderBytes + 4);
  std::filesystem::resize_file(checksums_, kHeaderBytes + 6);
  ExpectCorrupt(Read(0, 1).status(), "too short");
  Flip(checksums_, 20);
  ExpectCorrupt(store_->Open("b").status(), "header");
}

TEST_F(PlainBlockTest, WithoutAChecksumFileNothingIsChecked) {
  std::filesystem::remove(checksums_);
  Flip(path_, 5'000);
  EXPECT_TRUE(Read(0, kBytes).ok());
}

TEST_F(PlainBlockTest, AChecksumFileIsNoLinkOutOfTheRoot) {
  std::filesystem::rename(checksums_, scratch_.File("elsewhere"));
  std::filesystem::create_symlink("elsewhere", checksums_);
  EXPECT_TRUE(absl::IsPermissionDenied(store_->Open("b").status())) << store_->Open("b").status();
}

// A crash between the two renames: the new checksums are there, and the old block.
TEST_F(PlainBlockTest, ACrashWhileACorruptBlockIsReplacedLeavesItKnownAsCorrupt) {
  Flip(path_, 5'000);
  auto writer = ChecksumFileWriter::Create(root_, "b").value();
  ASSERT_TRUE(writer.Append(content_).ok());
  ASSERT_TRUE(writer.Commit(Sha256OfContent()).ok());
  ExpectCorrupt(Read(5'000, 1).status(), "from 4096");
  ASSERT_TRUE(Store(store_.get()).ok());
  EXPECT_EQ(Read(0, kBytes).value(), content_);
}

TEST_F(PlainBlockTest, SaysWhatItWasWhenItWasStored) {
  EXPECT_EQ(store_->Open("b").value()->stored_sha256(), Sha256OfContent());
  // Who has computed it already is believed.
  const std::string noted(64, '7');
  ASSERT_TRUE(Store(store_.get(), noted).ok());
  EXPECT_EQ(store_->Open("b").value()->stored_sha256(), noted);
  std::filesystem::remove(checksums_);
  EXPECT_EQ(store_->Open("b").value()->stored_sha256(), "");
}

TEST_F(PlainBlockTest, FilesOfAnotherBlockUnderItsNameAreNotTakenForIt) {
  std::filesystem::rename(path_, scratch_.File("c"));
  std::filesystem::rename(checksums_, scratch_.File(ChecksumFileName("c")));
  const absl::Status status = store_->Open("c").status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(CorruptBlockOf(status), "c");
  EXPECT_THAT(std::string(status.message()), HasSubstr("its checksum file is for block b"));
}

TEST_F(PlainBlockTest, AStoreThatWritesNoneKeepsThoseThatAreThereRight) {
  const auto store = OpenPlainStore({root_}, StoredChecksums::kOmit).value();
  content_[7] ^= 1;
  ASSERT_TRUE(Store(store.get()).ok());
  EXPECT_EQ(Read(0, kBytes).value(), content_);
  std::filesystem::remove(checksums_);
  ASSERT_TRUE(Store(store.get()).ok());
  EXPECT_FALSE(std::filesystem::exists(checksums_));
}

TEST_F(PlainBlockTest, ADroppedBlockLeavesNothing) {
  std::filesystem::remove(path_);
  std::filesystem::remove(checksums_);
  store_->Create("b", 10).value()->WriteAt(0, content_).IgnoreError();
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  EXPECT_EQ(store_->TakeInventory().value().block_count, 0u);
}

}  // namespace
}  // namespace ecpipe::plain_block_test
