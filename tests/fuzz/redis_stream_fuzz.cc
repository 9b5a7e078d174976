// SPDX-License-Identifier: Apache-2.0
// Both ends of the redis transport against a server that answers anything. The receiver takes whole
// frames that are expected, or ends with an error; the sender keeps to its window.
#include "loopback.h"
#include "net/redis/redis_transport.h"
#include "stream_ops.h"

namespace ecpipe {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int kMostSteps = 10'000;
constexpr int kWindowFrames = 32;  // as docs/wire.md says

void Append(const std::string& text, Bytes* out) {
  out->insert(out->end(), text.begin(), text.end());
}

// A reply of the server: the pop that was asked for with this value, or something else.
Bytes Reply(const Bytes& value, FuzzInput* input) {
  Bytes reply;
  switch (input->Take<uint8_t>() % 6) {
    case 0:
    case 1:
      Append("*2\r\n$1\r\nk\r\n$" + std::to_string(value.size()) + "\r\n", &reply);
      reply.insert(reply.end(), value.begin(), value.end());
      Append("\r\n", &reply);
      return reply;
    case 2:
      Append(":" + std::to_string(input->Take<int32_t>()) + "\r\n", &reply);
      return reply;
    case 3:
      Append("*2\r\n:1\r\n:2\r\n", &reply);
      return reply;
    case 4:
      Append("*-1\r\n", &reply);
      return reply;
    default:
      return value;  // as it is
  }
}

std::unique_ptr<Transport> MakeTransport() {
  return MakeRedisTransport({.own_address = FuzzPeer::address(),
                             .expiry = std::chrono::seconds(60),
                             .password_file = "",
                             .own_patience = Duration(0)});
}

// What the client has sent is taken and thrown away.
void Drain(int fd) {
  std::array<uint8_t, 4096> buffer;
  while (::recv(fd, buffer.data(), buffer.size(), 0) > 0) {
  }
}

void RunReceiver(FuzzInput* input) {
  FuzzStream stream(input);
  HopInput hop;
  hop.address = FuzzPeer::address();
  auto receiver = MakeTransport()->Connect(hop, {stream.frame_count(), stream.payload_bytes()});
  ECPIPE_CHECK(receiver.ok());
  Bytes payload(stream.payload_bytes());
  uint32_t slice = 0;
  FuzzPeer peer;
  while (!input->empty() && peer.Send(Reply(stream.NextPiece(), input))) {
  }
  peer.EndSending();
  for (int steps = 0; slice < stream.frame_count(); ++steps) {
    ECPIPE_CHECK(steps < kMostSteps);
    const absl::StatusOr<bool> taken = (*receiver)->TryReceive(stream.Expected(slice), payload);
    if (!taken.ok()) return;
    Drain(peer.fd());
    if (*taken) {
      ECPIPE_CHECK(stream.WasSent(slice++, payload));
      continue;
    }
    const pollfd wanted = (*receiver)->poll_fd();
    ECPIPE_CHECK(WaitFor(wanted.fd, wanted.events));
  }
}

// Answers to both connections of a sender, which were dialled one after the other.
void RunSender(FuzzInput* input) {
  HopOutput output;
  auto sender = MakeTransport()->Offer(output, {64, 4}, nullptr);
  ECPIPE_CHECK(sender.ok());
  FuzzPeer data;
  FuzzPeer credits;
  uint64_t credited = 0;
  while (!input->empty()) {
    FuzzPeer& peer = input->Take<uint8_t>() % 2 == 0 ? data : credits;
    const auto count = input->Take<uint8_t>();
    credited = std::max<uint64_t>(credited, count);
    const std::string number = std::to_string(count);
    if (!peer.Send(Reply({number.begin(), number.end()}, input))) break;
  }
  data.EndSending();
  credits.EndSending();
  const Bytes payload(4, 1);
  int sent = 0;
  for (int steps = 0; sent < 64 && steps < 200; ++steps) {
    const absl::StatusOr<bool> taken =
        (*sender)->TrySend(FrameHeader{}, payload, SliceSender::Next::kFrame);
    if (!taken.ok()) return;
    Drain(data.fd());
    Drain(credits.fd());
    if (*taken) ++sent;
  }
  ECPIPE_CHECK(static_cast<uint64_t>(sent) <= kWindowFrames + credited);
  // Done is only who was told that all frames were taken.
  const absl::StatusOr<bool> finished = (*sender)->TryFinish();
  ECPIPE_CHECK(!finished.ok() || !*finished || credited >= static_cast<uint64_t>(sent));
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, std::min<size_t>(size, 4096));
  if (input.Take<uint8_t>() % 2 == 0) {
    ecpipe::RunReceiver(&input);
  } else {
    ecpipe::RunSender(&input);
  }
  return 0;
}
