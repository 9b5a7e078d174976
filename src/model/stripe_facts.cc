// SPDX-License-Identifier: Apache-2.0
#include "model/stripe_facts.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "model/block_id.h"
#include "model/plan/slice_grid.h"

namespace ecpipe {
namespace {

constexpr size_t kMaxCodeNameBytes = 64;

absl::Status BadFacts(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status CheckBlocks(const StripeFacts& facts) {
  if (facts.blocks.empty() || facts.blocks.size() > StripeFacts::kMaxBlocks) {
    return BadFacts("a stripe of " + std::to_string(facts.blocks.size()) +
                    " blocks is out of range: it needs 1 to " +
                    std::to_string(StripeFacts::kMaxBlocks));
  }
  std::set<std::string> names;
  for (const StripeFacts::Block& block : facts.blocks) {
    ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(block.name), "the name of a block"));
    if (!names.insert(block.name).second) {
      return BadFacts("two blocks have the name " + block.name);
    }
    if (block.bytes > kMaxBlockBytes) {
      return BadFacts("block " + block.name + " of " + std::to_string(block.bytes) +
                      " bytes is over the limit of " + std::to_string(kMaxBlockBytes));
    }
  }
  if (facts.LongestBlock() == 0) return BadFacts("no block of the stripe has a byte");
  return absl::OkStatus();
}

absl::Status CheckSources(const StripeFacts& facts) {
  if (facts.sources.size() > StripeFacts::kMaxSources) {
    return BadFacts("there are " + std::to_string(facts.sources.size()) +
                    " sources; the limit is " + std::to_string(StripeFacts::kMaxSources));
  }
  const int blocks = static_cast<int>(facts.blocks.size());
  for (const StripeFacts::Source& source : facts.sources) {
    if (source.index < 0 || source.index >= blocks) {
      return BadFacts("a source names block " + std::to_string(source.index) +
                      ", but the stripe has blocks 0 to " + std::to_string(blocks - 1));
    }
    ECPIPE_RETURN_IF_ERROR(
        Annotate(ValidateBlockId(source.storage_id), "the storage id of a source"));
    // One of both is wrong, and with a length that is too small bytes would be taken for zero.
    if (facts.blocks[static_cast<size_t>(source.index)].bytes == 0) {
      return BadFacts("a source names block " + std::to_string(source.index) + ", which is empty");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StripeFacts::Validate() const {
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(stripe_id), "the stripe's id"));
  if (code.empty() || code.size() > kMaxCodeNameBytes) {
    return BadFacts("the name of the stripe's code is empty or longer than " +
                    std::to_string(kMaxCodeNameBytes) + " bytes");
  }
  ECPIPE_RETURN_IF_ERROR(CheckBlocks(*this));
  return CheckSources(*this);
}

uint64_t StripeFacts::LongestBlock() const {
  uint64_t longest = 0;
  for (const Block& block : blocks) longest = std::max(longest, block.bytes);
  return longest;
}

}  // namespace ecpipe
