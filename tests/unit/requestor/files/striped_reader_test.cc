// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/striped_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace ecpipe::striped_reader_test {
namespace {

using Bytes = std::vector<uint8_t>;

uint8_t ByteOf(uint64_t position) { return static_cast<uint8_t>(position * 167 + (position >> 8)); }

// A part of 3 data blocks from byte 1000 of a file on, and its blocks, written byte by byte.
struct Striped {
  explicit Striped(uint64_t bytes) : part{1000, bytes, 16, {"b0", "b1", "b2"}} {
    for (uint64_t at = 0; at < bytes; ++at) {
      blocks[part.data_blocks[at / 16 % 3]].push_back(ByteOf(at));
    }
  }

  absl::Status Read(const std::string& block_id, uint64_t offset, std::span<uint8_t> out) {
    MutexLock lock(&mutex);
    const Bytes& block = blocks[block_id];
    if (offset + out.size() > block.size()) return absl::OutOfRangeError(block_id);
    std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return absl::OkStatus();
  }

  absl::StatusOr<Bytes> Range(uint64_t begin, uint64_t end) {
    Bytes taken;
    const absl::Status read = ReadPart(
        part, begin, end,
        [this](const std::string& block_id, uint64_t offset, std::span<uint8_t> out) {
          return Read(block_id, offset, out);
        },
        [&](std::span<const uint8_t> bytes) {
          taken.insert(taken.end(), bytes.begin(), bytes.end());
          return absl::OkStatus();
        });
    if (!read.ok()) return read;
    return taken;
  }

