// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes/crc32c.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/dialler.h"
#include "net/stream_socket.h"
#include "net/tcp_network_time.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

class TcpReceiver : public SliceReceiver {
 public:
  // `tls` null: plain text.
  TcpReceiver(const HopInput& input, const StreamShape& shape, Dialler dialler,
              std::shared_ptr<TlsContext> tls)
      : node_(input.node),
        peer_("node " + input.node + " at " + input.address),
        dialler_(std::move(dialler)),
        tls_(std::move(tls)),
        frames_left_(shape.frame_count) {
    EncodeHello(Hello{input.edge, input.token}, hello_);
  }
  ~TcpReceiver() override {
    if (frames_left_ == 0) socket_.SendCloseNotify();
  }

  absl::StatusOr<bool> TryReceive(const FrameHeader& expected,
                                  std::span<uint8_t> payload) override {
    absl::StatusOr<bool> complete = Receive(expected, payload);
    if (!complete.ok()) return AnnotatePeer(complete.status(), "receive from " + peer_);
    return complete;
  }

  pollfd poll_fd() const override {
    if (dialler_) return dialler_->poll_fd();
    short events = POLLIN;
    if (hello_sent_ < kHelloBytes) events = POLLOUT;
    if (!secured_) events = socket_.handshake_events();
    return {socket_.fd(), events, 0};
  }

  uint64_t bytes_received() const override { return bytes_received_; }

 private:
  absl::StatusOr<bool> Receive(const FrameHeader& expected, std::span<uint8_t> payload) {
    if (hello_sent_ < kHelloBytes) {
      ECPIPE_ASSIGN_OR_RETURN(const bool open, Open());
      if (!open) return false;
    }
    for (bool drained = WasDrained();; drained = !read_all_) {
      if (header_received_ == kFrameHeaderBytes && !header_checked_) {
        ECPIPE_RETURN_IF_ERROR(TakeHeader(expected));
      }
      if (header_checked_ && payload_received_ == header_.payload_bytes) break;
      if (drained) {
        SleepUntilReadable(Missing());
        return false;
      }
      ECPIPE_RETURN_IF_ERROR(ReadSome(payload));
    }
    if (header_.type == FrameType::kError) {
      const std::span<const uint8_t> text(error_text_.data(), header_.payload_bytes);
      ECPIPE_RETURN_IF_ERROR(CheckPayload(header_, text));
      return ErrorFromFrame(header_, text);
    }
    ECPIPE_RETURN_IF_ERROR(CheckPayload(header_, payload));
    --frames_left_;
    header_checked_ = false;
    payload_received_ = 0;
    header_received_ = next_header_received_;
    std::copy_n(next_header_bytes_.begin(), header_received_, header_bytes_.begin());
    next_header_received_ = 0;
    return true;
  }

  // Finishes the connect, learns who the peer is, and sends the hello; false while that would
  // block.
  absl::StatusOr<bool> Open() {
    if (dialler_) {
      ECPIPE_ASSIGN_OR_RETURN(UniqueFd fd, dialler_->Step());
      if (!fd.valid()) return false;
      dialler_.reset();
      socket_ = StreamSocket(std::move(fd));
      if (tls_ != nullptr) socket_.UseTls(tls_->Dial(socket_.fd(), node_));
    }
    if (!secured_) {
      ECPIPE_ASSIGN_OR_RETURN(secured_, socket_.Handshake());
      if (!secured_) return false;
    }
    const iovec rest{hello_.data() + hello_sent_, kHelloBytes - hello_sent_};
    const ssize_t sent = socket_.Send(&rest, 1, 0);
    if (sent < 0) {
      if (WouldBlock()) return false;
      return socket_.Error(errno, "open stream");
    }
    hello_sent_ += static_cast<size_t>(sent);
    return hello_sent_ == kHelloBytes;
  }

