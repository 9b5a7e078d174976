// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <future>

#include "base/status.h"
#include "unit/net/tcp_fixture.h"
#include "unit/net/test_certificates.h"

namespace ecpipe::tcp_transport_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What plain TCP and TLS promise alike.
class EitherTcpTransportTest : public TcpTransportTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      const TestCertificates& certificates = TestCertificates::Shared();
      sender_tls_ = certificates.Context("the-sender");
      receiver_tls_ = certificates.Context("the-receiver");
    }
    TcpTransportTest::SetUp();
  }
};

INSTANTIATE_TEST_SUITE_P(Transport, EitherTcpTransportTest, testing::Bool(),
                         [](const auto& tls) { return tls.param ? "Tls" : "Plain"; });

TEST_P(EitherTcpTransportTest, CarriesFramesOfOddSizesInOrder) {
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

TEST_P(EitherTcpTransportTest, AReceiverMayDialBeforeItsSenderExpectsIt) {
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

TEST_P(EitherTcpTransportTest, AFinishedSenderWaitsUntilEverythingIsTaken) {
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

TEST_P(EitherTcpTransportTest, AReceiverThatClosesEarlyIsUnavailableToItsSender) {
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

TEST_P(EitherTcpTransportTest, ASenderThatClosesEarlyIsUnavailableToItsReceiver) {
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

TEST_P(EitherTcpTransportTest, AnErrorArrivesWithCodeTextAndNode) {
  Offer();
  auto receiver = Dial(5);
  auto sent = std::async(std::launch::async, [this] {
    const absl::Status status = SendFrame(0, Bytes{1});
    sender_->SendError(Header(0, 0), absl::NotFoundError("no such block"), Soon());
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

TEST_P(EitherTcpTransportTest, AnErrorInTheMiddleOfAFrameArrivesAfterTheFrame) {
  Offer();
  const Bytes payload = RandomBytes(4 << 20, 1);
  constexpr uint32_t kFrames = 1000;
  auto receiver = Dial(kFrames);
  auto whole = std::async(std::launch::async, [&] {
    uint32_t frame = 0;
    // Until the socket takes a part of a frame.
    while (frame < kFrames && sender_->bytes_sent() % (kFrameHeaderBytes + payload.size()) == 0) {
      const auto sent =
          sender_->TrySend(Header(frame, payload.size()), payload, SliceSender::Next::kUnknown);
      EXPECT_TRUE(sent.ok()) << sent.status();
      if (sent.ok() && *sent) {
        ++frame;
      } else if (sender_->bytes_sent() == 0) {
        EXPECT_TRUE(WaitToSend().ok());
      }
    }
    sender_->SendError(Header(0, 0), absl::NotFoundError("no such block"), Soon());
    sender_.reset();
    return frame + 1;
  });
  Bytes got(payload.size());
  uint32_t received = 0;
  absl::Status status;
  while ((status = ReceiveFrame(receiver.get(), Header(received, got.size()), got)).ok()) {
    ++received;
    EXPECT_EQ(got, payload);
  }
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(received, whole.get());
}

// Who dials first and who gives up first are races: both orders end with the reason, at once.
TEST_P(EitherTcpTransportTest, AnErrorReachesAReceiverThatComesLate) {
  StartServer({.handshake_timeout = std::chrono::hours(1)});
  for (const bool dial_first : {false, true}) {
    const absl::Status reason = absl::NotFoundError("no such block");
    std::unique_ptr<SliceReceiver> receiver;
    Bytes got(1);
    Offer();
    if (dial_first) {
      receiver = Dial(1);
      ASSERT_TRUE(WaitFor(receiver->poll_fd().fd, POLLOUT));
      EXPECT_FALSE(receiver->TryReceive(Header(0, 1), got).value()) << "the hello goes out";
    }
    sender_->SendError(Header(0, 0), reason, Soon());
    sender_.reset();
    if (!dial_first) receiver = Dial(1);
    const absl::Status status = ReceiveFrame(receiver.get(), Header(0, 1), got);
    EXPECT_TRUE(absl::IsNotFound(status)) << dial_first << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("node the-sender"));
  }
}

TEST_F(TcpTransportTest, TheReasonIsForTheRightTokenOnlyAndForATime) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(200)});
  Offer();
  sender_->SendError(Header(0, 0), absl::NotFoundError("no such block"), Soon());
  sender_.reset();
  Hello wrong = TheHello();
  wrong.token[15] ^= 1;
  const UniqueFd stranger = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(stranger.get(), HelloBytes(wrong)));
  EXPECT_TRUE(ClosedByPeer(stranger.get()));  // after the time
  const UniqueFd late = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(late.get(), HelloBytes(TheHello())));
  EXPECT_TRUE(ClosedByPeer(late.get()));
}

TEST_P(EitherTcpTransportTest, ANewOfferTakesTheReasonBack) {
  Offer();
  sender_->SendError(Header(0, 0), absl::NotFoundError("no such block"), Soon());
  sender_.reset();
  Offer();
  auto receiver = Dial(1);
  auto sent = SendAll({{7}});
  Bytes got(1);
  EXPECT_TRUE(ReceiveFrame(receiver.get(), Header(0, 1), got).ok());
  receiver.reset();
  EXPECT_TRUE(sent.get().ok());
}

TEST_P(EitherTcpTransportTest, NothingIsSentAndNothingBreaksWithoutAReceiver) {
  Offer();
  EXPECT_FALSE(sender_->TrySend(Header(0, 1), Bytes{1}, SliceSender::Next::kUnknown).value());
  EXPECT_FALSE(sender_->TryFinish().value());
  EXPECT_EQ(sender_->poll_fd().fd, -1);
  sender_->SendError(Header(0, 0), absl::AbortedError("never mind"), Soon());
  EXPECT_EQ(sender_->bytes_sent(), 0u);
}

TEST_P(EitherTcpTransportTest, AnEdgeCanBeOfferedOnceAtATime) {
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
  const auto hello = HelloBytes(TheHello());
  ASSERT_TRUE(RawSend(half.get(), std::span(hello).first(51)));
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

TEST_F(TcpTransportTest, AFloodFromOneAddressPushesOutItsOwn) {
  StartServer({.handshake_timeout = std::chrono::hours(1), .max_unmatched = 4});
  const UniqueFd honest = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(honest.get(), HelloBytes(TheHello())));
  std::vector<UniqueFd> flood;
  for (int i = 0; i < 50; ++i) flood.push_back(RawConnect(server_->address(), "127.0.0.2"));
  EXPECT_TRUE(ClosedByPeer(flood.front().get()));
  EXPECT_TRUE(ClosedByPeer(flood[46].get()));
  EXPECT_TRUE(StillOpen(flood.back().get()));
  Offer();
  EXPECT_TRUE(SendFrame(0, Bytes{7}).ok());
  EXPECT_EQ(RawReceive(honest.get(), kFrameHeaderBytes + 1).back(), 7);
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

// While it lives this process can open no more files.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST_P(EitherTcpTransportTest, WithoutDescriptorsNoNodeIsNamed) {
  HopInput input;
  input.node = "the-sender";
  for (const std::string& address : {server_->address(), std::string("localhost:1")}) {
    input.address = address;
    const absl::Status status = [&] {
      const NoMoreFiles none;
      return transport_->Connect(input, {1, 1}).status();
    }();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_TRUE(IsOwnShortage(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("the-sender")));
  }
}

TEST_P(EitherTcpTransportTest, NobodyThereIsUnavailableAndNamed) {
  const std::string address = server_->address();
  transport_.reset();
  server_.reset();
  transport_ = MakeTcpTransport(nullptr, receiver_tls_);
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

}  // namespace
}  // namespace ecpipe::tcp_transport_test
