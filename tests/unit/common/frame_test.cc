// SPDX-License-Identifier: Apache-2.0
#include "common/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "common/crc32c.h"

namespace ecpipe {
namespace {

FrameHeader Sample() {
  FrameHeader header;
  header.repair_id = 0x00c0ffee12345678;
  header.attempt = 1;
  header.slice_index = 7;
  header.payload_bytes = 5;
  header.payload_crc32c = 0x9a71bb4c;
  return header;
}

std::array<uint8_t, kFrameHeaderBytes> Encoded(const FrameHeader& header) {
  std::array<uint8_t, kFrameHeaderBytes> bytes{};
  EncodeFrameHeader(header, bytes);
  return bytes;
}

TEST(Crc32c, KnownVectors) {
  const std::string digits = "123456789";
  const auto* bytes = reinterpret_cast<const uint8_t*>(digits.data());
  EXPECT_EQ(Crc32c({bytes, 9}), 0xe3069283u);
  const std::array<uint8_t, 32> zeros{};
  EXPECT_EQ(Crc32c(zeros), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(ExtendCrc32c(Crc32c({bytes, 4}), {bytes + 4, 5}), Crc32c({bytes, 9}));
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Frame, TheDumpInWireMd) {
  const std::array<uint8_t, kFrameHeaderBytes> expected = {
      0x45, 0x43, 0x50, 0x46, 0x01, 0x01, 0x00, 0x00, 0x78, 0x56, 0x34, 0x12, 0xee, 0xff,
      0xc0, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00,
      0x05, 0x00, 0x00, 0x00, 0x4c, 0xbb, 0x71, 0x9a, 0x6c, 0x71, 0xfe, 0xc3};
  EXPECT_EQ(Encoded(Sample()), expected);
}

TEST(Frame, RoundTrip) {
  FrameHeader header = Sample();
  header.row = 63;
  header.lane = 255;
  header.payload_bytes = kMaxSliceBytes;
  const absl::StatusOr<FrameHeader> decoded = DecodeFrameHeader(Encoded(header));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, header);
}

TEST(Frame, EveryFlippedBitIsRefused) {
  const auto good = Encoded(Sample());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(DecodeFrameHeader(bad).status())) << "bit " << bit;
  }
}

TEST(Frame, OversizeIsRefusedThoughItsChecksumIsRight) {
  FrameHeader header = Sample();
  header.payload_bytes = kMaxSliceBytes + 1;
  EXPECT_TRUE(absl::IsDataLoss(DecodeFrameHeader(Encoded(header)).status()));
  header.type = FrameType::kError;
  header.payload_bytes = kMaxErrorTextBytes + 1;
  EXPECT_TRUE(absl::IsDataLoss(DecodeFrameHeader(Encoded(header)).status()));
}

TEST(Frame, OnlyTheExpectedFrameIsTaken) {
  const FrameHeader expected = Sample();
  EXPECT_TRUE(CheckExpected(expected, expected).ok());
  const auto refused = [&](auto change, const char* field) {
    FrameHeader header = expected;
    change(&header);
    const absl::Status status = CheckExpected(header, expected);
    EXPECT_TRUE(absl::IsDataLoss(status)) << field;
    EXPECT_NE(std::string(status.message()).find(field), std::string::npos) << status;
  };
  refused([](FrameHeader* header) { header->repair_id ^= 1; }, "repair id");
  refused([](FrameHeader* header) { header->attempt = 0; }, "attempt");
  refused([](FrameHeader* header) { header->lane = 1; }, "lane");
  refused([](FrameHeader* header) { header->slice_index = 8; }, "slice index");
  refused([](FrameHeader* header) { header->row = 1; }, "row");
  refused([](FrameHeader* header) { header->payload_bytes = 4; }, "payload length");
}

TEST(Frame, ErrorFramesCarryCodeAndText) {
  const std::string frame = EncodeErrorFrame(Sample(), absl::NotFoundError("no block"));
  const auto* bytes = reinterpret_cast<const uint8_t*>(frame.data());
  const absl::StatusOr<FrameHeader> header =
      DecodeFrameHeader(std::span<const uint8_t, kFrameHeaderBytes>(bytes, kFrameHeaderBytes));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->type, FrameType::kError);
  const std::span<const uint8_t> text(bytes + kFrameHeaderBytes, header->payload_bytes);
  EXPECT_TRUE(CheckPayload(*header, text).ok());
  EXPECT_EQ(ErrorFromFrame(*header, text), absl::NotFoundError("no block"));
  // A code of 0 must not pass for success.
  FrameHeader forged = *header;
  forged.row = 0;
  EXPECT_FALSE(ErrorFromFrame(forged, text).ok());
  const std::string long_text(5000, 'x');
  EXPECT_EQ(EncodeErrorFrame(Sample(), absl::InternalError(long_text)).size(),
            kFrameHeaderBytes + kMaxErrorTextBytes);
}

TEST(Hello, RoundTripAndEveryFlippedBit) {
  Hello hello;
  hello.edge = {0x1122334455667788, 2, 3, 4, 5};
  for (size_t i = 0; i < hello.token.size(); ++i) hello.token[i] = static_cast<uint8_t>(i * 17);
  std::array<uint8_t, kHelloBytes> bytes{};
  EncodeHello(hello, bytes);
  ASSERT_TRUE(DecodeHello(bytes).ok());
  EXPECT_EQ(*DecodeHello(bytes), hello);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto bad = bytes;
    bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeHello(bad).status())) << "bit " << bit;
  }
}

}  // namespace
}  // namespace ecpipe
