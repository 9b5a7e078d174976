// SPDX-License-Identifier: Apache-2.0
// A storage system that knows its own stripes, as the coordinator sees it: which stripe a block is
// of, which of its nodes have the blocks, and what became of the blocks of a node. Stripes of the
// catalog need none. Implementations: HdfsSource, QfsSource.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/sources/reported_blocks.h"
#include "model/block_report.h"
#include "model/node_loss.h"
#include "model/stripe_facts.h"
#include "model/striped_file.h"

namespace ecpipe {

struct SourceStatus {
  SourceFacts facts;
  uint64_t nodes = 0;   // nodes that have reported their blocks
  uint64_t blocks = 0;  // blocks that these nodes report
  // Both nullopt: the system is not asked for all of its stripes, or has not answered yet.
  std::optional<uint64_t> degraded;  // stripes with a block that no live node has
  std::optional<uint64_t> lost;      // stripes that lack more blocks than their parity
};

// What a storage system says of one of its nodes.
struct SystemNode {
  bool reported_blocks = false;  // whether its helper has reported its blocks since it registered
  std::string state;             // "live" or "dead"; empty: it does not say
  double silent_seconds = 0;     // since it has heard of the node, where it says
};

// Thread-safe.
class StripeSource {
 public:
  virtual ~StripeSource() = default;

  // The word for the storage system in requests, configuration and output: "hdfs".
  virtual std::string system() const = 0;

  // The name of the block that the text names, in any form that operators of the system write, as
  // all of ECPipe has it. Nullopt: it is no name of a block of this system.
  virtual std::optional<std::string> BlockNamed(const std::string& text) const = 0;
  // Whether the helper that registers this storage id is beside a node of this system.
  virtual bool HasNode(const std::string& storage_id) const = 0;

  // The stripe of a block, named as BlockNamed returns, with all nodes that have a block of it. May
  // wait for the storage system for some seconds. `claim` is what a request says of the block
  // (RepairTarget.claim); empty: nothing.
  // NOT_FOUND: the system does not know the block. UNAVAILABLE: it has not answered.
  // FAILED_PRECONDITION: ECPipe cannot repair the stripe, the block is of another generation, or
  // the claim is not what the system says. INVALID_ARGUMENT: the claim is none.
  virtual absl::StatusOr<StripeFacts> FactsOf(const std::string& block_id,
                                              const std::string& claim) = 0;

  // The file of this path: its length, and its parts from the one that has byte `offset` on, as
  // many as one answer has. NOT_FOUND: there is no such file. UNIMPLEMENTED: the system's files are
  // not read by path here. The other errors are those of FactsOf.
  virtual absl::StatusOr<StripedFile> FileAt(const std::string& path, uint64_t offset) {
    return absl::UnimplementedError("files of " + system() + " are not read by path: '" + path +
                                    "' at byte " + std::to_string(offset));
  }

  // Takes the report of a node of this system. NOT_FOUND: the helper must register first; the other
  // errors are those of ReportedBlocks::Record.
  virtual absl::StatusOr<ReportedBlocks::Outcome> Record(BlockReport report) = 0;

  // Nullopt: the coordinator knows of no such system. Up to some seconds old.
  virtual std::optional<SourceStatus> Overview() = 0;
  // Of a node of this system.
  virtual SystemNode NodeOf(const NodeView& node) = 0;
  // NOT_FOUND: the node of this system is dead, and its blocks are not known. `running` has the
  // names of blocks that are being repaired.
  virtual absl::StatusOr<NodeLoss> LossOf(const NodeView& node,
                                          const std::set<std::string>& running) = 0;
};

// All storage systems that the coordinator asks, in the order in which they are asked whose a name
// is. They outlive the list.
class StripeSources {
 public:
  explicit StripeSources(std::vector<StripeSource*> sources) : sources_(std::move(sources)) {}

  const std::vector<StripeSource*>& all() const { return sources_; }

  // As BlockNamed of the source that knows such names; another text comes back as it is.
  std::string BlockNamed(const std::string& text) const {
    for (const StripeSource* source : sources_) {
      if (std::optional<std::string> name = source->BlockNamed(text)) return *std::move(name);
    }
    return text;
  }
  // Null: the name is of no storage system.
  StripeSource* OfBlock(const std::string& block_id) const {
    for (StripeSource* source : sources_) {
      if (source->BlockNamed(block_id) == block_id) return source;
    }
    return nullptr;
  }
  // Null: the node belongs to no storage system.
  StripeSource* OfNode(const NodeRecord& node) const {
    for (StripeSource* source : sources_) {
      if (!node.storage_id.empty() && source->HasNode(node.storage_id)) return source;
    }
    return nullptr;
  }

 private:
  const std::vector<StripeSource*> sources_;
};

}  // namespace ecpipe
