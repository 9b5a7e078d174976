// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace ecpipe::crc32c_test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Ascending() {
  Bytes bytes(32);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return bytes;
}

TEST(Crc32c, TheVectorsOfRfc3720) {
  EXPECT_EQ(Crc32c(Bytes(32, 0x00)), 0x8a9136aau);
  EXPECT_EQ(Crc32c(Bytes(32, 0xff)), 0x62a8ab43u);
  const Bytes ascending = Ascending();
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c(Bytes(ascending.rbegin(), ascending.rend())), 0x113fdb5cu);
  const Bytes scsi_read = {0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                           0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
                           0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
                           0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(Crc32c(scsi_read), 0xd9963a56u);
}

TEST(Crc32c, TheCheckValueAndNothing) {
  const std::string digits = "123456789";
  EXPECT_EQ(Crc32c({reinterpret_cast<const uint8_t*>(digits.data()), digits.size()}), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

constexpr uint32_t kCastagnoli = 0x82f63b78;
constexpr uint32_t kGzip = 0xedb88320;

uint32_t BitByBit(const Bytes& bytes, uint32_t polynomial) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0u);
  }
  return ~crc;
}

TEST(Crc32c, AgreesWithTheDefinitionAtEveryLengthAndSplit) {
  std::mt19937 random(7);
  for (size_t length = 0; length < 300; ++length) {
    Bytes bytes(length);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const uint32_t expected = BitByBit(bytes, kCastagnoli);
    ASSERT_EQ(Crc32c(bytes), expected) << length;
    for (size_t at = 0; at <= length; at += 1 + length / 16) {
      const std::span<const uint8_t> whole(bytes);
      ASSERT_EQ(ExtendCrc32c(Crc32c(whole.first(at)), whole.subspan(at)), expected)
          << length << " split at " << at;
      ASSERT_EQ(ExtendCrc32(ExtendCrc32(0, whole.first(at)), whole.subspan(at)),
                BitByBit(bytes, kGzip))
          << length << " split at " << at;
    }
  }
}

}  // namespace
}  // namespace ecpipe::crc32c_test
