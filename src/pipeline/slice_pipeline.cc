// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slice_pipeline.h"

#include <algorithm>

#include "base/check.h"

namespace ecpipe {

SlicePipeline::SlicePipeline(Shape shape) : shape_(std::move(shape)) {
  ECPIPE_CHECK(shape_.slice_count > 0 && shape_.ring_slots > 0);
  ECPIPE_CHECK(shape_.has_local_block || !shape_.input_rows.empty());
  ECPIPE_CHECK(!shape_.output_rows.empty());
  for (const uint32_t rows : shape_.input_rows) inputs_.push_back({.rows = rows});
  for (const uint32_t rows : shape_.output_rows) outputs_.push_back({.rows = rows});
  for (uint32_t slot = shape_.ring_slots; slot > 0; --slot) free_slots_.push_back(slot - 1);
  slot_of_slice_.assign(shape_.ring_slots, -1);
}

uint32_t SlicePipeline::SlowestOutput() const {
  uint32_t slowest = shape_.slice_count;
  for (const Stream& output : outputs_) slowest = std::min(slowest, output.slices());
  return slowest;
}

uint32_t SlicePipeline::SlotOf(uint32_t ordinal) {
  ECPIPE_CHECK(ordinal >= released_ && ordinal < ReadLimit());
  int32_t& slot = slot_of_slice_[ordinal % shape_.ring_slots];
  if (slot < 0) {
    slot = static_cast<int32_t>(free_slots_.back());
    free_slots_.pop_back();
  }
  return static_cast<uint32_t>(slot);
}

uint32_t SlicePipeline::ReadLimit() const {
  return std::min(shape_.slice_count, released_ + shape_.ring_slots);
}

std::optional<SlicePipeline::Position> SlicePipeline::NextReceive(size_t input) const {
  const Position position = inputs_[input].position();
  if (position.ordinal >= ReadLimit()) return std::nullopt;
  return position;
}

void SlicePipeline::Received(size_t input) {
  ECPIPE_CHECK(NextReceive(input).has_value());
  ++inputs_[input].frames;
}

void SlicePipeline::LocalRead(uint32_t slices) {
  ECPIPE_CHECK(shape_.has_local_block && slices >= local_read_ && slices <= ReadLimit());
  local_read_ = slices;
}

bool SlicePipeline::InputsReady() const {
  // Without inputs the ring is the limit: a slot must be free.
  if (combined_ >= ReadLimit()) return false;
  return std::all_of(inputs_.begin(), inputs_.end(),
                     [&](const Stream& input) { return input.slices() > combined_; });
}

bool SlicePipeline::WaitsForLocal() const {
  return shape_.has_local_block && local_read_ == combined_ && InputsReady();
}

std::optional<uint32_t> SlicePipeline::NextCombine() const {
  if (shape_.has_local_block && local_read_ <= combined_) return std::nullopt;
  if (!InputsReady()) return std::nullopt;
  return combined_;
}

void SlicePipeline::Combined() {
  ECPIPE_CHECK(NextCombine().has_value());
  ++combined_;
}

std::optional<SlicePipeline::Position> SlicePipeline::NextSend(size_t output) const {
  const Position position = outputs_[output].position();
  if (position.ordinal >= combined_) return std::nullopt;
  return position;
}

void SlicePipeline::Sent(size_t output) {
  ECPIPE_CHECK(NextSend(output).has_value());
  ++outputs_[output].frames;
  for (const uint32_t slowest = SlowestOutput(); released_ < slowest; ++released_) {
    int32_t& slot = slot_of_slice_[released_ % shape_.ring_slots];
    if (slot >= 0) free_slots_.push_back(static_cast<uint32_t>(slot));
    slot = -1;
  }
}

bool SlicePipeline::MoreToSend(size_t output) const {
  const Stream& stream = outputs_[output];
  return stream.frames + 1 < uint64_t{combined_} * stream.rows;
}

bool SlicePipeline::OutputDone(size_t output) const {
  return outputs_[output].slices() == shape_.slice_count;
}

bool SlicePipeline::Done() const { return released_ == shape_.slice_count; }

}  // namespace ecpipe
