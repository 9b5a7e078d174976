// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "net/rate_limiter.h"

namespace ecpipe {

// The turns of one stream's frames at the rate limiter, one after the other. A turn that was not
// used is given back. Used by one thread.
class StreamTurn {
 public:
  // `limiter` outlives the turn; null: frames need not wait.
  StreamTurn(RateLimiter* limiter, TrafficClass traffic) : limiter_(limiter), traffic_(traffic) {}
  StreamTurn(StreamTurn&& other) noexcept
      : limiter_(other.limiter_),
        traffic_(other.traffic_),
        turn_(std::exchange(other.turn_, std::nullopt)),
        held_back_(other.held_back_) {}
  StreamTurn& operator=(StreamTurn&&) = delete;
  ~StreamTurn() {
    if (turn_) limiter_->GiveBack(traffic_, *turn_);
  }

  // Whether the next frame may be sent, or received, now; it keeps its place until Passed().
  bool MayPass(uint64_t wire_bytes) {
    if (limiter_ == nullptr) return true;
    if (!turn_) turn_ = limiter_->Queue(traffic_, wire_bytes);
    held_back_ = limiter_->Wait(traffic_, *turn_);
    return held_back_ == Duration(0);
  }
  void Passed() { turn_.reset(); }

  // How long until it is worth asking again; 0: nothing was held back since Forget().
  Duration held_back() const { return held_back_; }
  void Forget() { held_back_ = Duration(0); }
  // Whether the frame that goes now had to wait; then the next one will have to wait as well.
  bool limited() const { return turn_ && turn_->bytes > 0; }

 private:
  RateLimiter* const limiter_;
  const TrafficClass traffic_;
  std::optional<RateLimiter::Turn> turn_;  // of the frame that is to go next
  Duration held_back_{};
};

}  // namespace ecpipe
