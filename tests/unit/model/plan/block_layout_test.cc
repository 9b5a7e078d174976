// SPDX-License-Identifier: Apache-2.0
#include "model/plan/block_layout.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace ecpipe::block_layout_test {
namespace {

using Piece = std::tuple<uint64_t, uint64_t, uint64_t>;  // place in the file, at, bytes

std::vector<Piece> Pieces(const BlockLayout& layout, uint32_t sub_block, uint64_t offset,
                          uint64_t bytes) {
  std::vector<Piece> pieces;
  EXPECT_TRUE(layout.ForEachPiece(sub_block, offset, bytes, [&](auto... piece) {
    pieces.emplace_back(piece...);
    return true;
  }));
  return pieces;
}

TEST(BlockLayout, OneSubBlockIsTheBlock) {
  EXPECT_EQ(Pieces({}, 0, 7, 1000), (std::vector<Piece>{{7, 0, 1000}}));
  EXPECT_TRUE(BlockLayout().Fits(1));
  EXPECT_TRUE(BlockLayout().Validate().ok());
}

TEST(BlockLayout, UnitsOfTheSubBlocksComeInTurn) {
  const BlockLayout layout{2, 10};
  EXPECT_EQ(Pieces(layout, 0, 0, 10), (std::vector<Piece>{{0, 0, 10}}));
  EXPECT_EQ(Pieces(layout, 1, 0, 20), (std::vector<Piece>{{10, 0, 10}, {30, 10, 10}}));
  EXPECT_EQ(Pieces(layout, 1, 17, 9), (std::vector<Piece>{{37, 0, 3}, {50, 3, 6}}));
  EXPECT_TRUE(Pieces(layout, 0, 0, 0).empty());
  EXPECT_EQ(layout.group_bytes(), 20u);
  EXPECT_TRUE(layout.Fits(40));
  EXPECT_FALSE(layout.Fits(50));
}

TEST(BlockLayout, EveryByteOfABlockIsInOneSubBlock) {
  const BlockLayout layout{3, 4};
  std::vector<int> seen(60, 0);
  for (uint32_t sub_block = 0; sub_block < 3; ++sub_block) {
    for (const auto& [place, at, bytes] : Pieces(layout, sub_block, 0, 20)) {
      for (uint64_t i = place; i < place + bytes; ++i) ++seen.at(i);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(60, 1));
}

TEST(BlockLayout, TheVisitCanStop) {
  int visits = 0;
  EXPECT_FALSE(BlockLayout({2, 4}).ForEachPiece(0, 0, 12, [&](auto...) { return ++visits < 2; }));
  EXPECT_EQ(visits, 2);
}

TEST(BlockLayout, RefusesWhatCannotBe) {
  for (const BlockLayout layout :
       {BlockLayout{0, 0}, {1, 4}, {2, 0}, {kMaxSubBlocks + 1, 4}, {2, kMaxUnitBytes + 1}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(layout.Validate())) << layout.sub_blocks;
  }
  EXPECT_TRUE(BlockLayout({kMaxSubBlocks, kMaxUnitBytes}).Validate().ok());
}

}  // namespace
}  // namespace ecpipe::block_layout_test
