// SPDX-License-Identifier: Apache-2.0
#include "common/tcp_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <random>

#include "unit/common/raw_peer.h"

namespace ecpipe {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

Bytes RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

absl::Status ReceiveFrame(SliceReceiver* receiver, const FrameHeader& expected,
                          std::span<uint8_t> payload) {
  while (true) {
    const absl::StatusOr<bool> complete = receiver->TryReceive(expected, payload);
    if (!complete.ok()) return complete.status();
    if (*complete) return absl::OkStatus();
    pollfd polled = receiver->poll_fd();
    if (::poll(&polled, 1, kPatienceMillis) != 1) {
      return absl::DeadlineExceededError("nothing came");
    }
  }
}

// A data port, and one edge of a repair from it.
class TcpTransportTest : public testing::Test {
 protected:
  void SetUp() override { StartServer({}); }

  void StartServer(const DataServer::Options& options) {
    sender_.reset();
    server_ = DataServer::Start("127.0.0.1:0", options).value();
    transport_ = MakeTcpTransport(server_.get());
  }

  static Hello TheHello() {
    Hello hello;
    hello.edge = {0xabcdef, 2, 1, 3, 0};
    for (size_t i = 0; i < hello.token.size(); ++i) hello.token[i] = static_cast<uint8_t>(i + 1);
    return hello;
  }

  static FrameHeader Header(uint32_t slice_index, size_t payload_bytes) {
    FrameHeader header;
    header.repair_id = TheHello().edge.repair_id;
    header.attempt = TheHello().edge.attempt;
    header.lane = TheHello().edge.lane;
    header.slice_index = slice_index;
    header.payload_bytes = static_cast<uint32_t>(payload_bytes);
    return header;
  }

  void Offer() {
    HopOutput output;
    output.edge = TheHello().edge;
    output.token = TheHello().token;
    output.node = "the-receiver";
    auto sender = transport_->Offer(output, {}, wakeup_);
    ASSERT_TRUE(sender.ok()) << sender.status();
    sender_ = *std::move(sender);
  }

  std::unique_ptr<SliceReceiver> Dial(uint64_t frame_count, const std::string& address,
                                      const Hello& hello = TheHello()) {
    HopInput input;
    input.edge = hello.edge;
    input.token = hello.token;
    input.node = "the-sender";
    input.address = address;
    return transport_->Connect(input, {frame_count, kMaxSliceBytes}).value();
  }
  std::unique_ptr<SliceReceiver> Dial(uint64_t frame_count) {
    return Dial(frame_count, server_->address());
  }

  // Waits as the sender says, or for its receiver.
  absl::Status WaitToSend() {
    pollfd polled[2] = {sender_->poll_fd(), {wakeup_->fd(), POLLIN, 0}};
    if (::poll(polled, 2, kPatienceMillis) < 1) return absl::DeadlineExceededError("cannot send");
    wakeup_->Drain();
    return absl::OkStatus();
  }

  template <typename Try>
  absl::Status UntilDone(Try attempt) {
    while (true) {
      const absl::StatusOr<bool> done = attempt();
      if (!done.ok()) return done.status();
      if (*done) return absl::OkStatus();
      if (absl::Status waited = WaitToSend(); !waited.ok()) return waited;
    }
  }

  absl::Status SendFrame(uint32_t slice_index, std::span<const uint8_t> payload) {
    return UntilDone([&] {
      return sender_->TrySend(Header(slice_index, payload.size()), payload,
                              SliceSender::Next::kUnknown);
    });
  }
  absl::Status FinishSending() {
    return UntilDone([&] { return sender_->TryFinish(); });
  }