  StripedFile::Part part;
  Mutex mutex;
  std::map<std::string, Bytes> blocks;
};

TEST(StripedReader, EveryRangeIsThatOfTheFile) {
  Striped striped(200);
  for (uint64_t begin = 0; begin < 200; begin += 3) {
    for (uint64_t end = begin + 1; end <= 200; end += 7) {
      Bytes expected;
      for (uint64_t at = begin; at < end; ++at) expected.push_back(ByteOf(at));
      const auto range = striped.Range(1000 + begin, 1000 + end);
      ASSERT_TRUE(range.ok()) << range.status();
      ASSERT_EQ(*range, expected) << begin << " to " << end;
    }
  }
}

TEST(StripedReader, OnlyWhatThePartHasIsRead) {
  Striped striped(100);
  EXPECT_EQ(striped.Range(0, 5000)->size(), 100u);
  EXPECT_EQ(RangeInBlock(striped.part, 1, 0, 16), (BlockRange{0, 0}));
  EXPECT_EQ(RangeInBlock(striped.part, 1, 20, 70), (BlockRange{4, 18}));
}

TEST(StripedReader, ManyWindowsAreOneFile) {
  Striped striped(2'000'000);
  striped.part.cell_bytes = 16;
  const auto all = striped.Range(1000, 2'001'000);
  ASSERT_TRUE(all.ok());
  for (uint64_t at = 0; at < all->size(); at += 997) ASSERT_EQ((*all)[at], ByteOf(at));
}

TEST(StripedReader, HolesAreZerosAndNeedNoBlock) {
  Striped striped(96);
  striped.part.data_blocks[1] = "";
  const auto all = striped.Range(1000, 1096);
  ASSERT_TRUE(all.ok());
  for (uint64_t at = 0; at < 96; ++at) {
    EXPECT_EQ((*all)[at], at / 16 % 3 == 1 ? 0 : ByteOf(at)) << at;
  }
}

TEST(StripedReader, ABlockThatCannotBeReadEndsIt) {
  Striped striped(96);
  striped.blocks["b2"].clear();
  EXPECT_TRUE(absl::IsOutOfRange(striped.Range(1000, 1096).status()));
}

TEST(DirectOrRebuilt, OnlyABlockThatIsLostIsNotTriedAgain) {
  absl::Status direct_says;
  int directs = 0;
  int rebuilds = 0;
  DirectOrRebuilt blocks(
      [&](const std::string&, uint64_t, std::span<uint8_t>) {
        ++directs;
        return direct_says;
      },
      [&](const std::string&, uint64_t, std::span<uint8_t>) {
        ++rebuilds;
        return absl::OkStatus();
      });
  Bytes out(10);
  EXPECT_TRUE(blocks.Read("b0", 0, out).ok());
  EXPECT_EQ(std::pair(directs, rebuilds), std::pair(1, 0));
  EXPECT_EQ(blocks.rebuilt(), 0u);
  int asked = 1;
  for (const absl::Status& passing :
       {absl::UnavailableError("lost"), absl::DeadlineExceededError("late"),
        absl::ResourceExhaustedError("busy"), absl::InternalError("odd")}) {
    direct_says = passing;
    EXPECT_TRUE(blocks.Read("b0", 0, out).ok());
    EXPECT_EQ(std::pair(directs, rebuilds), std::pair(asked + 1, asked)) << passing;
    ++asked;
  }
  EXPECT_EQ(blocks.rebuilt(), 1u);
  direct_says = absl::CancelledError("stop");
  EXPECT_TRUE(absl::IsCancelled(blocks.Read("b0", 0, out)));
  for (const auto& [block, definite] :
       std::map<std::string, absl::Status>{{"b1", absl::FailedPreconditionError("no node has it")},
                                           {"b2", absl::NotFoundError("absent")},
                                           {"b3", absl::DataLossError("corrupt")}}) {
    directs = rebuilds = 0;
    direct_says = definite;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(blocks.Read(block, 0, out).ok());
    EXPECT_EQ(std::pair(directs, rebuilds), std::pair(1, 3)) << definite;
  }
  EXPECT_EQ(blocks.rebuilt(), 4u);
}

class FileRangeTest : public testing::Test {
 protected:
  // The two halves of a file of 200 bytes come one at a time.
  absl::StatusOr<StripedFile> FileAt(uint64_t offset) {
    ++asked_;
    StripedFile file = file_;
    if (asked_ > 1 && change_) change_(&file);
    file.parts = {{offset < 100 ? uint64_t{0} : 100, 100, 100, {offset < 100 ? "a" : "b"}}};
    return file;
  }
  absl::StatusOr<uint64_t> Read(uint64_t offset, uint64_t bytes) {
    asked_ = 0;
    taken_.clear();
    return ReadFileRange(
        {"/file", offset, bytes}, [this](uint64_t at) { return FileAt(at); },
        [](const std::string& block_id, uint64_t, std::span<uint8_t> out) {
          std::fill(out.begin(), out.end(), static_cast<uint8_t>(block_id[0]));
          return absl::OkStatus();
        },
        [this](std::span<const uint8_t> bytes_of_file) {
          taken_.append(bytes_of_file.begin(), bytes_of_file.end());
          return absl::OkStatus();
        });
  }

  StripedFile file_{"7", 200, {}};
  std::function<void(StripedFile*)> change_;  // of all answers but the first
  int asked_ = 0;
  std::string taken_;
};

TEST_F(FileRangeTest, IsAskedForAsOftenAsAnAnswerHasTooFewParts) {
  ASSERT_EQ(*Read(0, 0), 200u);
  EXPECT_EQ(taken_, std::string(100, 'a') + std::string(100, 'b'));
  EXPECT_EQ(asked_, 2);
  ASSERT_EQ(*Read(98, 5), 5u);
  EXPECT_EQ(taken_, "aabbb");
  ASSERT_EQ(*Read(10, 20), 20u);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(*Read(200, 0), 0u);
  EXPECT_TRUE(absl::IsInvalidArgument(Read(199, 2).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Read(201, 0).status()));
}

TEST_F(FileRangeTest, IsOfOneFileAlone) {
  change_ = [](StripedFile* file) { file->id = "8"; };
  EXPECT_TRUE(absl::IsFailedPrecondition(Read(0, 0).status()));
  change_ = [](StripedFile* file) { file->bytes = 300; };
  EXPECT_TRUE(absl::IsFailedPrecondition(Read(0, 0).status()));
  EXPECT_TRUE(Read(0, 100).ok()) << "one answer is enough";
}

}  // namespace
}  // namespace ecpipe::striped_reader_test
