// SPDX-License-Identifier: Apache-2.0
// Streams over real TCP on loopback, and what happens when a peer misbehaves.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>

#include "common/data_server.h"
#include "common/tcp_socket.h"
#include "common/tcp_transport.h"

namespace ecpipe {
namespace {

constexpr uint32_t kPayload = 1000;

// Steps until it returns something other than "would block"; gives up after a generous while.
absl::StatusOr<bool> Settle(const std::function<absl::StatusOr<bool>()>& step) {
  const TimePoint deadline = Clock::System().Now() + std::chrono::seconds(20);
  while (Clock::System().Now() < deadline) {
    absl::StatusOr<bool> done = step();
    if (!done.ok() || *done) return done;
    ::poll(nullptr, 0, 1);
  }
  return absl::DeadlineExceededError("the test waited too long");
}

class DataPlane : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server =
        DataServer::Start("127.0.0.1:0", {.handshake_timeout = std::chrono::milliseconds(300)});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    transport_ = MakeTcpTransport(server_.get());
    edge_ = {7, 1, 0, 2, 0};
    token_.fill(9);
    header_.repair_id = 7;
    header_.attempt = 1;
    header_.payload_bytes = kPayload;
  }

  void Offer() {
    auto sender = transport_->Offer({edge_, token_, "taker", {0}}, shape_, wakeup_);
    ASSERT_TRUE(sender.ok()) << sender.status();
    sender_ = *std::move(sender);
  }
  void Connect() {
    HopInput input;
    input.edge = edge_;
    input.token = token_;
    input.address = server_->address();
    input.node = "giver";
    input.rows = {0};
    auto receiver = transport_->Connect(input, shape_);
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    receiver_ = *std::move(receiver);
  }
  absl::StatusOr<bool> TrySend() {
    return sender_->TrySend(header_, sent_, SliceSender::Next::kUnknown);
  }
  absl::StatusOr<bool> TryReceive() { return receiver_->TryReceive(header_, received_); }

  // Both ends at once, since neither can finish alone.
  absl::StatusOr<bool> Transfer() {
    bool sent = false;
    return Settle([&]() -> absl::StatusOr<bool> {
      if (!sent) {
        absl::StatusOr<bool> done = TrySend();
        if (!done.ok()) return done;
        sent = *done;
      }
      return TryReceive();
    });
  }

  const StreamShape shape_{2, kPayload};
  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::unique_ptr<DataServer> server_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<SliceSender> sender_;
  std::unique_ptr<SliceReceiver> receiver_;
  EdgeId edge_;
  EdgeToken token_{};
  FrameHeader header_;
  std::vector<uint8_t> sent_ = std::vector<uint8_t>(kPayload, 0x5a);
  std::vector<uint8_t> received_ = std::vector<uint8_t>(kPayload);
};

TEST_F(DataPlane, FramesArriveAndTheStreamEnds) {
  Offer();
  Connect();
  for (uint32_t slice = 0; slice < 2; ++slice) {
    header_.slice_index = slice;
    sent_.assign(kPayload, static_cast<uint8_t>(slice + 1));
    const absl::StatusOr<bool> done = Transfer();
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(received_, sent_);
  }
  receiver_.reset();
  const absl::StatusOr<bool> finished = Settle([&] { return sender_->TryFinish(); });
  EXPECT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(sender_->bytes_sent(), 2 * (kPayload + kFrameHeaderBytes));
}

TEST_F(DataPlane, AReceiverMayDialFirst) {
  Connect();
  ASSERT_TRUE(TryReceive().ok());
  ::poll(nullptr, 0, 20);
  Offer();
  EXPECT_TRUE(Transfer().ok());
}

TEST_F(DataPlane, AWrongTokenGetsNothing) {
  Offer();
  token_[3] ^= 1;
  Connect();
  const absl::StatusOr<bool> done = Transfer();
  EXPECT_TRUE(absl::IsUnavailable(done.status())) << done.status();
  EXPECT_EQ(sender_->bytes_sent(), 0u);
}

TEST_F(DataPlane, AnEdgeIsGivenOnce) {
  Offer();
  EXPECT_TRUE(absl::IsAlreadyExists(
      transport_->Offer({edge_, token_, "x", {0}}, shape_, wakeup_).status()));
  Connect();
  ASSERT_TRUE(Transfer().ok());
  Connect();  // the same token again
  const absl::StatusOr<bool> again = Settle([&] { return TryReceive(); });
  EXPECT_TRUE(absl::IsUnavailable(again.status())) << again.status();
}