  // One frame from slice 0 on for each of the payloads, then the end.
  std::future<absl::Status> SendAll(std::vector<Bytes> payloads) {
    return std::async(std::launch::async, [this, payloads = std::move(payloads)] {
      for (uint32_t i = 0; i < payloads.size(); ++i) {
        if (absl::Status sent = SendFrame(i, payloads[i]); !sent.ok()) return sent;
      }
      return FinishSending();
    });
  }

  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::unique_ptr<DataServer> server_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<SliceSender> sender_;
};

TEST_F(TcpTransportTest, CarriesFramesOfOddSizesInOrder) {
  std::vector<Bytes> payloads;
  uint64_t wire_bytes = 0;
  for (const size_t size : {1u, 2u, 39u, 40u, 41u, 52u, 4095u, 65'537u, 1u, 3'000'001u, 17u}) {
    payloads.push_back(RandomBytes(size, static_cast<uint32_t>(size)));
    wire_bytes += size + kFrameHeaderBytes;
  }
  Offer();
  auto receiver = Dial(payloads.size());
  auto sent = SendAll(payloads);
  for (uint32_t i = 0; i < payloads.size(); ++i) {
    Bytes got(payloads[i].size());
    const absl::Status received = ReceiveFrame(receiver.get(), Header(i, got.size()), got);
    ASSERT_TRUE(received.ok()) << i << received;
    EXPECT_EQ(got, payloads[i]) << i;
  }
  EXPECT_EQ(receiver->bytes_received(), wire_bytes);
  receiver.reset();
  EXPECT_TRUE(sent.get().ok());
  EXPECT_EQ(sender_->bytes_sent(), wire_bytes);
}

TEST_F(TcpTransportTest, AReceiverMayDialBeforeItsSenderExpectsIt) {
  auto receiver = Dial(1);
  Bytes got(5);
  ASSERT_TRUE(WaitFor(receiver->poll_fd().fd, POLLOUT));
  EXPECT_FALSE(receiver->TryReceive(Header(0, 5), got).value()) << "the hello goes out";
  Offer();
  auto sent = SendAll({{1, 2, 3, 4, 5}});
  EXPECT_TRUE(ReceiveFrame(receiver.get(), Header(0, 5), got).ok());
  receiver.reset();
  EXPECT_TRUE(sent.get().ok());
  EXPECT_THAT(got, testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(TcpTransportTest, AFinishedSenderWaitsUntilEverythingIsTaken) {
  Offer();
  auto receiver = Dial(1);
  auto sent = SendAll({{9}});
  Bytes got(1);
  ASSERT_TRUE(ReceiveFrame(receiver.get(), Header(0, 1), got).ok());
  EXPECT_EQ(sent.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "the receiver has not closed yet";
  receiver.reset();
  EXPECT_TRUE(sent.get().ok());
}

TEST_F(TcpTransportTest, AReceiverThatClosesEarlyIsUnavailableToItsSender) {
  Offer();
  auto receiver = Dial(30);
  auto sent = SendAll(std::vector<Bytes>(30, Bytes(1 << 20)));
  Bytes got(1 << 20);
  ASSERT_TRUE(ReceiveFrame(receiver.get(), Header(0, got.size()), got).ok());
  receiver.reset();
  const absl::Status status = sent.get();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the-receiver"));
}

TEST_F(TcpTransportTest, ASenderWithNothingToSendNoticesThatItsReceiverLeft) {
  Offer();
  EXPECT_TRUE(sender_->CheckPeer().ok()) << "nobody has come yet";
  UniqueFd receiver = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(receiver.get(), HelloBytes(TheHello())));
  ASSERT_TRUE(WaitFor(wakeup_->fd(), POLLIN));
  EXPECT_TRUE(sender_->CheckPeer().ok());
  receiver.reset();
  ASSERT_TRUE(WaitFor(sender_->poll_fd().fd, POLLRDHUP));
  EXPECT_TRUE(absl::IsUnavailable(sender_->CheckPeer()));
}

TEST_F(TcpTransportTest, ASenderThatClosesEarlyIsUnavailableToItsReceiver) {
  Offer();
  auto receiver = Dial(2);
  auto sent = std::async(std::launch::async, [this] {
    const absl::Status status = SendFrame(0, Bytes{1, 2, 3});
    sender_.reset();
    return status;
  });
  Bytes got(3);
  ASSERT_TRUE(ReceiveFrame(receiver.get(), Header(0, 3), got).ok());
  const absl::Status status = ReceiveFrame(receiver.get(), Header(1, 3), got);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node the-sender at " + server_->address()));
  EXPECT_TRUE(sent.get().ok());
}

TEST_F(TcpTransportTest, AnErrorArrivesWithCodeTextAndNode) {
  Offer();
  auto receiver = Dial(5);
  auto sent = std::async(std::launch::async, [this] {
    const absl::Status status = SendFrame(0, Bytes{1});
    sender_->SendError(Header(0, 0), absl::NotFoundError("no such block"));
    sender_.reset();
    return status;
  });
  Bytes got(1);
  ASSERT_TRUE(ReceiveFrame(receiver.get(), Header(0, 1), got).ok());
  const absl::Status status = ReceiveFrame(receiver.get(), Header(1, 1), got);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no such block"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("node the-sender"));
  EXPECT_TRUE(sent.get().ok());
}

TEST_F(TcpTransportTest, NothingIsSentAndNothingBreaksWithoutAReceiver) {
  Offer();
  EXPECT_FALSE(sender_->TrySend(Header(0, 1), Bytes{1}, SliceSender::Next::kUnknown).value());
  EXPECT_FALSE(sender_->TryFinish().value());
  EXPECT_EQ(sender_->poll_fd().fd, -1);
  sender_->SendError(Header(0, 0), absl::AbortedError("never mind"));
  EXPECT_EQ(sender_->bytes_sent(), 0u);
}

TEST_F(TcpTransportTest, AnEdgeCanBeOfferedOnceAtATime) {
  Offer();
  HopOutput output;
  output.edge = TheHello().edge;
  EXPECT_TRUE(absl::IsAlreadyExists(transport_->Offer(output, {}, wakeup_).status()));
  sender_.reset();
  EXPECT_TRUE(transport_->Offer(output, {}, wakeup_).ok()) << "it was forgotten";
}

TEST_F(TcpTransportTest, AnEdgeCanBeClaimedOnce) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(200)});
  Offer();
  const UniqueFd first = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(first.get(), HelloBytes(TheHello())));
  ASSERT_TRUE(WaitFor(wakeup_->fd(), POLLIN));
  const UniqueFd second = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(second.get(), HelloBytes(TheHello())));
  EXPECT_TRUE(ClosedByPeer(second.get()));
  EXPECT_TRUE(SendFrame(0, Bytes{7}).ok());
  EXPECT_EQ(RawReceive(first.get(), kFrameHeaderBytes + 1).back(), 7);
}

