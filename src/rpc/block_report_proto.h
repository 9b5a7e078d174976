// SPDX-License-Identifier: Apache-2.0
// A report of blocks (common/block_report.h) as the row of pieces in which it travels.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "common/block_report.h"
#include "ecpipe/v1/hdfs.pb.h"

namespace ecpipe {

// Hands the pieces over, in order, each far below gRPC's 4 MiB. False if `write` returned false,
// and nothing was written after that.
bool WriteReport(const BlockReport& report,
                 const std::function<bool(const v1::ReportBlocksRequest&)>& write);

// Puts the pieces together again. Used by one thread.
class ReportAssembler {
 public:
  // INVALID_ARGUMENT for what is no piece of this report, RESOURCE_EXHAUSTED for one that goes
  // beyond the limits of BlockReport; after an error the report is worth nothing.
  absl::Status Add(const v1::ReportBlocksRequest& piece);
  // Whether the last piece has come.
  bool complete() const { return complete_; }
  // As far as it has come; its node, incarnation and numbers with the first piece.
  BlockReport& report() { return report_; }

 private:
  absl::Status AddPool(const v1::ReportBlocksRequest::Pool& pool);

  BlockReport report_;
  uint64_t blocks_ = 0;
  bool begun_ = false;
  bool complete_ = false;
};

}  // namespace ecpipe
