// SPDX-License-Identifier: Apache-2.0
// Corrupt blocks that a storage system has written anew, under the same name, on the same node.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/corrupt_blocks.h"
#include "model/block_report.h"

namespace ecpipe {

// What a block is in reports.
struct ReportedName {
  std::string pool;
  int64_t id = 0;
};
// Nullopt: it is no block of the storage system.
using ReportedNameOf = std::function<std::optional<ReportedName>(const std::string& block_id)>;

// The ids of those of `corrupt` whose files on the reporting node have changed since they were
// found corrupt. Pure.
std::vector<std::string> RenewedBlocks(const BlockReport& report,
                                       const std::vector<CorruptBlock>& corrupt,
                                       int64_t now_unix_ms, const ReportedNameOf& name_of);

}  // namespace ecpipe