  absl::Status TakeHeader(const FrameHeader& expected) {
    ECPIPE_ASSIGN_OR_RETURN(header_, DecodeFrameHeader(header_bytes_));
    ECPIPE_RETURN_IF_ERROR(CheckExpected(header_, expected));
    if (header_.type == FrameType::kError) error_text_.resize(kMaxErrorTextBytes);
    header_checked_ = true;
    return absl::OkStatus();
  }

  // Whether the last frame took all that had come: then poll() is to be asked before the next read.
  bool WasDrained() {
    const bool drained = !read_all_;
    read_all_ = true;
    return drained;
  }

  // What the header, or then the payload, still lacks. Not both at once: a header that is refused,
  // or that of a short error, must not wait for a payload.
  size_t Missing() const {
    if (header_checked_) return header_.payload_bytes - payload_received_;
    return kFrameHeaderBytes - header_received_;
  }

  // One read. While a payload is coming in, the next frame's header is read with it, so that a
  // frame costs one system call when frames come together.
  absl::Status ReadSome(std::span<uint8_t> payload) {
    std::array<iovec, 2> parts{};
    int count = 0;
    if (!header_checked_) {
      parts[count++] = {header_bytes_.data() + header_received_,
                        kFrameHeaderBytes - header_received_};
    } else {
      uint8_t* target = header_.type == FrameType::kError ? error_text_.data() : payload.data();
      parts[count++] = {target + payload_received_, header_.payload_bytes - payload_received_};
      const bool more = header_.type == FrameType::kSlice && frames_left_ > 1;
      if (more) parts[count++] = {next_header_bytes_.data(), kFrameHeaderBytes};
    }
    size_t wanted = 0;
    for (int i = 0; i < count; ++i) wanted += parts[i].iov_len;
    const ssize_t got = socket_.Read(parts.data(), count);
    if (got == 0) return absl::UnavailableError("the sender closed the stream before its end");
    if (got < 0 && !WouldBlock()) return socket_.Error(errno, "read");
    read_all_ = got == static_cast<ssize_t>(wanted);
    if (got > 0) {
      bytes_received_ += static_cast<uint64_t>(got);
      Account(static_cast<size_t>(got));
    }
    return absl::OkStatus();
  }

  void Account(size_t got) {
    if (!header_checked_) {
      header_received_ += got;
      return;
    }
    const size_t of_payload = std::min<size_t>(got, header_.payload_bytes - payload_received_);
    payload_received_ += static_cast<uint32_t>(of_payload);
    next_header_received_ = got - of_payload;
  }

  // Has poll() report the socket only when all that is wanted can be read at once: a wake-up a
  // payload instead of one for every few packets.
  void SleepUntilReadable(size_t wanted) {
    constexpr size_t kLargestLowWater = 256u << 10;  // stays below the usual receive buffers
    // TLS may have taken most of a record off the socket and still wait for its end.
    constexpr size_t kTlsRecordBytes = 17u << 10;
    if (socket_.has_tls()) wanted = wanted > kTlsRecordBytes ? wanted - kTlsRecordBytes : 1;
    const int low_water = static_cast<int>(std::min(wanted, kLargestLowWater));
    if (low_water == low_water_) return;
    low_water_ = low_water;
    ::setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof low_water);
  }

  const std::string node_;
  const std::string peer_;
  std::optional<Dialler> dialler_;         // until it has connected `socket_`
  const std::shared_ptr<TlsContext> tls_;  // shared with the transport
  StreamSocket socket_;
  uint64_t frames_left_;
  bool secured_ = false;  // the peer has proven who it is, where it must
  std::array<uint8_t, kHelloBytes> hello_{};
  size_t hello_sent_ = 0;

  std::array<uint8_t, kFrameHeaderBytes> header_bytes_{};
  size_t header_received_ = 0;
  FrameHeader header_;  // valid while header_checked_
  bool header_checked_ = false;
  uint32_t payload_received_ = 0;
  std::array<uint8_t, kFrameHeaderBytes> next_header_bytes_{};
  size_t next_header_received_ = 0;
  std::vector<uint8_t> error_text_;
  bool read_all_ = true;  // the last read brought all that was asked for: more may be there
  int low_water_ = 1;
  uint64_t bytes_received_ = 0;
};

