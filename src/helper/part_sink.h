// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

// Where the rows that end on a helper go.
class PartSink : public SliceSink {
 public:
  bool Ready(Row, uint32_t) override { return true; }

  // Call once with what became of the part. Returns what became of it in the end.
  virtual absl::Status End(const absl::Status& outcome) = 0;
};

}  // namespace ecpipe
