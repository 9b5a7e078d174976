// SPDX-License-Identifier: Apache-2.0
// A data port and one edge of a repair from it, for tests of either end.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <random>

#include "net/data_server.h"
#include "net/tcp_transport.h"
#include "unit/net/raw_peer.h"

namespace ecpipe {

using Bytes = std::vector<uint8_t>;

inline Bytes RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

inline absl::Status ReceiveFrame(SliceReceiver* receiver, const FrameHeader& expected,
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

inline TimePoint Soon() { return Clock::System().Now() + std::chrono::milliseconds(500); }

// A data port, and one edge of a repair from it.
class TcpTransportTest : public testing::Test {
 protected:
  void SetUp() override { StartServer({}); }

  void StartServer(DataServer::Options options) {
    sender_.reset();
    options.tls = sender_tls_;
    server_ = DataServer::Start("127.0.0.1:0", options).value();
    transport_ = MakeTcpTransport(server_.get(), receiver_tls_);
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

  void Offer(const std::string& receiver = "the-receiver") {
    HopOutput output;
    output.edge = TheHello().edge;
    output.token = TheHello().token;
    output.node = receiver;
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

  // Set before StartServer(); null: plain TCP.
  std::shared_ptr<TlsContext> sender_tls_;
  std::shared_ptr<TlsContext> receiver_tls_;
  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::unique_ptr<DataServer> server_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<SliceSender> sender_;
};

}  // namespace ecpipe
