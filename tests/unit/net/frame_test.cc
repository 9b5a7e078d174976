// SPDX-License-Identifier: Apache-2.0
#include "net/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/bytes/crc32c.h"
#include "model/fault.h"

namespace ecpipe::frame_test {
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

TEST(Frame, ErrorFramesCarryCodeTextAndFault) {
  const std::string frame =
      EncodeErrorFrame(Sample(), WithFault(absl::NotFoundError("no block"), "node-1"));
  const auto* bytes = reinterpret_cast<const uint8_t*>(frame.data());
  const absl::StatusOr<FrameHeader> header =
      DecodeFrameHeader(std::span<const uint8_t, kFrameHeaderBytes>(bytes, kFrameHeaderBytes));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->type, FrameType::kError);
  const std::span<const uint8_t> text(bytes + kFrameHeaderBytes, header->payload_bytes);
  EXPECT_TRUE(CheckPayload(*header, text).ok());
  const absl::Status carried = ErrorFromFrame(*header, text);
  EXPECT_TRUE(absl::IsNotFound(carried));
  EXPECT_EQ(carried.message(), "no block");
  EXPECT_EQ(FaultOf(carried), "node-1");
  // A code of 0 must not pass for success.
  FrameHeader forged = *header;
  forged.row = 0;
  EXPECT_FALSE(ErrorFromFrame(forged, text).ok());
  forged.row = 17;  // gRPC has none beyond 16
  EXPECT_TRUE(absl::IsUnknown(ErrorFromFrame(forged, text)));
  const std::string long_text(5000, 'x');
  EXPECT_EQ(EncodeErrorFrame(Sample(), absl::InternalError(long_text)).size(),
            kFrameHeaderBytes + kMaxErrorTextBytes);
}

