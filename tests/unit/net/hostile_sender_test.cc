// SPDX-License-Identifier: Apache-2.0
// What a receiver makes of a sender that breaks the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "unit/net/tcp_fixture.h"

namespace ecpipe::hostile_sender_test {
namespace {

using ::testing::HasSubstr;

// A receiver and a bare socket that plays its sender.
class HostileSenderTest : public TcpTransportTest {
 protected:
  void SetUp() override {
    TcpTransportTest::SetUp();
    receiver_ = Dial(kFrames, raw_.address());
    // The first attempt sends the hello and finds nothing to read.
    ASSERT_TRUE(WaitFor(receiver_->poll_fd().fd, POLLOUT));
    EXPECT_FALSE(receiver_->TryReceive(Header(0, got_.size()), got_).value());
    EXPECT_EQ(raw_.Accept().value(), TheHello());
  }

  absl::Status Receive(uint32_t slice_index) {
    return ReceiveFrame(receiver_.get(), Header(slice_index, got_.size()), got_);
  }

  absl::Status ReceiveAfter(std::span<const uint8_t> wire) {
    EXPECT_TRUE(raw_.Send(wire));
    return Receive(0);
  }

  static constexpr uint64_t kFrames = 3;
  const Bytes payload_ = RandomBytes(1000, 3);
  Bytes got_ = Bytes(1000);
  RawSender raw_;
  std::unique_ptr<SliceReceiver> receiver_;
};

TEST_F(HostileSenderTest, FramesMayComeInAnyPieces) {
  Bytes wire;
  for (uint32_t i = 0; i < kFrames; ++i) {
    const Bytes frame = FrameBytes(Header(i, payload_.size()), payload_);
    wire.insert(wire.end(), frame.begin(), frame.end());
  }
  auto fed = std::async(std::launch::async, [&] {
    size_t at = 0;
    for (size_t step = 1; at < wire.size(); step = step % 97 + 1) {
      const size_t count = std::min(step, wire.size() - at);
      if (!raw_.Send(std::span(wire).subspan(at, count))) return false;
      at += count;
    }
    return true;
  });
  for (uint32_t i = 0; i < kFrames; ++i) {
    got_.assign(got_.size(), 0);
    const absl::Status status = Receive(i);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(got_, payload_);
  }
  EXPECT_TRUE(fed.get());
}

TEST_F(HostileSenderTest, ADamagedPayloadIsDataLoss) {
  Bytes wire = FrameBytes(Header(0, payload_.size()), payload_);
  wire[kFrameHeaderBytes + 500] ^= 4;
  const absl::Status status = ReceiveAfter(wire);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("checksum of slice 0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("node the-sender"));
}

TEST_F(HostileSenderTest, ADamagedHeaderIsDataLoss) {
  Bytes wire = FrameBytes(Header(0, payload_.size()), payload_);
  wire[30] ^= 4;
  EXPECT_TRUE(absl::IsDataLoss(ReceiveAfter(wire)));
}

TEST_F(HostileSenderTest, AStaleAttemptIsRefusedBeforeItsPayload) {
  FrameHeader header = Header(0, payload_.size());
  --header.attempt;
  const Bytes frame = FrameBytes(header, payload_);
  const absl::Status status = ReceiveAfter(std::span(frame).first(kFrameHeaderBytes));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("attempt is 1, expected 2"));
}

TEST_F(HostileSenderTest, AnotherSliceIsRefused) {
  FrameHeader header = Header(1, payload_.size());
  const absl::Status status = ReceiveAfter(FrameBytes(header, payload_));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("slice index is 1, expected 0"));
}

TEST_F(HostileSenderTest, AnOversizeLengthIsRefusedBeforeItsPayload) {
  for (const size_t size : {payload_.size() + 1, size_t{kMaxSliceBytes} + 1}) {
    FrameHeader header = Header(0, size);
    std::array<uint8_t, kFrameHeaderBytes> encoded{};
    EncodeFrameHeader(header, encoded);
    RawSender raw;
    auto receiver = Dial(1, raw.address());
    ASSERT_TRUE(WaitFor(receiver->poll_fd().fd, POLLOUT));
    EXPECT_FALSE(receiver->TryReceive(Header(0, got_.size()), got_).value());
    ASSERT_TRUE(raw.Accept().ok());
    ASSERT_TRUE(raw.Send(encoded));
    const absl::Status status = ReceiveFrame(receiver.get(), Header(0, got_.size()), got_);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
}

TEST_F(HostileSenderTest, AnErrorFrameWithOversizeTextIsRefused) {
  FrameHeader header = Header(0, kMaxErrorTextBytes + 1);
  header.type = FrameType::kError;
  header.row = 5;
  EXPECT_TRUE(absl::IsDataLoss(ReceiveAfter(FrameBytes(header, Bytes(kMaxErrorTextBytes + 1)))));
}

TEST_F(HostileSenderTest, AnErrorBetweenFramesIsReadWhole) {
  Bytes wire = FrameBytes(Header(0, payload_.size()), payload_);
  const std::string text(kMaxErrorTextBytes - 1, 't');  // one byte says that nobody is at fault
  const std::string error = EncodeErrorFrame(Header(0, 0), absl::DataLossError(text));
  wire.insert(wire.end(), error.begin(), error.end());
  EXPECT_TRUE(ReceiveAfter(wire).ok());
  const absl::Status status = Receive(1);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::EndsWith(": " + text));
}

TEST_F(HostileSenderTest, AnErrorOfAnotherRepairIsNotBelieved) {
  FrameHeader stream = Header(0, 0);
  ++stream.repair_id;
  const std::string error = EncodeErrorFrame(stream, absl::NotFoundError("gone"));
  const absl::Status status =
      ReceiveAfter({reinterpret_cast<const uint8_t*>(error.data()), error.size()});
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_F(HostileSenderTest, AnEndInTheMiddleOfAFrameIsUnavailable) {
  const Bytes frame = FrameBytes(Header(0, payload_.size()), payload_);
  ASSERT_TRUE(raw_.Send(std::span(frame).first(500)));
  raw_.Close();
  const absl::Status status = Receive(0);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace ecpipe::hostile_sender_test
