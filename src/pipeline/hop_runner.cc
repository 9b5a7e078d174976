// SPDX-License-Identifier: Apache-2.0
#include "pipeline/hop_runner.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/fault_points.h"
#include "base/status.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

size_t SlotBytes(const SliceGrid& grid) {
  return static_cast<size_t>(std::min<uint64_t>(grid.slice_bytes, grid.bytes));
}

// A block that is passed on as it is needs no accumulator: the first hop of a raw stream. Each row
// is then one of the sub-blocks.
bool SendsLocalAsIs(const HopSpec& spec) {
  if (!spec.inputs.empty() || !spec.block) return false;
  const std::vector<uint8_t>& coefficients = spec.block->coefficients;
  const size_t rows = spec.rows.size();
  if (coefficients.size() != rows * rows) return false;
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (coefficients[i] != (i / rows == i % rows ? 1 : 0)) return false;
  }
  return true;
}

// One for each `rows` coefficients.
std::vector<CoefficientColumn> ColumnsOf(std::span<const uint8_t> coefficients, size_t rows) {
  std::vector<CoefficientColumn> columns;
  for (; !coefficients.empty(); coefficients = coefficients.subspan(rows)) {
    columns.emplace_back(coefficients.first(rows));
  }
  return columns;
}

// The input in whose buffers the rows can be summed up; -1 if there is none.
int BaseInput(const HopSpec& spec) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const HopInput& input = spec.inputs[i];
    if (input.coefficients.empty() && input.rows == spec.rows) return static_cast<int>(i);
  }
  return -1;
}

SlicePipeline::Shape PipelineShape(const HopSpec& spec, uint32_t ring_slots) {
  SlicePipeline::Shape shape;
  shape.slice_count = spec.slices.count();
  shape.ring_slots = ring_slots;
  shape.has_local_block = spec.block.has_value();
  for (const HopInput& input : spec.inputs) {
    shape.input_rows.push_back(static_cast<uint32_t>(input.rows.size()));
  }
  for (const HopOutput& output : spec.outputs) {
    shape.output_rows.push_back(static_cast<uint32_t>(output.rows.size()));
  }
  if (!spec.stored_rows.empty()) {
    shape.output_rows.push_back(static_cast<uint32_t>(spec.stored_rows.size()));
  }
  return shape;
}

// What a stream's receiver makes of its error: what the sender says in an error frame, or else that
// it is the sender's fault. What this process lacks is its own fault.
absl::Status WithFaultOfSender(const absl::Status& status, const std::string& sender) {
  if (IsOwnShortage(status)) return WithFault(status, kFaultSelf);
  return WithFault(FromPeer(status, sender), sender);
}

}  // namespace

uint32_t RingSlots(const SliceGrid& grid, uint32_t slice_count, const RingShare& share) {
  // Beyond 64 nothing is won.
  const size_t slots = std::clamp<size_t>(share.bytes / SlotBytes(grid), share.least_slots, 64);
  return std::min(static_cast<uint32_t>(slots), slice_count);
}

uint64_t HopBufferBytes(const SliceGrid& grid, const HopSpec& spec, const RingShare& share) {
  uint64_t rings = spec.block ? spec.block->sub_blocks.size() : 0;
  for (const HopInput& input : spec.inputs) rings += input.rows.size();
  if (BaseInput(spec) < 0 && !SendsLocalAsIs(spec)) rings += spec.rows.size();
  return rings * SlotBytes(grid) * RingSlots(grid, spec.slices.count(), share);
}

HopRunner::HopRunner(const Context& context, const HopSpec& spec)
    : context_(context),
      spec_(spec),
      ring_slots_(RingSlots(context.part->grid, spec.slices.count(), context.ring)),
      slot_bytes_(SlotBytes(context.part->grid)),
      pipeline_(PipelineShape(spec, ring_slots_)) {}

