// SPDX-License-Identifier: Apache-2.0
// Pieces of a helper's reports of blocks: refused, or kept in order and within the limits.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "coordinator/sources/reported_blocks.h"
#include "fuzz/fuzz_input.h"
#include "model/systems/hdfs_block.h"
#include "model/systems/qfs_chunk.h"
#include "rpc/convert/block_report_proto.h"

namespace ecpipe {
namespace {

void CheckKept(const NodeBlocks& node) {
  uint64_t blocks = 0;
  ECPIPE_CHECK(node.pools.size() <= BlockReport::kMaxPools);
  for (const auto& [pool, kept] : node.pools) {
    ECPIPE_CHECK(ValidateHdfsPool(pool).ok() && !kept.empty());
    const InternalBlock* before = nullptr;
    for (const InternalBlock& block : kept) {
      ECPIPE_CHECK(pool == kQfsPool ? block.id > 0 : block.id < 0);
      ECPIPE_CHECK(before == nullptr || before->id < block.id);
      ECPIPE_CHECK(FindBlockIn(node, pool, block.id) == &block);
      before = &block;
    }
    blocks += kept.size();
  }
  ECPIPE_CHECK(blocks == node.block_count);
}

}  // namespace
}  // namespace ecpipe

// Messages; the last piece of a report ends it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ecpipe;
  FuzzInput input(data, size);
  ReportedBlocks reported;
  ReportAssembler assembler;
  while (!input.empty()) {
    v1::ReportBlocksRequest piece;
    if (!piece.ParseFromString(input.Text())) continue;
    if (!assembler.Add(piece).ok()) {
      assembler = ReportAssembler();
      continue;
    }
    if (!assembler.complete()) continue;
    const BlockReport report = assembler.report();
    assembler = ReportAssembler();
    const auto outcome = reported.Record(report, TimePoint());
    const auto node = reported.Of(report.node);
    if (outcome.ok() && *outcome == ReportedBlocks::Outcome::kTaken) {
      ECPIPE_CHECK(node != nullptr && node->sequence == report.sequence);
    }
    if (node != nullptr) CheckKept(*node);
  }
  return 0;
}
