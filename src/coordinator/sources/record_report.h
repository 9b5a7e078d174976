// SPDX-License-Identifier: Apache-2.0
// What a source does with a report of blocks: it keeps the report, and forgets that blocks are
// corrupt which the storage system has written anew or no longer has on that node.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/sources/reported_blocks.h"
#include "model/block_report.h"

namespace ecpipe {

// What a block is in reports.
struct ReportedName {
  std::string pool;
  int64_t id = 0;
  uint64_t stamp = 0;
};
// Nullopt: it is no block of the storage system.
using ReportedNameOf = std::function<std::optional<ReportedName>(const std::string& block_id)>;

struct ReportKeepers {
  NodeRegistry* nodes = nullptr;
  CorruptBlocks* corrupt = nullptr;
  ReportedBlocks* reported = nullptr;
};

// NOT_FOUND: the node is not registered with the report's incarnation. Other errors are those of
// ReportedBlocks::Record.
absl::StatusOr<ReportedBlocks::Outcome> RecordReport(BlockReport report,
                                                     const ReportKeepers& keepers,
                                                     const Clock& clock,
                                                     const ReportedNameOf& name_of);

}  // namespace ecpipe