absl::StatusOr<std::unique_ptr<HopRunner>> HopRunner::Create(const Context& context,
                                                             const HopSpec& spec,
                                                             std::unique_ptr<BlockReader> block) {
  ECPIPE_CHECK((block != nullptr) == spec.block.has_value());
  ECPIPE_CHECK(spec.stored_rows.empty() || context.sink != nullptr);
  std::unique_ptr<HopRunner> runner(new HopRunner(context, spec));
  runner->ChooseAccumulators();
  // Outputs first: a receiver may dial at any time from now on.
  ECPIPE_RETURN_IF_ERROR(runner->OpenOutputs());
  ECPIPE_RETURN_IF_ERROR(runner->OpenInputs());
  if (block != nullptr) {
    runner->local_columns_ = ColumnsOf(spec.block->coefficients, spec.rows.size());
    runner->local_ = std::make_unique<LocalReader>(
        std::move(block),
        LocalReader::Options{.grid = context.part->grid,
                             .slices = spec.slices,
                             .layout = context.part->layout,
                             .sub_blocks = spec.block->sub_blocks,
                             .ring_slots = runner->ring_slots_,
                             .slots = runner->local_is_row_
                                          ? LocalReader::Slots::kHeldUntilSent
                                          : LocalReader::Slots::kFreeOnceCombined},
        context.wakeup, context.read_thread);
    runner->local_->Allow(runner->pipeline_.ReadLimit());
  }
  return runner;
}

void HopRunner::ChooseAccumulators() {
  base_input_ = BaseInput(spec_);
  local_is_row_ = SendsLocalAsIs(spec_);
  if (base_input_ < 0 && !local_is_row_) {
    rows_ring_ = AlignedBuffer(spec_.rows.size() * ring_slots_ * slot_bytes_);
  }
}

std::vector<size_t> HopRunner::RowIndices(const std::vector<Row>& rows) const {
  std::vector<size_t> indices;
  for (const Row row : rows) {
    const auto found = std::find(spec_.rows.begin(), spec_.rows.end(), row);
    indices.push_back(static_cast<size_t>(found - spec_.rows.begin()));
  }
  return indices;
}

absl::Status HopRunner::OpenInputs() {
  for (const HopInput& spec : spec_.inputs) {
    Input& input = inputs_.emplace_back(FirstTurn(context_.receive_limiter));
    const StreamShape shape{uint64_t{spec_.slices.count()} * spec.rows.size(),
                            static_cast<uint32_t>(slot_bytes_)};
    absl::StatusOr<std::unique_ptr<SliceReceiver>> receiver =
        context_.transport->Connect(spec, shape);
    if (!receiver.ok()) return WithFaultOfSender(receiver.status(), spec.node);
    input.receiver = *std::move(receiver);
    input.columns = ColumnsOf(spec.coefficients, spec_.rows.size());
    if (input.columns.empty()) input.targets = RowIndices(spec.rows);
    input.ring = AlignedBuffer(spec.rows.size() * ring_slots_ * slot_bytes_);
  }
  return absl::OkStatus();
}

StreamTurn HopRunner::FirstTurn(RateLimiter* limiter) const {
  const bool background = context_.part->background;
  return {limiter, background ? TrafficClass::kBackground : TrafficClass::kForeground};
}

absl::Status HopRunner::OpenOutputs() {
  for (const HopOutput& spec : spec_.outputs) {
    Output& output = outputs_.emplace_back(FirstTurn(context_.send_limiter));
    const StreamShape shape{uint64_t{spec_.slices.count()} * spec.rows.size(),
                            static_cast<uint32_t>(slot_bytes_)};
    ECPIPE_ASSIGN_OR_RETURN(output.sender, context_.transport->Offer(spec, shape, context_.wakeup));
    output.sources = RowIndices(spec.rows);
  }
  if (!spec_.stored_rows.empty()) {
    Output& output = outputs_.emplace_back(FirstTurn(context_.send_limiter));
    output.is_sink = true;
    output.sources = RowIndices(spec_.stored_rows);
  }
  return absl::OkStatus();
}

FrameHeader HopRunner::Header(Row row, uint32_t slice_index) const {
  FrameHeader header;
  header.row = row;
  header.repair_id = context_.part->repair_id;
  header.attempt = context_.part->attempt;
  header.lane = spec_.lane;
  header.slice_index = slice_index;
  header.payload_bytes = context_.part->grid.SliceBytes(slice_index);
  return header;
}

