// SPDX-License-Identifier: Apache-2.0
// What a sender of frames does, right and wrong, as a fuzzer's bytes tell it: shared by the targets
// of the two transports.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "net/frame.h"
#include "unit/net/raw_peer.h"

namespace ecpipe {

// The stream that the receiver expects: frame i is slice i, of 1 to 255 bytes.
class FuzzStream {
 public:
  explicit FuzzStream(FuzzInput* input)
      : input_(input), payload_bytes_(1u + input->Take<uint8_t>() % 255) {
    frame_count_ = 1u + input->Take<uint8_t>() % 24;
  }

  uint32_t frame_count() const { return frame_count_; }
  uint32_t payload_bytes() const { return payload_bytes_; }

  FrameHeader Expected(uint32_t slice) const {
    FrameHeader header;
    header.repair_id = 0x0123456789abcdef;
    header.attempt = 2;
    header.lane = 1;
    header.slice_index = slice;
    header.payload_bytes = payload_bytes_;
    return header;
  }

  // The next piece of what the sender sends: a good frame, one that is wrong in some way, or any
  // bytes.
  std::vector<uint8_t> NextPiece() {
    switch (input_->Take<uint8_t>() % 5) {
      case 0:
        return Good();
      case 1: {  // one bit is flipped on the way
        std::vector<uint8_t> frame = Good();
        const auto bit = input_->Take<uint16_t>() % (8 * frame.size());
        frame[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
        return frame;
      }
      case 2:
        return Odd();
      case 3: {  // the sender gives up
        const auto code = static_cast<absl::StatusCode>(1 + input_->Take<uint8_t>() % 16);
        const std::string frame = EncodeErrorFrame(Expected(0), absl::Status(code, Short()));
        return {frame.begin(), frame.end()};
      }
      default: {
        const std::string bytes = Short();
        return {bytes.begin(), bytes.end()};
      }
    }
  }

  // Whether some whole frame with this payload was sent for the slice. What a receiver takes must
  // be one of these.
  bool WasSent(uint32_t slice, std::span<const uint8_t> payload) const {
    return sent_.count({slice, {payload.begin(), payload.end()}}) != 0;
  }

 private:
  std::vector<uint8_t> Good() {
    const uint32_t slice = next_++;
    const std::vector<uint8_t> payload(payload_bytes_, static_cast<uint8_t>(slice * 7 + 1));
    sent_.insert({slice, payload});
    return FrameBytes(Expected(slice), payload);
  }

  // A whole frame with right checksums that need not be the expected one.
  std::vector<uint8_t> Odd() {
    FrameHeader header = Expected(next_);
    switch (input_->Take<uint8_t>() % 7) {
      case 0:
        header.repair_id = input_->Take<uint64_t>();
        break;
      case 1:
        header.attempt = input_->Take<uint32_t>();
        break;
      case 2:
        header.lane = input_->Take<uint32_t>();
        break;
      case 3:
        header.slice_index = input_->Take<uint32_t>();
        break;
      case 4:
        header.row = input_->Take<uint16_t>();
        break;
      case 5:
        header.type = static_cast<FrameType>(input_->Take<uint8_t>());
        break;
      default:
        header.payload_bytes = input_->Take<uint32_t>();
        break;
    }
    const std::string text = Short();
    const std::vector<uint8_t> payload(text.begin(), text.end());
    sent_.insert({header.slice_index, payload});
    return FrameBytes(header, payload);
  }

  std::string Short() {
    const std::span<const uint8_t> bytes = input_->Bytes(input_->Take<uint8_t>());
    return {bytes.begin(), bytes.end()};
  }

  FuzzInput* const input_;
  const uint32_t payload_bytes_;
  uint32_t frame_count_ = 0;
  uint32_t next_ = 0;
  std::set<std::pair<uint32_t, std::vector<uint8_t>>> sent_;
};

}  // namespace ecpipe