TEST_F(TcpTransportTest, AWrongTokenIsNeverMatchedAndClosedInTime) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(200)});
  Offer();
  Hello wrong = TheHello();
  wrong.token[15] ^= 1;
  const UniqueFd stranger = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(stranger.get(), HelloBytes(wrong)));
  EXPECT_TRUE(ClosedByPeer(stranger.get()));
  EXPECT_FALSE(sender_->TrySend(Header(0, 1), Bytes{1}, SliceSender::Next::kUnknown).value());
}

TEST_F(TcpTransportTest, AnotherEdgeIsNeverMatched) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(200)});
  Offer();
  const std::function<void(EdgeId*)> changes[] = {
      [](EdgeId* edge) { ++edge->repair_id; }, [](EdgeId* edge) { --edge->attempt; },
      [](EdgeId* edge) { ++edge->lane; }, [](EdgeId* edge) { ++edge->from_hop; },
      [](EdgeId* edge) { ++edge->output; }};
  std::vector<UniqueFd> strangers;
  for (const auto& change : changes) {
    Hello other = TheHello();
    change(&other.edge);
    strangers.push_back(RawConnect(server_->address()));
    ASSERT_TRUE(RawSend(strangers.back().get(), HelloBytes(other)));
  }
  for (const UniqueFd& stranger : strangers) EXPECT_TRUE(ClosedByPeer(stranger.get()));
  EXPECT_FALSE(sender_->TrySend(Header(0, 1), Bytes{1}, SliceSender::Next::kUnknown).value());
}

