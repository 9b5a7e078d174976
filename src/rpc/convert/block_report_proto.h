// SPDX-License-Identifier: Apache-2.0
// A report of blocks (model/block_report.h) as the sequence of messages in which it is sent.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "ecpipe/v1/sources.pb.h"
#include "model/block_report.h"

namespace ecpipe {

// Passes the messages to `write` in order; each is far below gRPC's limit of 4 MiB. Stops and
// returns false as soon as `write` does.
bool WriteReport(const BlockReport& report,
                 const std::function<bool(const v1::ReportBlocksRequest&)>& write);

// How many blocks a message lists.
uint64_t BlocksIn(const v1::ReportBlocksRequest& piece);

// Puts the messages of a report together again. Used by one thread.
class ReportAssembler {
 public:
  // What was there may go while as much comes.
  static constexpr uint64_t kMaxBlocks = 2 * BlockReport::kMaxBlocks;
  explicit ReportAssembler(uint64_t max_blocks = kMaxBlocks) : max_blocks_(max_blocks) {}

  // INVALID_ARGUMENT: the message does not belong to this report. RESOURCE_EXHAUSTED: the report
  // goes beyond the limits of BlockReport. After an error the report must not be used.
  absl::Status Add(const v1::ReportBlocksRequest& piece);
  // Whether the last message has come.
  bool complete() const { return complete_; }
  // The report so far. Its node, incarnation and numbers are set by the first message.
  BlockReport& report() { return report_; }

 private:
  absl::Status AddPool(const v1::ReportBlocksRequest::Pool& pool);

  uint64_t max_blocks_;
  BlockReport report_;
  uint64_t blocks_ = 0;
  bool begun_ = false;
  bool complete_ = false;
};

}  // namespace ecpipe
