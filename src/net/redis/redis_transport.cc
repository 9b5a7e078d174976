// SPDX-License-Identifier: Apache-2.0
#include "net/redis/redis_transport.h"

#include <atomic>
#include <charconv>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>

#include "base/bytes/crc32c.h"
#include "base/bytes/hex.h"
#include "base/simulator.h"
#include "base/status.h"
#include "net/redis/redis_connection.h"

namespace ecpipe {
namespace {

// Frames that a sender may have in redis and the receiver has not acknowledged.
constexpr uint64_t kWindowFrames = 32;
// The receiver acknowledges in steps of this many frames.
constexpr uint64_t kCreditStep = kWindowFrames / 4;
// Pops that a receiver keeps under way, to hide the round trip.
constexpr size_t kPopsUnderWay = 4;

std::string KeyOf(const EdgeId& edge, const EdgeToken& token) {
  return "ecpipe:" + RepairIdText(edge.repair_id) + ":" + std::to_string(edge.attempt) + ":" +
         std::to_string(edge.lane) + ":" + std::to_string(edge.from_hop) + ":" +
         std::to_string(edge.output) + ":" + HexText(token);
}

std::string MillisText(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

class RedisReceiver : public SliceReceiver {
 public:
  RedisReceiver(const HopInput& input, const StreamShape& shape, Duration expiry,
                std::unique_ptr<RedisConnection> redis)
      : peer_("node " + input.node + " (redis at " + input.address + ")"),
        key_(KeyOf(input.edge, input.token)),
        expiry_ms_(MillisText(expiry)),
        frame_count_(shape.frame_count),
        redis_(std::move(redis)) {}

  absl::StatusOr<bool> TryReceive(const FrameHeader& expected,
                                  std::span<uint8_t> payload) override {
    absl::StatusOr<bool> complete = Receive(expected, payload);
    if (!complete.ok()) return AnnotatePeer(complete.status(), "receive from " + peer_);
    return complete;
  }
  pollfd poll_fd() const override { return redis_->poll_fd(); }
  uint64_t bytes_received() const override { return redis_->bytes_read(); }

 private:
  absl::StatusOr<bool> Receive(const FrameHeader& expected, std::span<uint8_t> payload) {
    // Never ask for more frames than the stream has: a pop left waiting would take from nobody.
    while (pops_.size() < kPopsUnderWay && asked_ < frame_count_) {
      ECPIPE_RETURN_IF_ERROR(redis_->Append({"BLPOP", key_, "0"}));
      pops_.push_back(true);
      ++asked_;
    }
    while (true) {
      ECPIPE_ASSIGN_OR_RETURN(const RedisAnswer answer, redis_->TryAnswer());
      if (!answer.has_come()) return false;
      const bool is_frame = pops_.front();
      pops_.pop_front();
      if (!is_frame) continue;  // the answer to a credit
      ECPIPE_RETURN_IF_ERROR(TakeFrame(answer, expected, payload));
      ECPIPE_RETURN_IF_ERROR(Acknowledge());
      return true;
    }
  }

  static absl::Status TakeFrame(const RedisAnswer& answer, const FrameHeader& expected,
                                std::span<uint8_t> payload) {
    ECPIPE_ASSIGN_OR_RETURN(const std::string_view popped, answer.Popped());
    const std::span<const uint8_t> frame(reinterpret_cast<const uint8_t*>(popped.data()),
                                         popped.size());
    if (frame.size() < kFrameHeaderBytes) {
      return absl::DataLossError("frame refused: it is shorter than a header");
    }
    ECPIPE_ASSIGN_OR_RETURN(const FrameHeader header,
                            DecodeFrameHeader(frame.first<kFrameHeaderBytes>()));
    const std::span<const uint8_t> body = frame.subspan(kFrameHeaderBytes);
    if (body.size() != header.payload_bytes) {
      return absl::DataLossError("frame refused: its length differs from what its header says");
    }
    ECPIPE_RETURN_IF_ERROR(CheckExpected(header, expected));
    ECPIPE_RETURN_IF_ERROR(CheckPayload(header, body));
    if (header.type == FrameType::kError) return ErrorFromFrame(header, body);
    std::memcpy(payload.data(), body.data(), body.size());
    return absl::OkStatus();
  }

  // The sender takes every credit, the last one included, so none stays behind.
  absl::Status Acknowledge() {
    ++taken_;
    if (taken_ % kCreditStep != 0 && taken_ != frame_count_) return absl::OkStatus();
    const std::string credit = key_ + ":credit";
    ECPIPE_RETURN_IF_ERROR(redis_->Push(credit, std::to_string(taken_), expiry_ms_));
    pops_.push_back(false);
    return absl::OkStatus();
  }

  const std::string peer_;
  const std::string key_;
  const std::string expiry_ms_;
  const uint64_t frame_count_;
  const std::unique_ptr<RedisConnection> redis_;
  std::deque<bool> pops_;  // commands without a reply yet, oldest first: is it a pop of a frame?
  uint64_t asked_ = 0;     // frames asked for
  uint64_t taken_ = 0;     // frames received
};

class RedisSender : public SliceSender {
 public:
  RedisSender(const HopOutput& output, Duration expiry, std::unique_ptr<RedisConnection> data,
              std::unique_ptr<RedisConnection> credits)
      : key_(KeyOf(output.edge, output.token)),
        expiry_ms_(MillisText(expiry)),
        data_(std::move(data)),
        credits_(std::move(credits)) {}

  // Frames that no receiver will take any more do not wait for their expiry. An error frame does:
  // it is for the receiver to find.
  ~RedisSender() override {
    if (credited_ == sent_ || failed_) return;
    [[maybe_unused]] const absl::Status ignored = data_->Append({"DEL", key_, key_ + ":credit"});
  }

  absl::StatusOr<bool> TrySend(const FrameHeader& header, std::span<const uint8_t> payload,
                               Next) override {
    ECPIPE_ASSIGN_OR_RETURN(const bool window_open, WindowOpen());
    if (!window_open) return false;
    FrameHeader sealed = header;
    sealed.payload_crc32c = Crc32c(payload);
    frame_.resize(kFrameHeaderBytes + payload.size());
    auto* bytes = reinterpret_cast<uint8_t*>(frame_.data());
    EncodeFrameHeader(sealed, std::span<uint8_t, kFrameHeaderBytes>(bytes, kFrameHeaderBytes));
    std::memcpy(bytes + kFrameHeaderBytes, payload.data(), payload.size());
    ECPIPE_RETURN_IF_ERROR(data_->Push(key_, frame_, expiry_ms_));
    ++replies_due_;
    ++sent_;
    bytes_sent_ += frame_.size();
    return true;
  }

  // Done when the receiver has acknowledged every frame.
  absl::StatusOr<bool> TryFinish() override {
    ECPIPE_RETURN_IF_ERROR(TakeReplies());
    while (credited_ < sent_) {
      ECPIPE_ASSIGN_OR_RETURN(const bool moved, TakeCredit());
      if (!moved) return false;
    }
    return true;
  }

  // A redis receiver that dies closes nothing here; the stall timeout notices it.
  absl::Status CheckPeer() override { return TakeReplies(); }

  void SendError(const FrameHeader& stream, const absl::Status& status, TimePoint) override {
    failed_ = true;
    [[maybe_unused]] const absl::Status ignored =
        data_->Push(key_, EncodeErrorFrame(stream, status), expiry_ms_);
  }

  pollfd poll_fd() const override {
    const bool for_credit = waiting_for_credit_ && data_->all_written();
    return for_credit ? credits_->poll_fd() : data_->poll_fd();
  }
  uint64_t bytes_sent() const override { return bytes_sent_; }
  // Which of the two links, to the server or from it, was the slow one cannot be told.
  LinkTiming timing() const override { return {}; }

 private:
  absl::StatusOr<bool> WindowOpen() {
    ECPIPE_RETURN_IF_ERROR(TakeReplies());
    // What has not been written to redis yet is memory of ours: hold it within the window, too.
    if (replies_due_ > kWindowFrames) return false;
    if (sent_ - credited_ < kWindowFrames) return true;
    return TakeCredit();
  }

  // False when none has come yet.
  absl::StatusOr<bool> TakeCredit() {
    if (!credit_asked_) {
      ECPIPE_RETURN_IF_ERROR(credits_->Append({"BLPOP", key_ + ":credit", "0"}));
      credit_asked_ = true;
    }
    ECPIPE_ASSIGN_OR_RETURN(const RedisAnswer answer, credits_->TryAnswer());
    waiting_for_credit_ = !answer.has_come();
    if (waiting_for_credit_) return false;
    credit_asked_ = false;
    ECPIPE_ASSIGN_OR_RETURN(const std::string_view text, answer.Popped());
    uint64_t taken = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), taken);
    if (parsed.ec != std::errc() || taken <= credited_ || taken > sent_) {
      return absl::DataLossError("redis: the receiver acknowledged frames that were never sent");
    }
    credited_ = taken;
    return true;
  }