uint8_t* HopRunner::InputSlice(Input& input, uint32_t ordinal, size_t row_index) {
  return input.ring.data() + (row_index * ring_slots_ + pipeline_.SlotOf(ordinal)) * slot_bytes_;
}

uint8_t* HopRunner::Accumulator(uint32_t ordinal, size_t row_index) {
  if (base_input_ >= 0) return InputSlice(inputs_[base_input_], ordinal, row_index);
  if (local_is_row_) return local_->Slice(ordinal, row_index);
  return rows_ring_.data() + (row_index * ring_slots_ + pipeline_.SlotOf(ordinal)) * slot_bytes_;
}

absl::StatusOr<bool> HopRunner::Step(uint32_t send_limit) {
  send_limit_ = send_limit;
  for (Input& input : inputs_) {
    input.drained = false;
    input.turn.Forget();
  }
  for (Output& output : outputs_) {
    output.full = false;
    output.turn.Forget();
  }
  // Where frames come faster than they are dealt with, the part's loop must come round all the
  // same: to see that it is cancelled, and to tell how far it is.
  constexpr int kRoundsATime = 16;
  bool moved = false;
  bool again = true;
  for (int round = 0; again && round < kRoundsATime; ++round) {
    const absl::StatusOr<bool> received = ReceiveSome();
    if (!received.ok()) {
      // What came before is passed on, so that the next attempt need not bring it again.
      if (CombineSome().ok()) (void)SendSome();
      return received.status();
    }
    ECPIPE_ASSIGN_OR_RETURN(const bool combined, CombineSome());
    ECPIPE_ASSIGN_OR_RETURN(const bool sent, SendSome());
    again = *received || combined || sent;
    moved |= again;
  }
  return moved;
}

// A few frames of each input: enough to pass several on in one go when they have come together, and
// few enough that passing on does not wait for long.
absl::StatusOr<bool> HopRunner::ReceiveSome() {
  constexpr int kFramesATime = 4;
  bool moved = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    for (int frames = 0; frames < kFramesATime; ++frames) {
      ECPIPE_ASSIGN_OR_RETURN(const bool received, ReceiveNext(i));
      if (!received) break;
      moved = true;
    }
  }
  return moved;
}

absl::StatusOr<bool> HopRunner::ReceiveNext(size_t index) {
  Input& input = inputs_[index];
  const HopInput& spec = spec_.inputs[index];
  const auto next = pipeline_.NextReceive(index);
  if (!next || input.receiver == nullptr || input.drained) return false;
  const FrameHeader expected =
      Header(spec.rows[next->row_index], spec_.slices.SliceIndex(next->ordinal));
  if (!input.turn.MayPass(kFrameHeaderBytes + expected.payload_bytes)) {
    input.drained = true;
    return false;
  }
  const absl::StatusOr<bool> complete = input.receiver->TryReceive(
      expected, {InputSlice(input, next->ordinal, next->row_index), expected.payload_bytes});
  if (!complete.ok()) return WithFaultOfSender(complete.status(), spec.node);
  if (!*complete) {
    input.drained = true;
    return false;
  }
  input.turn.Passed();
  pipeline_.Received(index);
  const bool last =
      next->ordinal + 1 == spec_.slices.count() && next->row_index + 1 == spec.rows.size();
  if (last) {
    // Closing tells the sender that everything has arrived, so that it can end.
    input.closed_bytes = input.receiver->bytes_received();
    input.receiver.reset();
  }
  return true;
}

absl::Status HopRunner::TakeLocalSlices() {
  absl::StatusOr<uint32_t> read = local_->Progress(local_seen_);
  if (!read.ok()) return OfLocalBlock(read.status());
  for (; local_seen_ < *read; ++local_seen_) {
    block_bytes_read_ += spec_.block->sub_blocks.size() *
                         context_.part->grid.SliceBytes(spec_.slices.SliceIndex(local_seen_));
  }
  pipeline_.LocalRead(local_seen_);
  return absl::OkStatus();
}