TEST_F(TcpTransportTest, AMalformedHelloIsClosedAtOnce) {
  StartServer({.handshake_timeout = std::chrono::hours(1)});
  auto damaged = HelloBytes(TheHello());
  damaged[20] ^= 1;
  const UniqueFd stranger = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(stranger.get(), damaged));
  EXPECT_TRUE(ClosedByPeer(stranger.get()));
}

TEST_F(TcpTransportTest, BytesBehindTheHelloAreNotAReceivers) {
  StartServer({.handshake_timeout = std::chrono::hours(1)});
  const auto hello = HelloBytes(TheHello());
  Bytes more(hello.begin(), hello.end());
  more.push_back('x');
  const UniqueFd stranger = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(stranger.get(), more));
  EXPECT_TRUE(ClosedByPeer(stranger.get()));
}

TEST_F(TcpTransportTest, ASilentConnectionAndAHalfHelloAreClosedInTime) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(200)});
  const UniqueFd silent = RawConnect(server_->address());
  const UniqueFd half = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(half.get(), std::span(HelloBytes(TheHello())).first(51)));
  EXPECT_TRUE(ClosedByPeer(silent.get()));
  EXPECT_TRUE(ClosedByPeer(half.get()));
}

TEST_F(TcpTransportTest, AHelloMayComeByteByByte) {
  Offer();
  const UniqueFd receiver = RawConnect(server_->address());
  for (const uint8_t byte : HelloBytes(TheHello())) {
    ASSERT_TRUE(RawSend(receiver.get(), std::span(&byte, 1)));
  }
  EXPECT_TRUE(WaitFor(wakeup_->fd(), POLLIN));
  EXPECT_TRUE(SendFrame(0, Bytes{7}).ok());
}

TEST_F(TcpTransportTest, TheOldestUnmatchedMakesRoomForANewOne) {
  StartServer({.handshake_timeout = std::chrono::hours(1), .max_unmatched = 2});
  std::vector<UniqueFd> waiting;
  for (uint8_t i = 0; i < 3; ++i) {
    Hello hello = TheHello();
    hello.token[0] = i;
    waiting.push_back(RawConnect(server_->address()));
    ASSERT_TRUE(RawSend(waiting.back().get(), HelloBytes(hello)));
  }
  EXPECT_TRUE(ClosedByPeer(waiting[0].get()));
  EXPECT_TRUE(StillOpen(waiting[1].get()));
  EXPECT_TRUE(StillOpen(waiting[2].get()));
}

TEST_F(TcpTransportTest, AForgottenEdgeIsNotHandedOver) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(200)});
  Offer();
  sender_.reset();
  const UniqueFd late = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(late.get(), HelloBytes(TheHello())));
  EXPECT_TRUE(ClosedByPeer(late.get()));
}

TEST_F(TcpTransportTest, TheServersEndClosesWhatItHolds) {
  const UniqueFd waiting = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(waiting.get(), HelloBytes(TheHello())));
  server_.reset();
  EXPECT_TRUE(ClosedByPeer(waiting.get()));
}

TEST_F(TcpTransportTest, WithoutADataPortNothingCanBeOffered) {
  const auto receive_only = MakeTcpTransport(nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(receive_only->Offer({}, {}, wakeup_).status()));
}

TEST_F(TcpTransportTest, NobodyThereIsUnavailableAndNamed) {
  const std::string address = server_->address();
  transport_.reset();
  server_.reset();
  transport_ = MakeTcpTransport(nullptr);
  HopInput input;
  input.node = "the-sender";
  input.address = address;
  auto receiver = transport_->Connect(input, {1, 1});
  absl::Status status = receiver.status();
  Bytes got(1);
  if (status.ok()) status = ReceiveFrame(receiver->get(), Header(0, 1), got);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the-sender"));
}

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
  const absl::Status status =
      ReceiveAfter(std::span(FrameBytes(header, payload_)).first(kFrameHeaderBytes));
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
  const std::string text(kMaxErrorTextBytes, 't');
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
  ASSERT_TRUE(raw_.Send(std::span(FrameBytes(Header(0, payload_.size()), payload_)).first(500)));
  raw_.Close();
  const absl::Status status = Receive(0);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace ecpipe
