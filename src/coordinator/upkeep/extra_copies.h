// SPDX-License-Identifier: Apache-2.0
// Files of blocks that a node has beyond what the catalog says: copies that it had before they were
// rebuilt or moved elsewhere, and blocks that were stored when nobody waited for them any more.
// They are listed and removed when an operator asks for it, never otherwise.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/recovery/block_presence.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/store/catalog.h"
#include "model/block_file.h"
#include "model/corrupt_block.h"

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
  // Has the helper read a block from beginning to end, as HelperService.CheckBlock says; CANCELLED
  // when `stop` is asked to stop.
  virtual absl::StatusOr<WholeBlock> CheckBlock(const HelperAddress& helper,
                                                const std::string& block_id,
                                                const std::stop_token& stop) = 0;
};

// Thread-safe.
class ExtraCopies {
 public:
  static constexpr size_t kMaxCopies = HelperGateway::kMaxBlocksInQuestion;

  // One call of Compare begins no reading after this time, so that whoever asked for it hears of
  // what has been read.
  static constexpr Duration kCompareFor = std::chrono::seconds(5);

  // All outlive it.
  ExtraCopies(Catalog* catalog, RepairCoordinator* repairs, HelperGateway* helpers,
              BlockFileGateway* files, const Clock* clock)
      : catalog_(catalog), repairs_(repairs), helpers_(helpers), files_(files), clock_(clock) {}

  struct Page {
    std::vector<ExtraCopy> copies;
    std::string next;  // the page after this one; empty: there is none
  };
  // NOT_FOUND: the node is not known. FAILED_PRECONDITION: it is dead, or belongs to a storage
  // system. Otherwise the helper's error.
  // Reads no bytes: what it says may be removed may turn out to be the last good copy.
  absl::StatusOr<Page> List(const std::string& node, const std::string& page);

  // What reading has shown of a block at its place in the catalog.
  struct Compared {
    std::string holder;
    std::string kept_because;  // empty: it is as good as the copies that are extra
    bool ask_again = false;
  };
  using Comparison = std::map<std::string, Compared>;  // by block id
  // Of files that are extra, has the holders read their blocks, each one block at a time. A block
  // is good if it has the SHA-256 that the catalog has, or, if that has none, the bytes of the
  // node's copy; or if it matches its checksums and the node's copy does not match its own. One
  // that is bad becomes a suspect. Leaves out what there is no time for, also when `gone` returns
  // true. Takes minutes where blocks are large. Errors as of List.
  absl::StatusOr<Comparison> Compare(const std::string& node, const std::vector<BlockFile>& files,
                                     const std::function<bool()>& gone);

  // Removes those files that are extra now, as List() says, and whose blocks are good at their
  // places. At most kMaxCopies, which were listed before. One answer for each, in order. Nobody
  // else may change meanwhile where the catalog has blocks, but repairs.
  absl::StatusOr<std::vector<ExtraCopy>> Remove(const std::string& node,
                                                const std::vector<BlockFile>& files,
                                                const Comparison& comparison);

  // Ends the reading.
  void Stop() { stop_.request_stop(); }

 private:
  absl::StatusOr<HelperAddress> HelperOf(const std::string& node);
  // What is extra of files that `node` was seen to have: the file's number and the rest.
  struct Judged {
    size_t number;
    ExtraCopy copy;
  };
  std::vector<Judged> Judge(const std::string& node, const std::vector<BlockFile>& files);
  void Suspect(const std::string& block_id, const std::string& holder, const std::string& reason);
  Compared CompareOne(const HelperAddress& node, const std::string& block_id,
                      const std::string& holder);
  // Of a block of which the catalog has no SHA-256: compares what its holder has read with the
  // node's own copy.
  Compared CompareWithOwn(const HelperAddress& node, const std::string& block_id,
                          const WholeBlock& at_holder, Compared compared);

  Catalog* const catalog_;
  RepairCoordinator* const repairs_;
  HelperGateway* const helpers_;
  BlockFileGateway* const files_;
  const Clock* const clock_;
  std::stop_source stop_;
  Mutex own_turn_;  // held while the node reads its own copy: a helper reads one at a time
};

}  // namespace ecpipe
