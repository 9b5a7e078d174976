// SPDX-License-Identifier: Apache-2.0
#include "model/systems/hdfs_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/plan/slice_grid.h"

namespace ecpipe::hdfs_group_test {
namespace {

constexpr uint64_t kCell = 1 << 20;

HdfsGroup Group(uint64_t bytes, int data = 6, int parity = 3, uint64_t cell = kCell) {
  return {.pool = "BP-1-127.0.0.1-17",
          .group = INT64_MIN + 16,
          .stamp = 1001,
          .bytes = bytes,
          .codec = "rs",
          .data = data,
          .parity = parity,
          .cell_bytes = cell,
          .sources = {{0, "c8b9e6e2-0000-4000-8000-000000000001"}, {6, "dn-2"}}};
}

std::vector<uint64_t> Lengths(const HdfsGroup& group) {
  std::vector<uint64_t> lengths;
  for (int i = 0; i < group.blocks(); ++i) lengths.push_back(group.BlockBytes(i));
  return lengths;
}

// What was seen on the disks of a real cluster.
TEST(HdfsGroup, LengthsAreThoseOfRealFiles) {
  using Bytes = std::vector<uint64_t>;
  EXPECT_EQ(Lengths(Group(2'500'001)),
            (Bytes{kCell, kCell, 2'500'001 - 2 * kCell, 0, 0, 0, kCell, kCell, kCell}));
  EXPECT_EQ(Lengths(Group(13'300'001)), (Bytes{2814241, 2097152, 2097152, 2097152, 2097152, 2097152,
                                               2814241, 2814241, 2814241}));
}

// By writing a file byte by byte.
TEST(HdfsGroup, LengthsAreThoseOfRoundRobin) {
  for (uint64_t bytes = 1; bytes <= 100; ++bytes) {
    const HdfsGroup group = Group(bytes, 3, 2, 7);
    std::vector<uint64_t> lengths(5, 0);
    for (uint64_t at = 0; at < bytes; ++at) ++lengths[at / 7 % 3];
    lengths[3] = lengths[4] = *std::max_element(lengths.begin(), lengths.begin() + 3);
    EXPECT_EQ(Lengths(group), lengths) << bytes;
    EXPECT_EQ(lengths[3], lengths[0]);
  }
}

TEST(HdfsGroup, Names) {
  const HdfsGroup group = Group(1);
  EXPECT_TRUE(group.Validate().ok()) << group.Validate();
  EXPECT_EQ(group.BlockName(8), "BP-1-127.0.0.1-17.blk_-9223372036854775784_1001");
  EXPECT_EQ(group.StripeId(), "hdfs.BP-1-127.0.0.1-17.-9223372036854775792");
}

TEST(HdfsGroup, RefusesWhatCannotBe) {
  const auto refused = [](void (*change)(HdfsGroup*), const std::string& why) {
    HdfsGroup group = Group(10 * kCell);
    change(&group);
    const absl::Status status = group.Validate();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << why;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(why));
  };
  refused([](HdfsGroup* f) { f->pool = "../etc"; }, "pool");
  refused([](HdfsGroup* f) { f->pool = ""; }, "pool");
  refused([](HdfsGroup* f) { f->group = 16; }, "group 16");
  refused([](HdfsGroup* f) { f->group = -17; }, "group -17");
  refused([](HdfsGroup* f) { f->group = 0; }, "group 0");
  refused([](HdfsGroup* f) { f->stamp = uint64_t{1} << 63; }, "stamp");
  refused([](HdfsGroup* f) { f->codec = "RS"; }, "codec");
  refused([](HdfsGroup* f) { f->codec = "xor"; }, "one parity");
  refused([](HdfsGroup* f) { f->data = 0; }, "0 + 3");
  refused([](HdfsGroup* f) { f->parity = 0; }, "6 + 0");
  refused([](HdfsGroup* f) { f->data = 14; }, "14 + 3");
  refused([](HdfsGroup* f) { f->data = INT32_MAX; }, "at most 16");
  refused([](HdfsGroup* f) { f->cell_bytes = 0; }, "cell");
  refused([](HdfsGroup* f) { f->cell_bytes = uint64_t{1} << 40; }, "cell");
  refused([](HdfsGroup* f) { f->bytes = 0; }, "0 bytes");
  refused([](HdfsGroup* f) { f->bytes = UINT64_MAX; }, "out of range");
  refused([](HdfsGroup* f) { f->bytes = kMaxBlockBytes * 6 + 1; }, "out of range");
  refused([](HdfsGroup* f) { f->sources[0].index = 9; },
          "names block 9, but the group has blocks 0 to 8");
  refused([](HdfsGroup* f) { f->sources[0].index = -1; }, "block -1");
  refused([](HdfsGroup* f) { f->sources[0].storage_id = "a b"; }, "UUID");
  refused([](HdfsGroup* f) { f->sources.resize(129, {0, "dn"}); }, "129 sources");
  refused([](HdfsGroup* f) { f->bytes = 2 * kCell, f->sources[0].index = 2; },
          "which is empty in a group of 2097152 bytes");
}

}  // namespace
}  // namespace ecpipe::hdfs_group_test