  absl::Status TakeReplies() {
    while (replies_due_ > 0) {
      ECPIPE_ASSIGN_OR_RETURN(const RedisAnswer answer, data_->TryAnswer());
      if (!answer.has_come()) break;
      --replies_due_;
    }
    return absl::OkStatus();
  }

  const std::string key_;
  const std::string expiry_ms_;
  const std::unique_ptr<RedisConnection> data_;
  const std::unique_ptr<RedisConnection> credits_;
  std::string frame_;
  uint64_t sent_ = 0;         // frames
  uint64_t credited_ = 0;     // frames that the receiver has taken
  uint64_t replies_due_ = 0;  // commands on data_ without a reply yet
  bool credit_asked_ = false;
  bool waiting_for_credit_ = false;
  bool failed_ = false;
  uint64_t bytes_sent_ = 0;
};

class RedisTransport : public Transport {
 public:
  explicit RedisTransport(RedisOptions options) : options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput& input,
                                                         const StreamShape& shape) override {
    ECPIPE_ASSIGN_OR_RETURN(auto redis, Open(input.address));
    return std::make_unique<RedisReceiver>(input, shape, options_.expiry, std::move(redis));
  }

  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput& output, const StreamShape&,
                                                     std::shared_ptr<Wakeup>) override {
    if (options_.own_address.empty()) {
      return absl::FailedPreconditionError(
          "this process has no redis-server configured; set [redis] address, or use transport tcp");
    }
    ECPIPE_RETURN_IF_ERROR(CheckOwn());
    ECPIPE_ASSIGN_OR_RETURN(auto data, Open(options_.own_address));
    ECPIPE_ASSIGN_OR_RETURN(auto credits, Open(options_.own_address));
    return std::make_unique<RedisSender>(output, options_.expiry, std::move(data),
                                         std::move(credits));
  }

 private:
  absl::StatusOr<std::unique_ptr<RedisConnection>> Open(const std::string& address) const {
    return RedisConnection::Open(address, options_.password_file);
  }

  absl::Status CheckOwn() {
    constexpr Duration kAskAgain = std::chrono::seconds(1);
    const TimePoint start = Clock::System().Now();
    if (options_.own_patience == Duration(0) || start < good_until_.load()) return absl::OkStatus();
    ECPIPE_ASSIGN_OR_RETURN(const auto redis, Open(options_.own_address));
    ECPIPE_RETURN_IF_ERROR(redis->Append({"PING"}));
    for (Duration left = options_.own_patience; left > Duration(0);
         left = start + options_.own_patience - Clock::System().Now()) {
      ECPIPE_ASSIGN_OR_RETURN(const RedisAnswer answer, redis->TryAnswer());
      if (answer.has_come()) {
        good_until_ = start + kAskAgain;
        return absl::OkStatus();
      }
      pollfd polled = redis->poll_fd();
      Poll({&polled, 1}, left);
    }
    return absl::UnavailableError("redis at " + options_.own_address + " does not answer");
  }

  const RedisOptions options_;
  std::atomic<TimePoint> good_until_{TimePoint()};  // our server has answered
};

}  // namespace

std::unique_ptr<Transport> MakeRedisTransport(RedisOptions options) {
  return std::make_unique<RedisTransport>(std::move(options));
}

}  // namespace ecpipe