absl::Status HopRunner::OfLocalBlock(const absl::Status& failure) const {
  if (failure.ok()) return failure;
  return WithFault(Annotate(failure, "read block " + spec_.block->block_id), kFaultSelf);
}

absl::StatusOr<bool> HopRunner::CombineSome() {
  bool moved = false;
  if (local_ != nullptr) local_->Allow(pipeline_.ReadLimit());
  // The first one is read before it is needed, so that the disks of all hops seek together and not
  // in turn.
  if (local_ != nullptr && !asked_disk_) {
    asked_disk_ = true;
    ECPIPE_RETURN_IF_ERROR(TakeLocalSlices());
  }
  // A disk that has failed is told at once, not when the streams have come that far: others are
  // asked in its place meanwhile.
  if (local_ != nullptr) ECPIPE_RETURN_IF_ERROR(OfLocalBlock(local_->failure()));
  while (true) {
    // A local slice is read when the streams have brought theirs: its bytes are used at once.
    if (pipeline_.WaitsForLocal()) ECPIPE_RETURN_IF_ERROR(TakeLocalSlices());
    const auto ordinal = pipeline_.NextCombine();
    if (!ordinal) return moved;
    Combine(*ordinal);
    pipeline_.Combined();
    moved = true;
  }
}

void HopRunner::Combine(uint32_t ordinal) {
  if (local_is_row_) return;
  const size_t bytes = context_.part->grid.SliceBytes(spec_.slices.SliceIndex(ordinal));
  std::array<uint8_t*, kMaxRows> row_pointers;
  const std::span<uint8_t* const> rows(row_pointers.data(), spec_.rows.size());
  for (size_t r = 0; r < spec_.rows.size(); ++r) row_pointers[r] = Accumulator(ordinal, r);

  bool started = base_input_ >= 0;
  const auto add_raw = [&](const CoefficientColumn& column, const uint8_t* source) {
    if (started) {
      column.MultiplyAdd(rows, source, bytes);
    } else {
      column.Multiply(rows, source, bytes);
    }
    started = true;
  };
  for (size_t i = 0; i < local_columns_.size(); ++i) {
    add_raw(local_columns_[i], local_->Slice(ordinal, i));
  }
  for (Input& input : inputs_) {
    for (size_t i = 0; i < input.columns.size(); ++i) {
      add_raw(input.columns[i], InputSlice(input, ordinal, i));
    }
  }
  if (!started) {
    for (uint8_t* row : rows) std::memset(row, 0, bytes);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    if (!input.columns.empty() || static_cast<int>(i) == base_input_) continue;
    for (size_t r = 0; r < input.targets.size(); ++r) {
      Xor(rows[input.targets[r]], InputSlice(input, ordinal, r), bytes);
    }
  }
}

uint32_t HopRunner::FirstUnsent() const {
  if (pipeline_.Done()) return std::numeric_limits<uint32_t>::max();
  return spec_.slices.SliceIndex(pipeline_.released());
}

std::optional<SlicePipeline::Position> HopRunner::NextSend(size_t index) const {
  const auto next = pipeline_.NextSend(index);
  if (!next || spec_.slices.SliceIndex(next->ordinal) >= send_limit_) return std::nullopt;
  return next;
}

bool HopRunner::SendsMoreAfter(size_t index, SlicePipeline::Position position) const {
  if (!pipeline_.MoreToSend(index)) return false;
  if (position.row_index + 1 < outputs_[index].sources.size()) return true;
  return spec_.slices.SliceIndex(position.ordinal + 1) < send_limit_;
}

absl::StatusOr<bool> HopRunner::SendSome() {
  bool moved = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    while (!outputs_[i].full && NextSend(i)) {
      ECPIPE_ASSIGN_OR_RETURN(const bool sent, SendNext(i));
      if (!sent) {
        outputs_[i].full = true;
        break;
      }
      pipeline_.Sent(i);
      moved = true;
    }
    if (pipeline_.OutputDone(i) && !outputs_[i].finished) {
      ECPIPE_ASSIGN_OR_RETURN(const bool finished, Finish(i));
      moved |= finished;
    }
  }
  return moved;
}

