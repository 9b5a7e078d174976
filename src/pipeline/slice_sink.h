// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// Where a requestor's slices end. Called by the one thread that runs the part.
class SliceSink {
 public:
  virtual ~SliceSink() = default;

  // Whether this slice may be written now. A sink that hands bytes on in order refuses it until all
  // slices before it have come; the pipeline then holds the slice in its ring and reads no more.
  virtual bool Ready(Row row, uint32_t slice_index) = 0;

  // Takes one verified slice. `bytes` is valid during the call. An error ends the part with it.
  virtual absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) = 0;
};

// Takes slices and keeps nothing: they are wanted for their way, not for their bytes.
class DiscardSink : public SliceSink {
 public:
  bool Ready(Row, uint32_t) override { return true; }
  absl::Status Write(Row, uint32_t, std::span<const uint8_t>) override { return absl::OkStatus(); }
};

}  // namespace ecpipe