class TcpSender : public SliceSender {
 public:
  TcpSender(DataServer* server, const HopOutput& output, std::shared_ptr<ConnectionSlot> slot)
      : server_(server),
        hello_{output.edge, output.token},
        peer_("node " + output.node),
        slot_(std::move(slot)) {}
  ~TcpSender() override { server_->Forget(hello_.edge); }

  absl::StatusOr<bool> TrySend(const FrameHeader& header, std::span<const uint8_t> payload,
                               Next next) override {
    if (!HavePeer()) return false;
    if (frame_sent_ == 0) {
      if (bytes_sent_ == 0) begun_ = Clock::System().Now();
      FrameHeader sealed = header;
      sealed.payload_crc32c = Crc32c(payload);
      EncodeFrameHeader(sealed, header_bytes_);
      payload_ = payload;
    }
    const size_t frame_bytes = kFrameHeaderBytes + payload.size();
    while (frame_sent_ < frame_bytes) {
      const ssize_t sent = SendRest(payload, next);
      if (sent < 0) {
        if (WouldBlock()) return false;
        return socket_.Error(errno, "send to " + peer_);
      }
      frame_sent_ += static_cast<size_t>(sent);
      bytes_sent_ += static_cast<uint64_t>(sent);
    }
    frame_sent_ = 0;
    return true;
  }

  absl::StatusOr<bool> TryFinish() override {
    if (!HavePeer()) return false;
    if (!finishing_) {
      ::shutdown(socket_.fd(), SHUT_WR);
      finishing_ = true;
    }
    uint8_t byte = 0;
    const iovec one{&byte, 1};
    const ssize_t got = socket_.Read(&one, 1);
    if (got == 0) {
      timing_ = TimingNow();
      finished_ = true;
      return true;
    }
    if (got < 0 && WouldBlock()) return false;
    // A receiver that resets the stream may have left bytes of ours unread.
    return absl::UnavailableError(peer_ + " did not take the whole stream");
  }

  absl::Status CheckPeer() override {
    if (!HavePeer()) return absl::OkStatus();
    if (!socket_.PeerEndedOrSpoke()) return absl::OkStatus();
    return absl::UnavailableError(peer_ + " closed the stream before its end");
  }

  void SendError(const FrameHeader& stream, const absl::Status& status,
                 TimePoint deadline) override {
    if (finishing_) return;
    const std::string frame = EncodeErrorFrame(stream, status);
    if (!HavePeer() && server_->Refuse(hello_, frame)) return;
    if (!HavePeer()) return;
    // In the middle of a frame the receiver could not tell an error from payload. Who cancels knows
    // why the stream ends.
    if (frame_sent_ != 0 && (absl::IsCancelled(status) || !EndFrame(deadline))) return;
    if (socket_.mid_send()) return;
    const iovec whole{const_cast<char*>(frame.data()), frame.size()};
    [[maybe_unused]] const ssize_t sent = socket_.Send(&whole, 1, 0);
  }

  pollfd poll_fd() const override {
    if (finishing_) return {socket_.fd(), POLLIN, 0};
    return {socket_.fd(), static_cast<short>(POLLOUT | POLLRDHUP), 0};
  }

  uint64_t bytes_sent() const override { return bytes_sent_; }
  LinkTiming timing() const override { return finished_ ? timing_ : TimingNow(); }

 private:
  bool HavePeer() {
    if (socket_.valid()) return true;
    socket_ = slot_->Take();
    if (!socket_.valid()) return false;
    // The pipeline keeps its own bounded ring; bytes queued in the socket only add latency to each
    // hop, and delay the moment at which a slow receiver is noticed.
    const int unsent_bytes = 256 << 10;
    ::setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
    const int on = 1;
    ::setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return true;
  }

