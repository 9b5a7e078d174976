// SPDX-License-Identifier: Apache-2.0
#include "model/block_checksums.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/bytes/crc32c.h"
#include "model/block_id.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::block_checksums_test {
namespace {

constexpr char kSha256[] = "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53";

class BlockChecksumsTest : public testing::Test {
 protected:
  std::string Path() const { return scratch_.File(ChecksumFileName("b")); }

  // In steps that fit no chunk.
  void Write(std::span<const uint8_t> block) {
    std::filesystem::remove(Path());
    auto writer = ChecksumFileWriter::Create(scratch_.File(""), "b").value();
    for (size_t at = 0; at < block.size(); at += 1000) {
      ASSERT_TRUE(writer.Append(block.subspan(at, std::min<size_t>(1000, block.size() - at))).ok());
    }
    EXPECT_FALSE(std::filesystem::exists(Path()));
    EXPECT_TRUE(absl::IsInvalidArgument(writer.Commit("abc")));
    ASSERT_TRUE(writer.Commit(kSha256).ok());
  }

  absl::StatusOr<ChecksumFile> Open(uint64_t block_bytes, const std::string& block_id = "b") {
    return ChecksumFile::Open(OpenForReading(Path()).value(), block_id, block_bytes);
  }

  static std::vector<uint8_t> Block(size_t bytes) {
    std::vector<uint8_t> block(bytes);
    for (size_t i = 0; i < bytes; ++i) block[i] = static_cast<uint8_t>(i * 7 + i / 251);
    return block;
  }

  const ScratchDirectory scratch_;
};

TEST_F(BlockChecksumsTest, ItsNameTellsTheBlock) {
  EXPECT_EQ(BlockOfChecksumFile(ChecksumFileName("b")), "b");
  EXPECT_EQ(BlockOfChecksumFile("b"), std::nullopt);
  EXPECT_EQ(BlockOfChecksumFile(".crc32b.b"), std::nullopt);
}

TEST_F(BlockChecksumsTest, HasTheChecksumOfEveryChunk) {
  // One window of entries and a bit, with a last chunk that is short, and sizes around a chunk.
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{1030} * 4096 + 5}) {
    const std::vector<uint8_t> block = Block(bytes);
    Write(block);
    auto checksums = Open(bytes);
    ASSERT_TRUE(checksums.ok()) << checksums.status();
    EXPECT_EQ(checksums->sha256(), kSha256);
    for (size_t at = 0; at < bytes; at += kChecksumChunkBytes) {
      const size_t step = std::min<size_t>(kChecksumChunkBytes, bytes - at);
      const auto found = checksums->Find(at / kChecksumChunkBytes, false);
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(*found, Crc32c(std::span(block).subspan(at, step))) << bytes << " at " << at;
    }
  }
}

TEST_F(BlockChecksumsTest, AFileOfAnotherBlockOrADamagedHeaderIsDataLoss) {
  Write(Block(10'000));
  EXPECT_TRUE(Open(10'000).ok());
  EXPECT_TRUE(absl::IsDataLoss(Open(9'999).status())) << Open(9'999).status();
  const absl::Status of_another = Open(10'000, "c").status();
  EXPECT_EQ(of_another, absl::DataLossError("its checksum file is for block b"));
  for (const int at : {0, 4, 8, 16, 20, 51, 52, 53, 299, 300, 303}) {
    std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char was = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(was ^ 1));
    file.flush();
    EXPECT_TRUE(absl::IsDataLoss(Open(10'000).status())) << at;
    file.seekp(at);
    file.put(was);
  }
  EXPECT_TRUE(Open(10'000).ok());
}

TEST_F(BlockChecksumsTest, AFileThatHasBecomeShortIsDataLoss) {
  Write(Block(10'000));
  std::filesystem::resize_file(Path(), 304 + 4 * 2);
  auto checksums = Open(10'000);
  ASSERT_TRUE(checksums.ok());
  EXPECT_TRUE(absl::IsDataLoss(checksums->Find(0, false).status()));
  for (const int bytes : {303, 20, 0}) {
    std::filesystem::resize_file(Path(), static_cast<uintmax_t>(bytes));
    EXPECT_EQ(Open(10'000).status(),
              absl::DataLossError("its checksum file is too short to hold a header"));
  }
}

TEST_F(BlockChecksumsTest, AFileOfAnotherFormatIsRefusedByItsName) {
  std::ofstream(Path(), std::ios::binary) << std::string("ECPC\2\0\0\0", 8) << std::string(20, 'x');
  const absl::Status refused = Open(1).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_NE(refused.message().find("has format 2, and this program knows only format 1"),
            std::string::npos)
      << refused;
}

TEST_F(BlockChecksumsTest, NamesAreNoBlockIdsAndFitIntoAFileName) {
  EXPECT_FALSE(ValidateBlockId(ChecksumFileName("b")).ok());
  EXPECT_TRUE(CanHaveChecksumFile(std::string(247, 'x')));
  EXPECT_FALSE(CanHaveChecksumFile(std::string(248, 'x')));
}

}  // namespace
}  // namespace ecpipe::block_checksums_test
