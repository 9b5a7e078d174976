// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/stripe_record.h"

#include <gtest/gtest.h>

#include <random>

#include "base/bytes/crc32c.h"

namespace ecpipe {
namespace {

const StripeHeader kHeader{"stripe-1", "rs-cauchy(4,2)", 1 << 20};

std::vector<StripeMember> SomeMembers() {
  return {{"b-1", 3}, {"b-2", 4}, {"b-2x", 100000}, {std::string("\0\xff/", 3), 1}};
}

TEST(StripeRecordTest, RoundTrip) {
  const std::string bytes = EncodeMembers(kHeader, SomeMembers());
  const auto members = DecodeMembers(kHeader, bytes);
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(*members, SomeMembers());
}

TEST(StripeRecordTest, HeadersExampleIsTrue) {
  const std::string bytes = EncodeMembers(kHeader, {{"b-1", 3}, {"b-2", 4}});
  EXPECT_EQ(bytes.substr(0, bytes.size() - 4), std::string("\x01\x02\x03\x00\x03"
                                                           "b-1\x04\x02\x01"
                                                           "2",
                                                           12));
}

TEST(StripeRecordTest, ChecksumsMakeASecondFormat) {
  std::vector<StripeMember> with = SomeMembers();
  const std::string digits = "0123456789abcdef";
  for (StripeMember& member : with) {
    for (int i = 0; i < 64; ++i) member.sha256 += digits[(member.block_id.size() + i) % 16];
  }
  const std::string bytes = EncodeMembers(kHeader, with);
  const auto members = DecodeMembers(kHeader, bytes);
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(*members, with);
  const std::string without = EncodeMembers(kHeader, SomeMembers());
  EXPECT_EQ(without[0], 1) << "a stripe without checksums is as it was before there were any";
  EXPECT_EQ(bytes[0], 2);
  EXPECT_EQ(bytes.size(), without.size() + 32 * with.size());
}

TEST(StripeRecordTest, LongestStripe) {
  std::vector<StripeMember> members;
  for (size_t i = 0; i < kMaxStripeBlocks; ++i) {
    std::string id(kMaxCatalogIdBytes, 'x');
    id[i] = 'y';
    members.push_back({id, static_cast<uint32_t>(-1) - static_cast<uint32_t>(i)});
  }
  const auto decoded = DecodeMembers(kHeader, EncodeMembers(kHeader, members));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, members);
}

TEST(StripeRecordTest, EveryFieldIsUnderTheChecksum) {
  const std::string bytes = EncodeMembers(kHeader, SomeMembers());
  for (const StripeHeader& other :
       {StripeHeader{"stripe-2", kHeader.code, kHeader.block_bytes},
        StripeHeader{kHeader.stripe_id, "rs-cauchy(4,3)", kHeader.block_bytes},
        StripeHeader{kHeader.stripe_id, kHeader.code, kHeader.block_bytes + 1},
        StripeHeader{"stripe-1r", "s-cauchy(4,2)", kHeader.block_bytes}}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeMembers(other, bytes).status()));
  }
}

TEST(StripeRecordTest, EveryFlippedBitIsFound) {
  const std::string bytes = EncodeMembers(kHeader, SomeMembers());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(DecodeMembers(kHeader, damaged).status())) << "bit " << bit;
  }
}

TEST(StripeRecordTest, EveryLengthIsRefused) {
  const std::string bytes = EncodeMembers(kHeader, SomeMembers());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeMembers(kHeader, bytes.substr(0, size)).status()));
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeMembers(kHeader, bytes + '\0').status()));
}

// Puts the right checksum behind any body, so that the checks after it are what must hold.
std::string WithCrc(const std::string& body) {
  std::string covered;
  const auto append = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) covered.push_back(static_cast<char>(value >> (8 * i)));
  };
  append(kHeader.stripe_id.size(), 4);
  covered += kHeader.stripe_id;
  append(kHeader.code.size(), 4);
  covered += kHeader.code;
  append(kHeader.block_bytes, 8);
  covered += body;
  const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(covered.data()), covered.size()});
  covered = body;
  append(crc, 4);
  return covered;
}

TEST(StripeRecordTest, MalformedBodiesUnderARightChecksum) {
  const std::string max_varint = "\xff\xff\xff\xff\x0f";
  const std::vector<std::string> bodies = {
      "",
      "\x01",
      std::string("\x01\x00", 2),                          // no members
      "\x03\x01\x01" + std::string(1, '\0') + "\x01x",     // another format
      "\x02\x01\x01" + std::string(1, '\0') + "\x01x",     // a checksum is missing
      "\x02\x01\x01" + std::string(1, '\0') + "\x01x" + std::string(31, 's'),
      std::string("\x01\x80\x02", 3),                      // 256 members
      "\x01\x01\x01" + std::string("\0\0", 2),             // an empty id
      "\x01\x01\x01\x05\x01x",                             // shares bytes with nothing
      "\x01\x01\x01" + std::string(1, '\0') + max_varint,  // a suffix of 4 GiB
      "\x01\x01\x01" + max_varint + "\x01x",
      "\x01\x01\xff\xff\xff\xff\x1f" + std::string(1, '\0') + "\x01x",  // over 32 bits
      "\x01\x01\x80\x80\x80\x80\x80\x80" + std::string(1, '\0') + "\x01x",
      "\x01\x01\x01" + std::string(1, '\0') + "\x01xy",  // a byte too many
  };
  for (const std::string& body : bodies) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeMembers(kHeader, WithCrc(body)).status()))
        << testing::PrintToString(body);
  }
  const std::string good = "\x01\x01\x01" + std::string(1, '\0') + "\x01x";
  EXPECT_TRUE(DecodeMembers(kHeader, WithCrc(good)).ok());
}

TEST(StripeRecordTest, RandomBodiesUnderARightChecksumDoNotCrash) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string body = EncodeMembers(kHeader, SomeMembers());
    body.resize(body.size() - 4);
    for (int change = 0; change < 3; ++change) {
      body[random() % body.size()] = static_cast<char>(random());
    }
    const auto members = DecodeMembers(kHeader, WithCrc(body));
    EXPECT_TRUE(!members.ok() || !members->empty());
  }
}

TEST(StripeRecordTest, HashIsStable) {
  // The values are on disk: a change of them is a new schema version.
  EXPECT_EQ(BlockIdHash(""), 0x8570e254u);
  EXPECT_EQ(BlockIdHash("a"), 0x82b19d9cu);
  EXPECT_EQ(BlockIdHash("blk_-9223372036854775792"), 0x399b4d8fu);
}

TEST(StripeRecordTest, HashSpreadsNeighbouringIds) {
  std::vector<int> buckets(256);
  for (int i = 0; i < 25600; ++i) {
    ++buckets[BlockIdHash("blk_" + std::to_string(1000000 + i)) >> 24];
  }
  for (const int count : buckets) {
    EXPECT_GT(count, 50);  // 100 expected
    EXPECT_LT(count, 200);
  }
}

}  // namespace
}  // namespace ecpipe
