// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/repair_sink.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <string>

namespace ecpipe::repair_sink_test {
namespace {

RepairPart PartOf(const SliceGrid& grid, const BlockLayout& layout = {}) {
  RepairPart part;
  part.grid = grid;
  part.layout = layout;
  return part;
}

class SinkInOrder : public ::testing::Test {
 protected:
  absl::Status Write(uint32_t slice, Row row = 0) {
    const uint64_t begin = kGrid.SliceOffset(slice);
    return sink_.Write(row, slice,
                       std::span<const uint8_t>(block_).subspan(begin, kGrid.SliceBytes(slice)));
  }
  // Of bytes [105, 190) in slices of 10.
  static constexpr SliceGrid kGrid{.offset = 105, .bytes = 85, .slice_bytes = 10};

  SinkInOrder() : block_(300) { std::iota(block_.begin(), block_.end(), uint8_t{0}); }

  std::vector<uint8_t> block_;
  std::vector<uint8_t> taken_;
  PiecesSink take_ = [this](std::span<const std::span<const uint8_t>> pieces) {
    taken_.insert(taken_.end(), pieces[0].begin(), pieces[0].end());
    return absl::OkStatus();
  };
  ProgressFn no_progress_;
  RepairSink sink_{&take_, no_progress_};
};

TEST_F(SinkInOrder, KeepsWhatItHasFromOneAttemptToTheNext) {
  ASSERT_TRUE(sink_.Begin(PartOf(kGrid), 105, 85, {300}).ok());
  EXPECT_EQ(sink_.Missing(), (std::vector<SliceRun>{{0, 9, 1}}));
  EXPECT_FALSE(sink_.Ready(0, 1));
  for (const uint32_t slice : {0u, 1u, 2u}) {
    ASSERT_TRUE(sink_.Ready(0, slice));
    ASSERT_TRUE(Write(slice).ok());
  }
  EXPECT_EQ(sink_.Missing(), (std::vector<SliceRun>{{3, 6, 1}}));
  EXPECT_EQ(sink_.missing_bytes(), 55u);
  ASSERT_TRUE(sink_.Begin(PartOf(kGrid), 105, 85, {300}).ok());
  ASSERT_TRUE(Write(1).ok()) << "one that is there already";
  for (uint32_t slice = 3; slice < 9; ++slice) ASSERT_TRUE(Write(slice).ok());
  EXPECT_EQ(taken_, std::vector<uint8_t>(block_.begin() + 105, block_.begin() + 190));
  EXPECT_EQ(sink_.verified_bytes(), sink_.total_bytes());
  EXPECT_TRUE(sink_.Missing().empty());
}

TEST_F(SinkInOrder, RefusesAnAttemptThatCutsOtherwise) {
  ASSERT_TRUE(sink_.Begin(PartOf(kGrid), 105, 85, {300}).ok());
  SliceGrid other = kGrid;
  other.slice_bytes = 11;
  EXPECT_TRUE(absl::IsInternal(sink_.Begin(PartOf(other), 105, 85, {300})));
  EXPECT_TRUE(absl::IsInternal(Write(0, 1))) << "a row that was not asked for";
}

// With sub-blocks a slice is whole when all its rows are; half a slice counts for nothing.
TEST(Sink, OfSubBlocksBeginsAHalfSliceAgain) {
  const BlockLayout layout{.sub_blocks = 2, .unit_bytes = 4};
  const SliceGrid grid{.offset = 0, .bytes = 16, .slice_bytes = 8};
  std::vector<uint8_t> taken;
  const PiecesSink take = [&](std::span<const std::span<const uint8_t>> pieces) {
    taken.insert(taken.end(), pieces[0].begin(), pieces[0].end());
    return absl::OkStatus();
  };
  const ProgressFn no_progress;
  RepairSink sink(&take, no_progress);
  // Bytes 3 to 30 of a block whose byte i is i.
  ASSERT_TRUE(sink.Begin(PartOf(grid, layout), 3, 27, {32}).ok());
  const auto write = [&](uint32_t slice, Row row) {
    std::vector<uint8_t> bytes;
    layout.ForEachPiece(row, grid.SliceOffset(slice), 8, [&](uint64_t place, uint64_t, uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) bytes.push_back(static_cast<uint8_t>(place + i));
      return true;
    });
    return sink.Write(row, slice, bytes);
  };
  ASSERT_TRUE(write(0, 0).ok());
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(sink.Missing(), (std::vector<SliceRun>{{0, 2, 1}}));
  ASSERT_TRUE(sink.Begin(PartOf(grid, layout), 3, 27, {32}).ok());
  for (const uint32_t slice : {0u, 1u}) {
    ASSERT_TRUE(write(slice, 1).ok());
    ASSERT_TRUE(write(slice, 0).ok());
  }
  std::vector<uint8_t> expected(27);
  std::iota(expected.begin(), expected.end(), uint8_t{3});
  EXPECT_EQ(taken, expected);
}

// Three blocks, whose byte i is i, i + 1 and i + 2, in slices of 10.
class SinkOfSeveral : public ::testing::Test {
 protected:
  static constexpr SliceGrid kGrid{.offset = 5, .bytes = 25, .slice_bytes = 10};

  absl::Status Write(uint32_t slice, Row row) {
    std::vector<uint8_t> bytes(kGrid.SliceBytes(slice));
    std::iota(bytes.begin(), bytes.end(), static_cast<uint8_t>(kGrid.SliceOffset(slice) + row));
    return sink_.Write(row, slice, bytes);
  }

