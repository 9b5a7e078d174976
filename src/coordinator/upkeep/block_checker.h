// SPDX-License-Identifier: Apache-2.0
// Has blocks that are called corrupt read by their own helpers, and decides.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/store/catalog.h"
#include "model/corrupt_block.h"

namespace ecpipe {

// Thread-safe. Checks one block at a time, on a thread of its own: whoever reports many blocks
// keeps one disk of the cluster busy, and no more.
class BlockChecker {
 public:
  // Asks a helper to read a block; HelperClient::CheckBlock's errors.
  using Ask = std::function<absl::StatusOr<WholeBlock>(
      const HelperAddress& helper, const std::string& block_id, const std::stop_token&)>;

  // All outlive the checker.
  BlockChecker(CorruptBlocks* corrupt, NodeRegistry* nodes, Catalog* catalog, const Clock* clock,
               Ask ask);
  ~BlockChecker();

  void Start();
  // Checks the block that is due, if there is one. Returns whether there was.
  bool CheckNext();
  // Has a block checked soon; one that is not marked becomes a suspect. NOT_FOUND: it is neither
  // marked nor in the catalog.
  absl::Status CheckSoon(const std::string& block_id);

  struct Decision {
    CorruptBlocks::Verdict verdict = CorruptBlocks::Verdict::kUndecided;
    std::string why;
  };
  // What follows from a helper's answer. `expected`: what the catalog says of the block, if it has
  // it there; its SHA-256 may be empty.
  static Decision Judge(const absl::StatusOr<WholeBlock>& answer,
                        const std::optional<WholeBlock>& expected);

 private:
  void Run();
  std::optional<WholeBlock> Expected(const CorruptBlock& block);
  Decision Check(const CorruptBlock& block);

  CorruptBlocks* const corrupt_;
  NodeRegistry* const nodes_;
  Catalog* const catalog_;
  const Clock* const clock_;
  const Ask ask_;
  std::stop_source stop_;
  Mutex mutex_;
  CondVar wake_;
  Thread thread_;
};

}  // namespace ecpipe
