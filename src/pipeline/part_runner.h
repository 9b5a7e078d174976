// SPDX-License-Identifier: Apache-2.0
// Runs one part of a repair, that is all hops of one node, on the calling thread: a poll() loop
// over its streams. Helpers and requestors run this same engine.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/repair_plan.h"
#include "common/transport.h"
#include "pipeline/block_reader.h"
#include "pipeline/hop_runner.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

struct PartOptions {
  // Without a byte moved on any stream for this long the part gives up.
  Duration stall_timeout = std::chrono::seconds(10);
  // Memory of each ring of slice buffers: one for a local block, one a row of each input. The hops
  // of a part share it.
  size_t ring_bytes = 512u << 10;
};

// Totals of one part. Wire bytes include frame headers.
struct PartTraffic {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t block_bytes_read = 0;
};

// The slice buffers that a part will hold.
uint64_t PartBufferBytes(const RepairPart& part, const PartOptions& options);

class PartRunner {
 public:
  // The open block of each hop that has one, by the hop's index in part.hops.
  using Blocks = std::map<size_t, std::unique_ptr<BlockReader>>;

  // `part` has passed ValidatePart. Opens every stream, so that a peer may dial once this returns.
  // `transport` and `sink` outlive the runner.
  static absl::StatusOr<std::unique_ptr<PartRunner>> Create(RepairPart part, Blocks blocks,
                                                            Transport* transport, SliceSink* sink,
                                                            const PartOptions& options);

  // Returns when every hop has sent and stored all its slices, or with the first error; then all
  // streams are closed, which cancels the hops upstream, and the hops downstream have been told
  // why. DEADLINE_EXCEEDED names what the part was waiting for. Call once.
  absl::Status Run();

  // Makes Run() return `reason`, soon. Any thread; before, during or after Run().
  void Cancel(absl::Status reason);

  const RepairPart& part() const { return part_; }
  // Any thread.
  PartTraffic traffic() const;
  // After Run(): of the streams that were to be measured; none after an error.
  const std::vector<LinkTiming>& link_timings() const { return link_timings_; }

 private:
  PartRunner(RepairPart part, const PartOptions& options)
      : part_(std::move(part)), options_(options) {}

  absl::Status Loop();
  uint32_t SendLimit() const;
  absl::StatusOr<bool> StepAll();
  absl::Status WaitForEvents(TimePoint deadline);
  absl::Status Stalled() const;
  absl::Status cancelled();
  void PublishTraffic();

  const RepairPart part_;
  const PartOptions options_;
  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();  // shared: see ConnectionSlot
  std::vector<std::unique_ptr<HopRunner>> hops_;
  std::vector<pollfd> polled_;
  std::vector<LinkTiming> link_timings_;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<uint64_t> block_bytes_read_{0};
  Mutex mutex_;
  absl::Status cancel_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