  std::vector<size_t> sizes_;  // of the pieces
  std::vector<std::vector<uint8_t>> taken_{3};
  PiecesSink take_ = [this](std::span<const std::span<const uint8_t>> pieces) {
    EXPECT_EQ(pieces.size(), 3u);
    sizes_.push_back(pieces[0].size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(pieces[i].size(), pieces[0].size());
      taken_[i].insert(taken_[i].end(), pieces[i].begin(), pieces[i].end());
    }
    return absl::OkStatus();
  };
  ProgressFn no_progress_;
  RepairSink sink_{&take_, no_progress_};
};

TEST_F(SinkOfSeveral, HandsOnTheSamePieceOfEachBlock) {
  ASSERT_TRUE(sink_.Begin(PartOf(kGrid), 5, 25, {30, 30, 30}).ok());
  for (uint32_t slice = 0; slice < 3; ++slice) {
    EXPECT_FALSE(sink_.Ready(0, slice + 1)) << "nothing is gathered beyond one slice";
    for (const Row row : {2, 0, 1}) {
      EXPECT_EQ(sizes_.size(), slice) << "not before all rows are there";
      ASSERT_TRUE(sink_.Ready(row, slice));
      ASSERT_TRUE(Write(slice, row).ok());
    }
  }
  EXPECT_EQ(sizes_, (std::vector<size_t>{10, 10, 5}));
  for (size_t i = 0; i < 3; ++i) {
    std::vector<uint8_t> expected(25);
    std::iota(expected.begin(), expected.end(), static_cast<uint8_t>(5 + i));
    EXPECT_EQ(taken_[i], expected) << i;
  }
  EXPECT_EQ(sink_.verified_bytes(), 75u);
}

TEST_F(SinkOfSeveral, AnAttemptThatEndsWithinASliceBringsItAgain) {
  ASSERT_TRUE(sink_.Begin(PartOf(kGrid), 5, 25, {30, 30, 30}).ok());
  for (const Row row : {0, 1, 2}) ASSERT_TRUE(Write(0, row).ok());
  ASSERT_TRUE(Write(1, 0).ok());
  EXPECT_EQ(sink_.Missing(), (std::vector<SliceRun>{{1, 2, 1}}));
  EXPECT_EQ(sink_.missing_bytes(), 15u);
  ASSERT_TRUE(sink_.Begin(PartOf(kGrid), 5, 25, {30, 30, 30}).ok());
  for (uint32_t slice = 1; slice < 3; ++slice) {
    for (const Row row : {0, 1, 2}) ASSERT_TRUE(Write(slice, row).ok());
  }
  EXPECT_EQ(sizes_, (std::vector<size_t>{10, 10, 5}));
  EXPECT_EQ(taken_[2].size(), 25u);
}

// Blocks of 25, 12 and 5 bytes, of which bytes from 5 on are wanted.
TEST(Sink, OfFilesEndsEachWhereItsBlockDoes) {
  const std::string directory = ::testing::TempDir();
  std::vector<AtomicFile> files;
  for (int i = 0; i < 3; ++i) {
    auto file = AtomicFile::Create(directory + "/repair_sink_end_" + std::to_string(i));
    ASSERT_TRUE(file.ok()) << file.status();
    files.push_back(*std::move(file));
  }
  const ProgressFn no_progress;
  RepairSink sink(&files, no_progress);
  const SliceGrid grid{.offset = 5, .bytes = 20, .slice_bytes = 10};
  ASSERT_TRUE(sink.Begin(PartOf(grid), 5, 20, {25, 12, 5}).ok());
  const std::vector<uint8_t> slice(10, 7);
  for (const uint32_t index : {1u, 0u}) {
    for (const Row row : {0, 1, 2}) ASSERT_TRUE(sink.Write(row, index, slice).ok());
  }
  EXPECT_EQ(sink.verified_bytes(), sink.total_bytes());
  const std::vector<uint64_t> wanted = {20, 7, 0};
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = directory + "/repair_sink_end_" + std::to_string(i);
    ASSERT_TRUE(files[i].Commit().ok());
    EXPECT_EQ(std::filesystem::file_size(path), wanted[i]) << i;
    EXPECT_EQ(sink.bytes_of(i), wanted[i]);
    std::filesystem::remove(path);
  }
}

TEST(Sink, OfFilesNamesTheHolesAndBoundsTheirNumber) {
  const std::string directory = ::testing::TempDir();
  std::vector<AtomicFile> files;
  for (int i = 0; i < 2; ++i) {
    auto file = AtomicFile::Create(directory + "/repair_sink_" + std::to_string(i));
    ASSERT_TRUE(file.ok()) << file.status();
    files.push_back(*std::move(file));
  }
  const ProgressFn no_progress;
  RepairSink sink(&files, no_progress);
  const SliceGrid grid{.offset = 0, .bytes = 2000, .slice_bytes = 1};
  ASSERT_TRUE(sink.Begin(PartOf(grid), 0, 2000, {2000, 2000}).ok());
  const std::vector<uint8_t> byte(1, 7);
  for (const uint32_t slice : {3u, 4u, 8u}) {
    for (const Row row : {0, 1}) ASSERT_TRUE(sink.Write(row, slice, byte).ok());
  }
  ASSERT_TRUE(sink.Write(0, 9, byte).ok());
  EXPECT_EQ(sink.Missing(), (std::vector<SliceRun>{{0, 3, 1}, {5, 3, 1}, {9, 1991, 1}}));
  EXPECT_EQ(sink.verified_bytes(), 6u);
  for (uint32_t slice = 100; slice < 2000; slice += 2) {
    for (const Row row : {0, 1}) ASSERT_TRUE(sink.Write(row, slice, byte).ok());
  }
  EXPECT_EQ(sink.Missing(), (std::vector<SliceRun>{{0, 2000, 1}})) << "too many to name";
}

}  // namespace
}  // namespace ecpipe::repair_sink_test
