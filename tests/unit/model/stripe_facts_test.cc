// SPDX-License-Identifier: Apache-2.0
#include "model/stripe_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/plan/slice_grid.h"

namespace ecpipe {
namespace {

constexpr uint64_t kCell = 1 << 20;

StripeFacts Facts(uint64_t bytes, int data = 6, int parity = 3, uint64_t cell = kCell) {
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

std::vector<uint64_t> Lengths(const StripeFacts& facts) {
  std::vector<uint64_t> lengths;
  for (int i = 0; i < facts.blocks(); ++i) lengths.push_back(facts.BlockBytes(i));
  return lengths;
}

// What was seen on the disks of a real cluster.
TEST(StripeFacts, LengthsAreThoseOfRealFiles) {
  using Bytes = std::vector<uint64_t>;
  EXPECT_EQ(Lengths(Facts(2'500'001)),
            (Bytes{kCell, kCell, 2'500'001 - 2 * kCell, 0, 0, 0, kCell, kCell, kCell}));
  EXPECT_EQ(Lengths(Facts(13'300'001)), (Bytes{2814241, 2097152, 2097152, 2097152, 2097152, 2097152,
                                               2814241, 2814241, 2814241}));
}

// By writing a file byte by byte.
TEST(StripeFacts, LengthsAreThoseOfRoundRobin) {
  for (uint64_t bytes = 1; bytes <= 100; ++bytes) {
    const StripeFacts facts = Facts(bytes, 3, 2, 7);
    std::vector<uint64_t> lengths(5, 0);
    for (uint64_t at = 0; at < bytes; ++at) ++lengths[at / 7 % 3];
    lengths[3] = lengths[4] = *std::max_element(lengths.begin(), lengths.begin() + 3);
    EXPECT_EQ(Lengths(facts), lengths) << bytes;
    EXPECT_EQ(lengths[3], lengths[0]);
  }
}

TEST(StripeFacts, Names) {
  const StripeFacts facts = Facts(1);
  EXPECT_TRUE(facts.Validate().ok()) << facts.Validate();
  EXPECT_EQ(facts.BlockName(8), "BP-1-127.0.0.1-17.blk_-9223372036854775784_1001");
  EXPECT_EQ(facts.StripeId(), "hdfs.BP-1-127.0.0.1-17.-9223372036854775792");
}

TEST(StripeFacts, RefusesWhatCannotBe) {
  const auto refused = [](void (*change)(StripeFacts*), const std::string& why) {
    StripeFacts facts = Facts(10 * kCell);
    change(&facts);
    const absl::Status status = facts.Validate();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << why;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(why));
  };
  refused([](StripeFacts* f) { f->pool = "../etc"; }, "pool");
  refused([](StripeFacts* f) { f->pool = ""; }, "pool");
  refused([](StripeFacts* f) { f->group = 16; }, "group 16");
  refused([](StripeFacts* f) { f->group = -17; }, "group -17");
  refused([](StripeFacts* f) { f->group = 0; }, "group 0");
  refused([](StripeFacts* f) { f->stamp = uint64_t{1} << 63; }, "stamp");
  refused([](StripeFacts* f) { f->codec = "RS"; }, "codec");
  refused([](StripeFacts* f) { f->codec = "xor"; }, "one parity");
  refused([](StripeFacts* f) { f->data = 0; }, "0 + 3");
  refused([](StripeFacts* f) { f->parity = 0; }, "6 + 0");
  refused([](StripeFacts* f) { f->data = 14; }, "14 + 3");
  refused([](StripeFacts* f) { f->data = INT32_MAX; }, "at most 16");
  refused([](StripeFacts* f) { f->cell_bytes = 0; }, "cell");
  refused([](StripeFacts* f) { f->cell_bytes = uint64_t{1} << 40; }, "cell");
  refused([](StripeFacts* f) { f->bytes = 0; }, "0 bytes");
  refused([](StripeFacts* f) { f->bytes = UINT64_MAX; }, "out of range");
  refused([](StripeFacts* f) { f->bytes = kMaxBlockBytes * 6 + 1; }, "out of range");
  refused([](StripeFacts* f) { f->sources[0].index = 9; },
          "names block 9, but the group has blocks 0 to 8");
  refused([](StripeFacts* f) { f->sources[0].index = -1; }, "block -1");
  refused([](StripeFacts* f) { f->sources[0].storage_id = "a b"; }, "UUID");
  refused([](StripeFacts* f) { f->sources.resize(129, {0, "dn"}); }, "129 sources");
  refused([](StripeFacts* f) { f->bytes = 2 * kCell, f->sources[0].index = 2; },
          "which is empty in a group of 2097152 bytes");
}

}  // namespace
}  // namespace ecpipe
