// SPDX-License-Identifier: Apache-2.0
// The TCP receiver against a sender that sends anything, in any pieces: it takes whole frames that
// were sent and are expected, or ends with an error, and never waits for what cannot come.
#include "loopback.h"
#include "net/tcp_transport.h"
#include "stream_ops.h"

namespace ecpipe {
namespace {

// Receives one frame, as far as it has come. False: the stream has ended.
class Receiving {
 public:
  Receiving(SliceReceiver* receiver, const FuzzStream* stream)
      : receiver_(receiver), stream_(stream), payload_(stream->payload_bytes()) {}

  bool ended() const { return ended_ || slice_ == stream_->frame_count(); }

  // Takes what is there. False when there is no progress to be made without more bytes.
  bool Step() {
    if (ended()) return false;
    const absl::StatusOr<bool> taken = receiver_->TryReceive(stream_->Expected(slice_), payload_);
    if (!taken.ok()) {
      ended_ = true;
      return false;
    }
    if (!*taken) return false;
    ECPIPE_CHECK(stream_->WasSent(slice_, payload_));
    ++slice_;
    return true;
  }

  // The sender has closed: all that has come is taken, and then the end is seen.
  void ToTheEnd() {
    // A step takes a frame, or some bytes, of which there are few.
    for (int steps = 0; !ended(); ++steps) {
      ECPIPE_CHECK(steps < 10'000);
      if (Step() || ended()) continue;
      const pollfd wanted = receiver_->poll_fd();
      ECPIPE_CHECK(WaitFor(wanted.fd, wanted.events));
    }
  }

 private:
  SliceReceiver* const receiver_;
  const FuzzStream* const stream_;
  std::vector<uint8_t> payload_;
  uint32_t slice_ = 0;
  bool ended_ = false;
};

void Run(FuzzInput* input) {
  FuzzStream stream(input);
  static const std::unique_ptr<Transport> transport = MakeTcpTransport(nullptr);
  HopInput hop;
  hop.address = FuzzPeer::address();
  hop.node = "peer";
  hop.token.fill(7);
  auto receiver = transport->Connect(hop, {stream.frame_count(), stream.payload_bytes()});
  ECPIPE_CHECK(receiver.ok());
  Receiving receiving(receiver->get(), &stream);
  uint64_t sent = 0;
  {
    FuzzPeer peer;
    receiving.Step();
    const std::vector<uint8_t> hello = RawReceive(peer.fd(), kHelloBytes);
    ECPIPE_CHECK(hello.size() == kHelloBytes);
    while (!input->empty() && !receiving.ended()) {
      const std::vector<uint8_t> piece = stream.NextPiece();
      if (!peer.Send(piece)) break;
      sent += piece.size();
      while (input->Take<uint8_t>() % 2 == 1 && receiving.Step()) {
      }
    }
    peer.EndSending();
    receiving.ToTheEnd();
  }
  ECPIPE_CHECK((*receiver)->bytes_received() <= sent);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, std::min<size_t>(size, 4096));
  ecpipe::Run(&input);
  return 0;
}