  LinkTiming TimingNow() const {
    if (!socket_.valid()) return {};
    return {.to = "",
            .bytes = bytes_sent_,
            .seconds = Seconds(Clock::System().Now() - begun_),
            .network_seconds = TcpNetworkSeconds(socket_.fd())};
  }

  // Sends the rest of the frame under way, so that more can follow.
  bool EndFrame(TimePoint deadline) {
    const size_t frame_bytes = kFrameHeaderBytes + payload_.size();
    while (frame_sent_ < frame_bytes) {
      const ssize_t sent = SendRest(payload_, Next::kFrame);
      if (sent >= 0) {
        frame_sent_ += static_cast<size_t>(sent);
        bytes_sent_ += static_cast<uint64_t>(sent);
        continue;
      }
      const Duration left = deadline - Clock::System().Now();
      if (!WouldBlock() || left <= Duration(0)) return false;
      pollfd polled{socket_.fd(), POLLOUT, 0};
      Poll({&polled, 1}, left);
    }
    frame_sent_ = 0;
    return true;
  }

  ssize_t SendRest(std::span<const uint8_t> payload, Next next) {
    std::array<iovec, 2> parts{};
    int count = 0;
    if (frame_sent_ < kFrameHeaderBytes) {
      parts[count++] = {header_bytes_.data() + frame_sent_, kFrameHeaderBytes - frame_sent_};
      parts[count++] = {const_cast<uint8_t*>(payload.data()), payload.size()};
    } else {
      const size_t done = frame_sent_ - kFrameHeaderBytes;
      parts[count++] = {const_cast<uint8_t*>(payload.data()) + done, payload.size() - done};
    }
    // Frames that follow each other at once may share packets.
    return socket_.Send(parts.data(), count, next == Next::kFrame ? MSG_MORE : 0);
  }

  DataServer* const server_;
  const Hello hello_;
  const std::string peer_;
  const std::shared_ptr<ConnectionSlot> slot_;  // shared with the data server until it is filled
  StreamSocket socket_;
  std::array<uint8_t, kFrameHeaderBytes> header_bytes_{};
  size_t frame_sent_ = 0;             // bytes of the frame under way
  std::span<const uint8_t> payload_;  // of that frame; its owner's, who leaves it alone
  bool finishing_ = false;
  bool finished_ = false;  // the receiver has taken everything
  uint64_t bytes_sent_ = 0;
  TimePoint begun_{};
  LinkTiming timing_;  // once finished
};

class TcpTransport : public Transport {
 public:
  TcpTransport(DataServer* server, std::shared_ptr<TlsContext> tls)
      : server_(server), tls_(std::move(tls)) {}

  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput& input,
                                                         const StreamShape& shape) override {
    ECPIPE_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(input.address));
    absl::StatusOr<Dialler> dialler = Dialler::Begin(address);
    if (!dialler.ok()) return AnnotatePeer(dialler.status(), "node " + input.node);
    return std::make_unique<TcpReceiver>(input, shape, *std::move(dialler), tls_);
  }

  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput& output, const StreamShape&,
                                                     std::shared_ptr<Wakeup> wakeup) override {
    if (server_ == nullptr) {
      return absl::FailedPreconditionError("this process has no data port to send from");
    }
    auto slot = std::make_shared<ConnectionSlot>(std::move(wakeup));
    // A requestor's name is none of a certificate.
    const bool is_node = output.node.find(':') == std::string::npos;
    ECPIPE_RETURN_IF_ERROR(
        server_->Expect(Hello{output.edge, output.token}, slot, is_node ? output.node : ""));
    return std::make_unique<TcpSender>(server_, output, std::move(slot));
  }

 private:
  DataServer* const server_;
  const std::shared_ptr<TlsContext> tls_;  // shared: with the data port and the control plane
};

}  // namespace

std::unique_ptr<Transport> MakeTcpTransport(DataServer* server, std::shared_ptr<TlsContext> tls) {
  return std::make_unique<TcpTransport>(server, std::move(tls));
}

}  // namespace ecpipe
