// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/block_report_proto.h"

#include <gtest/gtest.h>

#include <vector>

namespace ecpipe::block_report_proto_test {
namespace {

std::vector<v1::ReportBlocksRequest> PiecesOf(const BlockReport& report) {
  std::vector<v1::ReportBlocksRequest> pieces;
  EXPECT_TRUE(WriteReport(report, [&](const v1::ReportBlocksRequest& piece) {
    pieces.push_back(piece);
    return true;
  }));
  return pieces;
}

BlockReport LargeReport() {
  BlockReport report{"n1", 7, 3, 2, {}};
  for (int64_t i = 0; i < 30'000; ++i) {
    report.pools["a"].added.push_back({{-1 - i, 1000, 1 << 20}, 5});
    report.pools["b"].removed.push_back(-1 - i);
  }
  report.pools["b"].added.push_back({{INT64_MIN, INT64_MAX, UINT64_MAX}, UINT64_MAX});
  return report;
}

TEST(BlockReportProto, TravelsInPieces) {
  const BlockReport report = LargeReport();
  const std::vector<v1::ReportBlocksRequest> pieces = PiecesOf(report);
  EXPECT_EQ(pieces.size(), 4u);
  ReportAssembler assembler;
  for (const v1::ReportBlocksRequest& piece : pieces) {
    EXPECT_FALSE(assembler.complete());
    EXPECT_LT(piece.ByteSizeLong(), size_t{1} << 20);
    ASSERT_TRUE(assembler.Add(piece).ok());
  }
  EXPECT_TRUE(assembler.complete());
  EXPECT_EQ(assembler.report(), report);
}

TEST(BlockReportProto, NothingIsOnePiece) {
  const BlockReport report{"n1", 7, 3, 2, {}};
  const std::vector<v1::ReportBlocksRequest> pieces = PiecesOf(report);
  ASSERT_EQ(pieces.size(), 1u);
  ReportAssembler assembler;
  ASSERT_TRUE(assembler.Add(pieces[0]).ok());
  EXPECT_TRUE(assembler.complete());
  EXPECT_EQ(assembler.report(), report);
}

TEST(BlockReportProto, StopsWhenItCannotBeWritten) {
  int written = 0;
  EXPECT_FALSE(WriteReport(LargeReport(), [&](const v1::ReportBlocksRequest&) {
    ++written;
    return false;
  }));
  EXPECT_EQ(written, 1);
}

TEST(BlockReportProto, RefusesWhatIsNoPieceOfTheReport) {
  const v1::ReportBlocksRequest good = PiecesOf(LargeReport())[0];
  const auto refuses = [&](auto change) {
    ReportAssembler assembler;
    v1::ReportBlocksRequest bad = good;
    change(&bad);
    const bool first = absl::IsInvalidArgument(assembler.Add(bad));
    ReportAssembler later;
    EXPECT_TRUE(later.Add(good).ok());
    return std::pair(first, absl::IsInvalidArgument(later.Add(bad)));
  };
  using Piece = v1::ReportBlocksRequest;
  const auto anywhere = std::pair(true, true);
  const auto later_only = std::pair(false, true);
  EXPECT_EQ(refuses([](Piece* piece) { piece->set_node_id("n2"); }), later_only);
  EXPECT_EQ(refuses([](Piece* piece) { piece->set_incarnation(8); }), later_only);
  EXPECT_EQ(refuses([](Piece* piece) { piece->set_after(1); }), later_only);
  EXPECT_EQ(refuses([](Piece* piece) { piece->set_sequence(2); }), anywhere);
  EXPECT_EQ(refuses([](Piece* piece) { piece->set_sequence(0); }), anywhere);
  EXPECT_EQ(refuses([](Piece* piece) { piece->mutable_pools(0)->set_pool("../x"); }), anywhere);
  EXPECT_EQ(refuses([](Piece* piece) { piece->mutable_pools(0)->set_ids(0, 5); }), anywhere);
  EXPECT_EQ(refuses([](Piece* piece) { piece->mutable_pools(0)->add_removed(0); }), anywhere);
  EXPECT_EQ(refuses([](Piece* piece) { piece->mutable_pools(0)->add_stamps(0); }), anywhere);
  EXPECT_EQ(refuses([](Piece* piece) { piece->mutable_pools(0)->add_bytes(0); }), anywhere);
  EXPECT_EQ(refuses([](Piece* piece) { piece->mutable_pools(0)->add_ages_ms(0); }), anywhere);
}

TEST(BlockReportProto, HasLimits) {
  ReportAssembler assembler;
  v1::ReportBlocksRequest piece = PiecesOf({"n1", 7, 1, 0, {}})[0];
  piece.set_last(false);
  for (size_t i = 0; i < BlockReport::kMaxPools; ++i) {
    piece.add_pools()->set_pool("p" + std::to_string(i));
  }
  EXPECT_TRUE(assembler.Add(piece).ok());
  piece.mutable_pools(0)->set_pool("another");
  EXPECT_TRUE(absl::IsResourceExhausted(assembler.Add(piece)));
  ReportAssembler blocks(4'000'000);
  v1::ReportBlocksRequest many = PiecesOf({"n1", 7, 1, 0, {}})[0];
  many.set_last(false);
  many.add_pools()->set_pool("p");
  for (int i = 0; i < 100'000; ++i) many.mutable_pools(0)->add_removed(-1);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(blocks.Add(many).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(blocks.Add(many)));
}

TEST(BlockReportProto, BlocksOfAMessageAreCounted) {
  const BlockChanges changes{{{{-16, 1, 5}, 0}, {{-15, 1, 5}, 0}}, {-32}};
  const BlockReport report{"n1", 7, 2, 1, {{"BP-1", changes}}};
  uint64_t blocks = 0;
  for (const v1::ReportBlocksRequest& piece : PiecesOf(report)) blocks += BlocksIn(piece);
  EXPECT_EQ(blocks, 3u);
}

}  // namespace
}  // namespace ecpipe::block_report_proto_test