TEST_F(DataPlane, AStaleAttemptIsRefused) {
  Offer();
  Connect();
  FrameHeader newer = header_;
  newer.attempt = 2;
  const absl::StatusOr<bool> done = Settle([&]() -> absl::StatusOr<bool> {
    absl::StatusOr<bool> sent = TrySend();
    if (!sent.ok()) return sent;
    return receiver_->TryReceive(newer, received_);
  });
  EXPECT_TRUE(absl::IsDataLoss(done.status())) << done.status();
  EXPECT_EQ(received_, std::vector<uint8_t>(kPayload)) << "refused bytes must not be stored";
}

TEST_F(DataPlane, ErrorsTravelDownstream) {
  Offer();
  Connect();
  ASSERT_TRUE(Transfer().ok());
  sender_->SendError(header_, absl::DataLossError("disk on fire"));
  header_.slice_index = 1;
  const absl::StatusOr<bool> done = Settle([&] { return TryReceive(); });
  EXPECT_TRUE(absl::IsDataLoss(done.status()));
  EXPECT_NE(done.status().ToString().find("giver"), std::string::npos) << done.status();
  EXPECT_NE(done.status().ToString().find("disk on fire"), std::string::npos) << done.status();
}

TEST_F(DataPlane, EitherEndNoticesThatTheOtherHasGone) {
  Offer();
  Connect();
  ASSERT_TRUE(Transfer().ok());
  receiver_.reset();
  const absl::StatusOr<bool> gone = Settle([&]() -> absl::StatusOr<bool> {
    if (absl::Status peer = sender_->CheckPeer(); !peer.ok()) return peer;
    return false;
  });
  EXPECT_TRUE(absl::IsUnavailable(gone.status())) << gone.status();

  edge_.output = 1;
  Offer();
  Connect();
  ASSERT_TRUE(Transfer().ok());
  sender_.reset();
  header_.slice_index = 1;
  const absl::StatusOr<bool> done = Settle([&] { return TryReceive(); });
  EXPECT_TRUE(absl::IsUnavailable(done.status())) << done.status();
}

// A sender that this test plays itself, byte by byte.
class ForgedSender : public DataPlane {
 protected:
  void Accept() {
    listener_ = *Listen({"127.0.0.1", 0});
    HopInput input;
    input.edge = edge_;
    input.address = FormatHostPort(*BoundAddress(listener_.get()));
    input.node = "giver";
    receiver_ = *transport_->Connect(input, shape_);
    const absl::StatusOr<bool> accepted = Settle([&]() -> absl::StatusOr<bool> {
      (void)TryReceive();
      peer_.reset(::accept(listener_.get(), nullptr, nullptr));
      return peer_.valid();
    });
    ASSERT_TRUE(accepted.ok());
  }
  absl::Status SendAndReceive(const std::string& bytes) {
    EXPECT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return Settle([&] { return TryReceive(); }).status();
  }
  std::string Frame(FrameHeader header) {
    std::string bytes(kFrameHeaderBytes, '\0');
    EncodeFrameHeader(header, std::span<uint8_t, kFrameHeaderBytes>(
                                  reinterpret_cast<uint8_t*>(bytes.data()), kFrameHeaderBytes));
    return bytes + std::string(header.payload_bytes, 'x');
  }

  UniqueFd listener_;
  UniqueFd peer_;
};

TEST_F(ForgedSender, GarbageIsRefused) {
  Accept();
  EXPECT_TRUE(absl::IsDataLoss(SendAndReceive(std::string(100, 'g'))));
}

TEST_F(ForgedSender, DamagedBytesAreRefused) {
  Accept();
  FrameHeader header = header_;
  header.payload_crc32c = 0x12345678;  // not that of the payload
  const absl::Status status = SendAndReceive(Frame(header));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.ToString().find("giver"), std::string::npos);
}

TEST_F(ForgedSender, MoreThanAskedForIsRefused) {
  Accept();
  FrameHeader header = header_;
  header.payload_bytes = kPayload + 1;
  EXPECT_TRUE(absl::IsDataLoss(SendAndReceive(Frame(header))));
}

TEST(Addresses, ParseFormatAndLoopback) {
  EXPECT_EQ(ParseHostPort("[::1]:80")->host, "::1");
  EXPECT_EQ(FormatHostPort(*ParseHostPort("[::1]:80")), "[::1]:80");
  EXPECT_EQ(ParseHostPort("node:65535")->port, 65535);
  for (const char* bad :
       {"", "x", ":1", "x:", "x:y", "x:65536", "x:-1", "::1:80", "[]:1", "x:1 "}) {
    EXPECT_FALSE(ParseHostPort(bad).ok()) << bad;
  }
  for (const char* inside : {"localhost", "127.0.0.1", "127.9.8.7", "::1"}) {
    EXPECT_TRUE(IsLoopback(inside)) << inside;
  }
  for (const char* outside : {"0.0.0.0", "10.0.0.1", "::", "example", "128.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(outside)) << outside;
  }
}

}  // namespace
}  // namespace ecpipe
