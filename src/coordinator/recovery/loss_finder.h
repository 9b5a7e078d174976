// SPDX-License-Identifier: Apache-2.0
// Finds out what a node has lost: the catalog says what was on it, the node what it has.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/planning/code_cache.h"
#include "coordinator/recovery/recovery_queue.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/store/catalog.h"

namespace ecpipe {

// Thread-safe.
class LossFinder {
 public:
  // How long a helper may take to say what it has of a page.
  static constexpr Duration kPatience = std::chrono::seconds(2);
  static constexpr int kStripesInPage = 1000;

  struct Page {
    std::vector<LostBlock> lost;
    std::vector<LostBlock> there;  // the node has them, in their full length and as they are
    std::string next;              // asks for the next page; empty: this was the last
    std::map<std::string, std::string> sha256;  // by block, where the catalog has one
  };

  // All outlive the finder.
  LossFinder(Catalog* catalog, HelperGateway* helpers, NodeRegistry* nodes)
      : catalog_(catalog), helpers_(helpers), nodes_(nodes) {}

  // The blocks of a page of the catalog, all of them lost. Errors are the catalog's.
  absl::StatusOr<Page> List(const std::string& node, const std::string& page);
  // The nodes of the stripe's other blocks.
  static std::vector<std::string> HoldersOf(const Stripe& stripe, const std::string& block_id);
  // What a block is whose directory does not answer at present.
  enum class NoAnswer { kIsAnError, kMeansLost };
  // Moves to `there` what the node's helper says it has. After an error `page` is as it was.
  // UNAVAILABLE, DEADLINE_EXCEEDED: it does not answer, or cannot tell of a block. UNIMPLEMENTED:
  // it is too old.
  absl::Status Compare(const HelperAddress& helper, NoAnswer no_answer, Page* page);

  // What the block's own node is to the question whether the block is lost.
  enum class OwnNode { kHasLostIt, kIsAsked };
  // Asks the nodes of the stripe's other blocks what they have. Nothing: it may be repaired yet,
  // by what is there, or by nodes that are not live now. Otherwise why it is lost for good.
  std::optional<std::string> LostForGood(const std::string& block_id, OwnNode own_node);

 private:
  Catalog* const catalog_;
  HelperGateway* const helpers_;
  NodeRegistry* const nodes_;
  CodeCache codes_;
};

}  // namespace ecpipe
