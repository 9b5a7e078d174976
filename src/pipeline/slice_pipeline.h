// SPDX-License-Identifier: Apache-2.0
// The state of one hop's pipeline: which slice may be read, received, combined and sent next. It is
// pure: no buffers, sockets or time. The engine asks what is possible, does it, and reports it.
//
// All streams of a lane carry its slices in one order, so the state of a stream is one position.
// Slices live in a ring of `ring_slots`; a slot is free again when every output has sent its slice.
// Invariants: combined <= every input position (in whole slices) <= released + ring_slots, and
// every output position <= combined.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ecpipe {

class SlicePipeline {
 public:
  struct Shape {
    uint32_t slice_count = 0;
    uint32_t ring_slots = 0;
    bool has_local_block = false;
    std::vector<uint32_t> input_rows;   // for each input stream: frames of a slice
    std::vector<uint32_t> output_rows;  // for each output, sinks included: frames of a slice
  };

  // A frame of a stream: which slice, in the lane's order, and which of the stream's rows.
  struct Position {
    uint32_t ordinal = 0;
    uint32_t row_index = 0;

    friend bool operator==(const Position&, const Position&) = default;
  };

  explicit SlicePipeline(Shape shape);

  // The frame that input `input` must bring next; nothing if it has brought all, or the ring is
  // full.
  std::optional<Position> NextReceive(size_t input) const;
  void Received(size_t input);

  // Slices below this may be read from the local block: their slots are free.
  uint32_t ReadLimit() const;
  // The local block has been read up to here (monotonic, at most ReadLimit()).
  void LocalRead(uint32_t slices);
  // Whether the next slice to combine lacks only the bytes of the local block.
  bool WaitsForLocal() const;

  // The slice whose inputs are all there, if it has not been combined yet.
  std::optional<uint32_t> NextCombine() const;
  void Combined();

  // The frame that output `output` must send next; nothing when no combined slice waits for it.
  std::optional<Position> NextSend(size_t output) const;
  void Sent(size_t output);
  // Whether another frame is ready behind the one that NextSend names.
  bool MoreToSend(size_t output) const;
  bool OutputDone(size_t output) const;

  // Slices that every output has sent.
  uint32_t released() const { return released_; }
  bool Done() const;
  // The slot of the ring that holds a slice. The slot that became free last is given first, because
  // its bytes are the likeliest to be in the cache. For slices below ReadLimit() that some output
  // has not sent yet.
  uint32_t SlotOf(uint32_t ordinal);

 private:
  // Progress of one stream, in frames: ordinal * rows + row_index.
  struct Stream {
    uint32_t rows = 1;
    uint64_t frames = 0;
    uint32_t slices() const { return static_cast<uint32_t>(frames / rows); }
    Position position() const { return {slices(), static_cast<uint32_t>(frames % rows)}; }
  };

  uint32_t SlowestOutput() const;
  bool InputsReady() const;

  const Shape shape_;
  std::vector<Stream> inputs_;
  std::vector<Stream> outputs_;
  uint32_t local_read_ = 0;
  uint32_t combined_ = 0;
  uint32_t released_ = 0;
  std::vector<uint32_t> free_slots_;    // the next one to give is at the back
  std::vector<int32_t> slot_of_slice_;  // by ordinal % ring_slots; -1: none given yet
};

}  // namespace ecpipe
