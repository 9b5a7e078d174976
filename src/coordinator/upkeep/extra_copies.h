// SPDX-License-Identifier: Apache-2.0
// Files of blocks that a node has beyond what the catalog says: copies that it had before they were
// rebuilt or moved elsewhere, and blocks that were stored when nobody waited for them any more.
// They are listed and removed when an operator asks for it, never otherwise.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "coordinator/recovery/block_presence.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/store/catalog.h"
#include "model/block_file.h"

namespace ecpipe {

struct ExtraCopy {
  BlockFile file;
  std::string holder;  // the node that has the block by the catalog; empty: it has no such block
  std::string kept_because;  // empty: it may be removed, or has been
  bool ask_again = false;    // nothing speaks against its removal but that a helper said nothing
};

// Calls to a helper about the files of its store. Thread-safe. HelperClient implements it.
class BlockFileGateway {
 public:
  virtual ~BlockFileGateway() = default;

  struct Files {
    std::vector<BlockFile> files;
    bool more = false;
  };
  // UNIMPLEMENTED: the helper is too old, or its storage system keeps its blocks itself.
  virtual absl::StatusOr<Files> ListBlockFiles(const HelperAddress& helper,
                                               const std::string& after) = 0;
  // One answer for each, in order; of the first ones only if more would take too long.
  virtual absl::StatusOr<std::vector<absl::Status>> RemoveBlockFiles(
      const HelperAddress& helper, const std::vector<BlockFile>& files) = 0;
};

// Thread-safe.
class ExtraCopies {
 public:
  static constexpr size_t kMaxCopies = HelperGateway::kMaxBlocksInQuestion;

  // All outlive it.
  ExtraCopies(Catalog* catalog, RepairCoordinator* repairs, HelperGateway* helpers,
              BlockFileGateway* files)
      : catalog_(catalog), repairs_(repairs), helpers_(helpers), files_(files) {}

  struct Page {
    std::vector<ExtraCopy> copies;
    std::string next;  // the page after this one; empty: there is none
  };
  // NOT_FOUND: the node is not known. FAILED_PRECONDITION: it is dead, or belongs to a storage
  // system. Otherwise the helper's error.
  absl::StatusOr<Page> List(const std::string& node, const std::string& page);

  // Removes those files that are extra now, as List() says. At most kMaxCopies, which were listed
  // before. One answer for each, in order. Nobody else may change meanwhile where the catalog has
  // blocks, but repairs.
  absl::StatusOr<std::vector<ExtraCopy>> Remove(const std::string& node,
                                                const std::vector<BlockFile>& files);

 private:
  absl::StatusOr<HelperAddress> HelperOf(const std::string& node);
  // What is extra of files that `node` was seen to have: the file's number and the rest.
  struct Judged {
    size_t number;
    ExtraCopy copy;
  };
  std::vector<Judged> Judge(const std::string& node, const std::vector<BlockFile>& files);

  Catalog* const catalog_;
  RepairCoordinator* const repairs_;
  HelperGateway* const helpers_;
  BlockFileGateway* const files_;
};

}  // namespace ecpipe
