// SPDX-License-Identifier: Apache-2.0
// The transport that stands in for TCP keeps the contract of net/transport.h.
#include "fakes/memory_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "fakes/memory_stream.h"

namespace ecpipe::memory_transport_test {
namespace {

using testing::HasSubstr;
using Next = SliceSender::Next;
using Bytes = std::vector<uint8_t>;

constexpr int kPatienceMillis = 20'000;

Bytes SomeBytes(size_t count) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

class MemoryTransportTest : public testing::Test {
 protected:
  void Offer() { sender_ = Offer(transport_.get()).value(); }
  void Dial() { receiver_ = transport_->Connect(Input(), {}).value(); }
  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(Transport* transport) {
    HopOutput output;
    output.edge = {7, 1, 2, 3, 0};
    output.node = "the-receiver";
    return transport->Offer(output, {}, wakeup_);
  }
  static HopInput Input() {
    HopInput input;
    input.edge = {7, 1, 2, 3, 0};
    input.node = "the-sender";
    return input;
  }
  static FrameHeader Header(uint32_t slice_index, size_t bytes) {
    FrameHeader header;
    header.repair_id = 7;
    header.slice_index = slice_index;
    header.payload_bytes = static_cast<uint32_t>(bytes);
    return header;
  }
  // What poll() reports at once, or after `patience_millis`.
  static short Polled(pollfd polled, int patience_millis) {
    ::poll(&polled, 1, patience_millis);
    return polled.revents;
  }

  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::unique_ptr<Transport> transport_ = MakeMemoryTransport({.stream_bytes = 64});
  std::unique_ptr<SliceSender> sender_;
  std::unique_ptr<SliceReceiver> receiver_;
};

TEST_F(MemoryTransportTest, AFrameGoesThroughASmallerBufferInPieces) {
  Offer();
  EXPECT_EQ(sender_->poll_fd().fd, -1);
  const Bytes sent = SomeBytes(1000);
  EXPECT_EQ(sender_->TrySend(Header(4, 1000), sent, Next::kUnknown).value(), false);
  EXPECT_EQ(sender_->bytes_sent(), 0u);
  EXPECT_EQ(Polled({wakeup_->fd(), POLLIN, 0}, 0), 0);
  Dial();
  EXPECT_EQ(Polled({wakeup_->fd(), POLLIN, 0}, 0), POLLIN);

  Bytes received(1000);
  bool taken = false;
  bool complete = false;
  for (int turn = 0; turn < 100 && !complete; ++turn) {
    if (!taken) {
      EXPECT_EQ(receiver_->TryReceive(Header(4, 1000), received).value(), false);
      EXPECT_EQ(Polled(receiver_->poll_fd(), 0), 0);
      taken = sender_->TrySend(Header(4, 1000), sent, Next::kUnknown).value();
      EXPECT_EQ(Polled(receiver_->poll_fd(), 0), POLLIN);
      if (!taken) {
        EXPECT_EQ(Polled(sender_->poll_fd(), 0), 0);
      }
    }
    complete = receiver_->TryReceive(Header(4, 1000), received).value();
    if (!taken) {
      EXPECT_EQ(Polled(sender_->poll_fd(), 0), POLLIN);
    }
  }
  EXPECT_TRUE(complete);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(receiver_->bytes_received(), 1000 + kFrameHeaderBytes);
  EXPECT_EQ(sender_->TryFinish().value(), false);
  EXPECT_EQ(Polled(sender_->poll_fd(), 0), 0);
  receiver_.reset();
  EXPECT_NE(Polled(sender_->poll_fd(), 0) & POLLHUP, 0);
  EXPECT_EQ(sender_->TryFinish().value(), true);
  EXPECT_EQ(sender_->timing().bytes, 1000 + kFrameHeaderBytes);
}

TEST_F(MemoryTransportTest, AnErrorReachesAReceiverThatComesLater) {
  Offer();
  sender_->SendError(Header(0, 0), absl::InternalError("no disk"), TimePoint());
  sender_.reset();
  Dial();
  Bytes payload(10);
  const auto received = receiver_->TryReceive(Header(0, 10), payload);
  EXPECT_EQ(received.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(received.status().message()), HasSubstr("node the-sender: no disk"));
}

TEST_F(MemoryTransportTest, AFrameThatIsNotTheExpectedOneIsRefused) {
  Offer();
  Dial();
  const Bytes payload = SomeBytes(10);
  EXPECT_TRUE(sender_->TrySend(Header(5, 10), payload, Next::kUnknown).value());
  Bytes received(10);
  EXPECT_TRUE(absl::IsDataLoss(receiver_->TryReceive(Header(4, 10), received).status()));
}

TEST_F(MemoryTransportTest, EachEndSeesThatTheOtherHasGone) {
  Dial();
  Offer();
  EXPECT_TRUE(sender_->CheckPeer().ok());
  receiver_.reset();
  pollfd idle = sender_->poll_fd();
  idle.events = POLLRDHUP;
  EXPECT_NE(Polled(idle, kPatienceMillis) & (POLLRDHUP | POLLHUP), 0);
  EXPECT_TRUE(absl::IsUnavailable(sender_->CheckPeer()));
  const Bytes payload = SomeBytes(10);
  EXPECT_TRUE(
      absl::IsUnavailable(sender_->TrySend(Header(0, 10), payload, Next::kUnknown).status()));

  sender_.reset();
  Dial();
  Offer();
  EXPECT_TRUE(sender_->TrySend(Header(0, 10), payload, Next::kUnknown).value());
  sender_.reset();
  Bytes received(10);
  EXPECT_TRUE(receiver_->TryReceive(Header(0, 10), received).value());  // sent before
  EXPECT_NE(Polled(receiver_->poll_fd(), kPatienceMillis) & POLLHUP, 0);
  EXPECT_TRUE(absl::IsUnavailable(receiver_->TryReceive(Header(1, 10), received).status()));
}

TEST_F(MemoryTransportTest, AReceiverThatLeavesEarlyIsNotASuccess) {
  Offer();
  Dial();
  const Bytes payload = SomeBytes(10);
  EXPECT_TRUE(sender_->TrySend(Header(0, 10), payload, Next::kUnknown).value());
  receiver_.reset();
  EXPECT_TRUE(absl::IsUnavailable(sender_->TryFinish().status()));
}

TEST_F(MemoryTransportTest, AnotherTokenDoesNotMatch) {
  Offer();
  HopInput stranger = Input();
  stranger.token[0] = 1;
  receiver_ = transport_->Connect(stranger, {}).value();
  const Bytes payload = SomeBytes(10);
  EXPECT_FALSE(sender_->TrySend(Header(0, 10), payload, Next::kUnknown).value());
  EXPECT_TRUE(absl::IsAlreadyExists(Offer(transport_.get()).status()));
}

// The bell rings for all that is wanted, or for a whole buffer, and for nothing less.
TEST(MemoryStreamTest, WakesForEnoughOnly) {
  MemoryStream stream(16);
  stream.Attach(MemoryStream::kSender, nullptr);
  stream.Attach(MemoryStream::kReceiver, nullptr);
  const auto readable = [&] {
    pollfd polled{stream.fd(MemoryStream::kReceiver), POLLIN, 0};
    return ::poll(&polled, 1, 0) == 1;
  };
  const Bytes bytes = SomeBytes(16);
  Bytes out(40);
  EXPECT_EQ(stream.Take({out.data(), 8}).value(), 0u);
  EXPECT_EQ(stream.Put({bytes.data(), 7}).value(), 7u);
  EXPECT_FALSE(readable());
  EXPECT_EQ(stream.Put({bytes.data() + 7, 1}).value(), 1u);
  EXPECT_TRUE(readable());
  EXPECT_EQ(stream.Take({out.data(), 40}).value(), 8u);
  EXPECT_FALSE(readable());
  EXPECT_EQ(stream.Take({out.data() + 8, 32}).value(), 0u);
  EXPECT_EQ(stream.Put(bytes).value(), 16u);  // around the end of the buffer
  EXPECT_TRUE(readable());
  EXPECT_EQ(stream.Put(bytes).value(), 0u);
  EXPECT_EQ(stream.Take({out.data() + 8, 32}).value(), 16u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), out.begin() + 8));
}

}  // namespace
}  // namespace ecpipe::memory_transport_test