absl::StatusOr<bool> HopRunner::SendNext(size_t index) {
  Output& output = outputs_[index];
  const SlicePipeline::Position next = *NextSend(index);
  const uint32_t slice_index = spec_.slices.SliceIndex(next.ordinal);
  const size_t source = output.sources[next.row_index];
  const FrameHeader header = Header(spec_.rows[source], slice_index);
  const std::span<const uint8_t> bytes(Accumulator(next.ordinal, source), header.payload_bytes);
  if (!output.is_sink) {
    if (!output.turn.MayPass(kFrameHeaderBytes + header.payload_bytes)) return false;
    ECPIPE_RETURN_IF_ERROR(FaultPoint("hop.send_slice"));
    // A frame that may have to wait for its turn cannot share packets with the one before it.
    const bool more = !output.turn.limited() && SendsMoreAfter(index, next);
    const auto after = more ? SliceSender::Next::kFrame : SliceSender::Next::kUnknown;
    ECPIPE_ASSIGN_OR_RETURN(const bool sent, output.sender->TrySend(header, bytes, after));
    if (sent) output.turn.Passed();
    return sent;
  }
  if (!context_.sink->Ready(header.row, slice_index)) return false;
  ECPIPE_RETURN_IF_ERROR(
      WithFault(context_.sink->Write(header.row, slice_index, bytes), kFaultSelf));
  return true;
}

std::optional<Duration> HopRunner::HeldBackFor() const {
  std::optional<Duration> shortest;
  const auto add = [&shortest](Duration time) {
    if (time > Duration(0)) shortest = std::min(shortest.value_or(time), time);
  };
  for (const Input& input : inputs_) add(input.turn.held_back());
  for (const Output& output : outputs_) add(output.turn.held_back());
  return shortest;
}

bool HopRunner::WaitsToReceive(size_t index) const {
  return inputs_[index].receiver != nullptr && pipeline_.NextReceive(index).has_value() &&
         inputs_[index].turn.held_back() == Duration(0);
}

bool HopRunner::WaitsToSend(size_t index) const {
  if (pipeline_.OutputDone(index)) return true;
  return NextSend(index).has_value() && outputs_[index].turn.held_back() == Duration(0);
}

absl::StatusOr<bool> HopRunner::Finish(size_t index) {
  Output& output = outputs_[index];
  if (!output.is_sink) {
    ECPIPE_ASSIGN_OR_RETURN(const bool taken, output.sender->TryFinish());
    if (!taken) return false;
    if (spec_.outputs[index].measured) {
      link_timings_.push_back(output.sender->timing());
      link_timings_.back().to = spec_.outputs[index].node;
    }
    output.closed_bytes = output.sender->bytes_sent();
    output.sender.reset();
  }
  output.finished = true;
  return true;
}

bool HopRunner::Done() const {
  return std::all_of(outputs_.begin(), outputs_.end(),
                     [](const Output& output) { return output.finished; });
}

void HopRunner::AddPollFds(std::vector<pollfd>* fds) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (WaitsToReceive(i)) fds->push_back(inputs_[i].receiver->poll_fd());
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].sender == nullptr) continue;
    pollfd polled = outputs_[i].sender->poll_fd();
    if (!WaitsToSend(i)) polled.events = POLLRDHUP;  // only whether the receiver leaves
    fds->push_back(polled);
  }
}

absl::Status HopRunner::CheckOutputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].sender == nullptr || pipeline_.OutputDone(i)) continue;
    ECPIPE_RETURN_IF_ERROR(outputs_[i].sender->CheckPeer());
  }
  return absl::OkStatus();
}

void HopRunner::SendError(const absl::Status& status, TimePoint deadline) {
  const FrameHeader stream = Header(0, spec_.slices.SliceIndex(0));
  for (Output& output : outputs_) {
    if (output.sender != nullptr) output.sender->SendError(stream, status, deadline);
  }
}

}  // namespace ecpipe
