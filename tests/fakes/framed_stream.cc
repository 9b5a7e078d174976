// SPDX-License-Identifier: Apache-2.0
#include "fakes/framed_stream.h"

#include <array>
#include <utility>
#include <vector>

#include "base/bytes/crc32c.h"
#include "base/clock.h"
#include "base/status.h"

namespace ecpipe {
namespace {

class FramedReceiver : public SliceReceiver {
 public:
  FramedReceiver(const HopInput& input, std::shared_ptr<ByteStream> stream)
      : peer_("node " + input.node), stream_(std::move(stream)) {}
  ~FramedReceiver() override { stream_->Close(ByteStream::kReceiver); }

  absl::StatusOr<bool> TryReceive(const FrameHeader& expected,
                                  std::span<uint8_t> payload) override {
    absl::StatusOr<bool> complete = Receive(expected, payload);
    if (!complete.ok()) return Annotate(complete.status(), "receive from " + peer_);
    return complete;
  }

  pollfd poll_fd() const override { return {stream_->fd(ByteStream::kReceiver), POLLIN, 0}; }
  uint64_t bytes_received() const override { return bytes_received_; }

 private:
  absl::StatusOr<bool> Receive(const FrameHeader& expected, std::span<uint8_t> payload) {
    if (received_ < kFrameHeaderBytes) {
      ECPIPE_ASSIGN_OR_RETURN(const bool have_header, Fill(header_bytes_, 0));
      if (!have_header) return false;
      ECPIPE_ASSIGN_OR_RETURN(header_, DecodeFrameHeader(header_bytes_));
      ECPIPE_RETURN_IF_ERROR(CheckExpected(header_, expected));
      if (header_.type == FrameType::kError) error_text_.resize(header_.payload_bytes);
    }
    const bool is_error = header_.type == FrameType::kError;
    const std::span<uint8_t> target = is_error ? std::span<uint8_t>(error_text_) : payload;
    ECPIPE_ASSIGN_OR_RETURN(const bool have_payload, Fill(target, kFrameHeaderBytes));
    if (!have_payload) return false;
    ECPIPE_RETURN_IF_ERROR(CheckPayload(header_, target));
    if (is_error) return ErrorFromFrame(header_, target);
    received_ = 0;
    return true;
  }

  // Goes on with the part of the frame that begins at `offset`; whether it is complete.
  absl::StatusOr<bool> Fill(std::span<uint8_t> part, size_t offset) {
    while (received_ < offset + part.size()) {
      ECPIPE_ASSIGN_OR_RETURN(const size_t got, stream_->Take(part.subspan(received_ - offset)));
      if (got == 0) return false;
      received_ += got;
      bytes_received_ += got;
    }
    return true;
  }

  const std::string peer_;
  const std::shared_ptr<ByteStream> stream_;  // shared with the other end
  std::array<uint8_t, kFrameHeaderBytes> header_bytes_{};
  FrameHeader header_;
  std::vector<uint8_t> error_text_;
  size_t received_ = 0;  // of the frame under way, with its header
  uint64_t bytes_received_ = 0;
};

class FramedSender : public SliceSender {
 public:
  FramedSender(const HopOutput& output, std::shared_ptr<ByteStream> stream)
      : peer_("node " + output.node), stream_(std::move(stream)) {}
  ~FramedSender() override { stream_->Close(ByteStream::kSender); }

  absl::StatusOr<bool> TrySend(const FrameHeader& header, std::span<const uint8_t> payload,
                               Next) override {
    if (!HavePeer()) return false;
    if (sent_ == 0) {
      if (bytes_sent_ == 0) begun_ = Clock::System().Now();
      FrameHeader sealed = header;
      sealed.payload_crc32c = Crc32c(payload);
      EncodeFrameHeader(sealed, header_bytes_);
    }
    const size_t frame_bytes = kFrameHeaderBytes + payload.size();
    while (sent_ < frame_bytes) {
      const auto rest = sent_ < kFrameHeaderBytes
                            ? std::span<const uint8_t>(header_bytes_).subspan(sent_)
                            : payload.subspan(sent_ - kFrameHeaderBytes);
      const absl::StatusOr<size_t> put = stream_->Put(rest);
      if (!put.ok()) return Annotate(put.status(), "send to " + peer_);
      if (*put == 0) return false;
      sent_ += *put;
      bytes_sent_ += *put;
    }
    sent_ = 0;
    return true;
  }

  absl::StatusOr<bool> TryFinish() override {
    finishing_ = true;
    if (!stream_->Closed(ByteStream::kReceiver)) return false;
    if (!stream_->Empty()) {
      return absl::UnavailableError(peer_ + " did not take the whole stream");
    }
    timing_.bytes = bytes_sent_;
    timing_.seconds = Seconds(Clock::System().Now() - begun_);
    return true;
  }

  absl::Status CheckPeer() override {
    if (!stream_->Closed(ByteStream::kReceiver)) return absl::OkStatus();
    return absl::UnavailableError(peer_ + " closed the stream");
  }

  void SendError(const FrameHeader& header, const absl::Status& status, TimePoint) override {
    // In the middle of a frame the receiver could not tell an error from payload.
    if (sent_ != 0 || finishing_) return;
    const std::string frame = EncodeErrorFrame(header, status);
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(frame.data()),
                                         frame.size());
    [[maybe_unused]] const auto put = stream_->Put(bytes);
  }

  pollfd poll_fd() const override {
    if (!stream_->Attached(ByteStream::kReceiver)) return {-1, 0, 0};
    return {stream_->fd(ByteStream::kSender), static_cast<short>(POLLIN | POLLRDHUP), 0};
  }

  uint64_t bytes_sent() const override { return bytes_sent_; }
  LinkTiming timing() const override { return timing_; }

 private:
  bool HavePeer() {
    have_peer_ = have_peer_ || stream_->Attached(ByteStream::kReceiver);
    return have_peer_;
  }

  const std::string peer_;
  const std::shared_ptr<ByteStream> stream_;  // shared with the other end
  bool have_peer_ = false;
  bool finishing_ = false;
  std::array<uint8_t, kFrameHeaderBytes> header_bytes_{};
  size_t sent_ = 0;  // of the frame under way, with its header
  uint64_t bytes_sent_ = 0;
  TimePoint begun_{};
  LinkTiming timing_;
};

}  // namespace

std::unique_ptr<SliceReceiver> MakeFramedReceiver(const HopInput& input,
                                                  std::shared_ptr<ByteStream> stream) {
  return std::make_unique<FramedReceiver>(input, std::move(stream));
}

std::unique_ptr<SliceSender> MakeFramedSender(const HopOutput& output,
                                              std::shared_ptr<ByteStream> stream) {
  return std::make_unique<FramedSender>(output, std::move(stream));
}

}  // namespace ecpipe
