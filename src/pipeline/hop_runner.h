// SPDX-License-Identifier: Apache-2.0
// Runs one hop: moves slices from its local block and its input streams through the accumulators to
// its outputs. It knows no scheme and does what the HopSpec says.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes/aligned_buffer.h"
#include "codec/kernel.h"
#include "model/plan/part_progress.h"
#include "model/plan/repair_plan.h"
#include "net/rate_limiter.h"
#include "net/transport.h"
#include "pipeline/block_reader.h"
#include "pipeline/local_reader.h"
#include "pipeline/read_thread.h"
#include "pipeline/slice_pipeline.h"
#include "pipeline/slice_sink.h"
#include "pipeline/stream_turn.h"

namespace ecpipe {

// What each ring of a hop may take.
struct RingShare {
  size_t bytes = 0;
  uint32_t least_slots = 2;  // however large slices are
};

// Slots of each ring of a hop: enough to overlap reading, receiving and sending, within a fixed
// amount of memory for slices of the usual size.
uint32_t RingSlots(const SliceGrid& grid, uint32_t slice_count, const RingShare& share);

// The memory for slice buffers that a hop will take. For limits, before the hop is made.
uint64_t HopBufferBytes(const SliceGrid& grid, const HopSpec& spec, const RingShare& share);

// Used only by the thread of the part.
class HopRunner {
 public:
  struct Context {
    const RepairPart* part = nullptr;  // valid, and outlives the runner
    Transport* transport = nullptr;    // outlives the runner
    SliceSink* sink = nullptr;         // outlives the runner; may be null when no hop stores rows
    std::shared_ptr<Wakeup> wakeup;
    std::shared_ptr<ReadThread> read_thread;
    RingShare ring;
    // Of what is sent, and of what is received. They outlive the runner; null: not limited.
    RateLimiter* send_limiter = nullptr;
    RateLimiter* receive_limiter = nullptr;
  };

  // Opens the hop's streams and starts to read its block (`block` is null for a hop without one).
  static absl::StatusOr<std::unique_ptr<HopRunner>> Create(const Context& context,
                                                           const HopSpec& spec,
                                                           std::unique_ptr<BlockReader> block);

  // Moves slices as far as that is possible without blocking, and sends no slice whose index is
  // `send_limit` or more. Returns whether anything moved.
  absl::StatusOr<bool> Step(uint32_t send_limit);
  // How long a rate limit held frames back in the last Step; nothing if it did not. Such a wait is
  // not a stall.
  std::optional<Duration> HeldBackFor() const;
  bool Done() const;
  // The index of the first slice that some output has not sent yet; the largest number if there is
  // none.
  uint32_t FirstUnsent() const;

  // Adds the descriptors that the hop waits for. Call it when Step() returned false.
  void AddPollFds(std::vector<pollfd>* fds) const;
  // Returns an error if the receiver of an output has gone. Call it when poll() reported a hang-up.
  absl::Status CheckOutputs();
  // Tells the receivers why the hop ends. Best effort.
  void SendError(const absl::Status& status, TimePoint deadline);

  // What keeps the hop from moving, for the message of a timeout.
  std::string WaitingFor() const;

  HopProgress Progress() const;

  uint64_t bytes_sent() const;
  uint64_t bytes_received() const;
  uint64_t block_bytes_read() const { return block_bytes_read_; }
  // The timings of outputs that the plan wants measured and that have ended.
  const std::vector<LinkTiming>& link_timings() const { return link_timings_; }

 private:
  struct Input {
    explicit Input(StreamTurn first) : turn(std::move(first)) {}

    std::unique_ptr<SliceReceiver> receiver;  // null once all frames have come
    std::vector<size_t> targets;  // for each row of the stream: index into the hop's rows
    std::vector<CoefficientColumn> columns;  // raw inputs only: for each row of the stream
    bool drained = false;                    // nothing to read; not tried again in this Step
    AlignedBuffer ring;
    StreamTurn turn;
    uint64_t closed_bytes = 0;  // received before the receiver was closed
  };
  struct Output {
    explicit Output(StreamTurn first) : turn(std::move(first)) {}

    std::unique_ptr<SliceSender> sender;  // null for the sink, and once the stream has ended
    std::vector<size_t> sources;          // for each row of the stream: index into the hop's rows
    bool is_sink = false;
    bool full = false;  // takes no more; not tried again in this Step
    bool finished = false;
    StreamTurn turn;
    uint64_t closed_bytes = 0;  // sent before the sender was closed
  };

  HopRunner(const Context& context, const HopSpec& spec);
  absl::Status OpenInputs();
  absl::Status OpenOutputs();
  void ChooseAccumulators();
  std::vector<size_t> RowIndices(const std::vector<Row>& rows) const;

  absl::StatusOr<bool> ReceiveSome();
  absl::StatusOr<bool> ReceiveNext(size_t index);
  absl::Status TakeLocalSlices();
  // The hop's error for one of its block.
  absl::Status OfLocalBlock(const absl::Status& failure) const;
  absl::StatusOr<bool> CombineSome();
  void Combine(uint32_t ordinal);
  // The frame to send now on an output, if there is one.
  std::optional<SlicePipeline::Position> NextSend(size_t index) const;
  // Whether another frame goes out at once after this one.
  bool SendsMoreAfter(size_t index, SlicePipeline::Position position) const;
  absl::StatusOr<bool> SendSome();
  absl::StatusOr<bool> SendNext(size_t index);
  // Whether an input, or an output, waits only for the other end or the network.
  bool WaitsToReceive(size_t index) const;
  bool WaitsToSend(size_t index) const;
  // Whether the next slice lacks only bytes that the disk has been asked for.
  bool WaitsForDisk() const;
  StreamTurn FirstTurn(RateLimiter* limiter) const;
  absl::StatusOr<bool> Finish(size_t index);

  FrameHeader Header(Row row, uint32_t slice_index) const;
  uint8_t* InputSlice(Input& input, uint32_t ordinal, size_t row_index);
  uint8_t* Accumulator(uint32_t ordinal, size_t row_index);

  const Context context_;
  const HopSpec& spec_;  // inside the part
  const uint32_t ring_slots_;
  const size_t slot_bytes_;
  SlicePipeline pipeline_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::unique_ptr<LocalReader> local_;
  std::vector<CoefficientColumn> local_columns_;  // of each sub-block that is read
  uint32_t local_seen_ = 0;
  bool asked_disk_ = false;  // for the first local slice
  uint32_t send_limit_ = 0;
  uint64_t block_bytes_read_ = 0;
  std::vector<LinkTiming> link_timings_;

  // The place where rows are summed up: the buffers of an input that brings all rows (base_input_),
  // the local slice itself (if it is sent unchanged), or a ring of their own.
  int base_input_ = -1;
  bool local_is_row_ = false;
  AlignedBuffer rows_ring_;
};

}  // namespace ecpipe