// Whatever a peer writes after the header is a message with or without a node at fault.
TEST(Frame, ErrorFramesOfAnyTextCanBeRead) {
  FrameHeader header = Sample();
  header.type = FrameType::kError;
  header.row = static_cast<Row>(absl::StatusCode::kUnavailable);
  const auto read = [&](const std::string& text) {
    return ErrorFromFrame(header, std::span<const uint8_t>(
                                      reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  };
  EXPECT_EQ(FaultOf(read("")), kFaultUnknown);
  EXPECT_EQ(FaultOf(read(std::string(1, '\0') + "text")), kFaultUnknown);
  EXPECT_EQ(FaultOf(read("\x01"
                         "atext")),
            "a");
  EXPECT_EQ(read("\x01"
                 "atext")
                .message(),
            "text");
  EXPECT_EQ(FaultOf(read("\xff"
                         "cut")),
            "cut");
  EXPECT_EQ(read("\xff"
                 "cut")
                .message(),
            "");
}

// What an error says is passed on in protos, which refuse a string that is no UTF-8: a report that
// holds one would be sent for ever.
TEST(Frame, AnErrorsTextIsUtf8WhateverWasSent) {
  FrameHeader header = Sample();
  header.type = FrameType::kError;
  header.row = 5;
  const std::string bytes = std::string(1, '\0') + "no\xff such\nfile \xc3\xb6";
  const absl::Status error =
      ErrorFromFrame(header, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  EXPECT_EQ(std::string(error.message()), "no? such?file \xc3\xb6");
}

TEST(Frame, AnErrorsTextIsNotCutWithinACharacter) {
  const std::string text = std::string(kMaxErrorTextBytes - 2, 'x') + "\xc3\xb6";
  const std::string frame = EncodeErrorFrame(Sample(), absl::InternalError(text));
  EXPECT_EQ(frame.size(), kFrameHeaderBytes + kMaxErrorTextBytes - 1);
  EXPECT_EQ(frame.back(), 'x');
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

TEST(Hello, GoldenBytes) {
  Hello hello;
  hello.edge = {0x00c0ffee12345678, 1, 2, 3, 4};
  for (size_t i = 0; i < hello.token.size(); ++i) hello.token[i] = static_cast<uint8_t>(0xa0 + i);
  std::array<uint8_t, kHelloBytes> bytes;
  bytes.fill(0xff);  // what is not used becomes 0
  EncodeHello(hello, bytes);
  const std::array<uint8_t, kHelloBytes> expected = {
      0x45, 0x43, 0x50, 0x48, 0x01, 0x00, 0x00, 0x00, 0x78, 0x56, 0x34, 0x12, 0xee,
      0xff, 0xc0, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x03, 0x00,
      0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6,
      0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0x83, 0xf6, 0xdb, 0xe4};
  EXPECT_EQ(bytes, expected);
}

// Puts the right checksum at the end again, so that only the change itself can be what is refused.
template <size_t kBytes>
std::array<uint8_t, kBytes> Resealed(std::array<uint8_t, kBytes> bytes) {
  const uint32_t crc = Crc32c(std::span(bytes).first(kBytes - 4));
  for (size_t i = 0; i < 4; ++i) bytes[kBytes - 4 + i] = static_cast<uint8_t>(crc >> (8 * i));
  return bytes;
}

TEST(Frame, AnotherMagicVersionOrTypeIsRefusedThoughItsChecksumIsRight) {
  const auto good = Encoded(Sample());
  EXPECT_EQ(Resealed(good), good);
  for (const size_t at : {0u, 1u, 2u, 3u, 4u}) {
    auto bad = good;
    ++bad[at];
    EXPECT_TRUE(absl::IsDataLoss(DecodeFrameHeader(Resealed(bad)).status())) << "byte " << at;
  }
  for (int type = 0; type < 256; ++type) {
    auto changed = good;
    changed[5] = static_cast<uint8_t>(type);
    const bool known = type == 1 || type == 2;
    EXPECT_EQ(DecodeFrameHeader(Resealed(changed)).ok(), known) << "type " << type;
  }
}

TEST(Hello, AnotherMagicVersionOrReservedByteIsRefusedThoughItsChecksumIsRight) {
  std::array<uint8_t, kHelloBytes> good{};
  EncodeHello(Hello{}, good);
  for (const size_t at : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
    auto bad = good;
    ++bad[at];
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeHello(Resealed(bad)).status())) << "byte " << at;
  }
}

TEST(Frame, TheLargestPayloadsAreTaken) {
  FrameHeader header = Sample();
  header.payload_bytes = kMaxSliceBytes;
  EXPECT_TRUE(DecodeFrameHeader(Encoded(header)).ok());
  header.type = FrameType::kError;
  header.payload_bytes = kMaxErrorTextBytes;
  EXPECT_TRUE(DecodeFrameHeader(Encoded(header)).ok());
  header.payload_bytes = 0;
  EXPECT_TRUE(DecodeFrameHeader(Encoded(header)).ok());
}

TEST(Frame, AnErrorIsTakenInPlaceOfAnySliceOfItsStreamOnly) {
  FrameHeader error = Sample();
  error.type = FrameType::kError;
  error.row = 14;
  error.slice_index = 0;
  error.payload_bytes = 3;
  EXPECT_TRUE(CheckExpected(error, Sample()).ok());
  error.attempt = 0;
  EXPECT_TRUE(absl::IsDataLoss(CheckExpected(error, Sample())));
}

TEST(Frame, ThePayloadMustHaveItsChecksum) {
  std::array<uint8_t, 5> payload = {'h', 'e', 'l', 'l', 'o'};
  EXPECT_TRUE(CheckPayload(Sample(), payload).ok());
  for (size_t bit = 0; bit < payload.size() * 8; ++bit) {
    auto bad = payload;
    bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(CheckPayload(Sample(), bad))) << "bit " << bit;
  }
  EXPECT_TRUE(absl::IsDataLoss(CheckPayload(Sample(), std::span(payload).first(4))));
}

TEST(Frame, AnErrorKeepsItsCanonicalCodeAndNoOther) {
  for (int code = 0; code <= 20; ++code) {
    FrameHeader header = Sample();
    header.type = FrameType::kError;
    header.row = static_cast<Row>(code);
    const absl::Status status = ErrorFromFrame(header, {});
    const bool canonical = code >= 1 && code <= 16;
    EXPECT_EQ(status.code(),
              canonical ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown);
  }
}

TEST(Token, SameOnlyWhenEveryByteIs) {
  EdgeToken token{};
  for (size_t i = 0; i < token.size(); ++i) token[i] = static_cast<uint8_t>(i);
  EXPECT_TRUE(SameToken(token, token));
  for (size_t i = 0; i < token.size(); ++i) {
    EdgeToken other = token;
    other[i] ^= 0x80;
    EXPECT_FALSE(SameToken(token, other)) << "byte " << i;
  }
}

}  // namespace
}  // namespace ecpipe::frame_test
