// SPDX-License-Identifier: Apache-2.0
// What operators do with the catalog beyond loading it, and dry runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "model/recovery.h"
#include "model/stripe.h"
#include "net/tls/tls.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

enum class BlockVerdict {
  kThere,  // its node's helper has it, with the length of the catalog
  kMissing,
  kWrongLength,
  kUnreadable,
  kNotAsked,  // the helper does not answer, or has had no time for it
  kUnknown,   // the catalog does not have the block
  kCorrupt,
};
// "there", "missing", "wrong length", "unreadable", "not asked", "unknown", "corrupt".
const char* BlockVerdictName(BlockVerdict verdict);

struct BlockCheck {
  std::string block_id;
  std::string node;
  BlockVerdict verdict = BlockVerdict::kNotAsked;
  std::string detail;  // why, in words; empty: the verdict says it
  std::vector<std::string> also_on;  // other nodes that have a file of the block, as far as known
};

// A file on a node that has a block of which the catalog says that it is elsewhere.
struct ExtraCopyView {
  std::string block_id;
  uint64_t bytes = 0;
  std::string version;       // tells one file of the block from another
  std::string holder;        // by the catalog; empty: it does not have the block
  std::string kept_because;  // empty: it may be removed, or has been
  bool ask_again = false;    // a helper has not answered, or has failed; nothing else keeps it
  double age_seconds = 0;    // since the file was changed in any way
};

// Thread-safe. Each call has a deadline. UNIMPLEMENTED: the coordinator is too old; it has done
// nothing. Other errors are those of the calls in coordinator.proto.
class CatalogApi {
 public:
  static constexpr size_t kMaxBlocksInCheck = 1000;

  // What would become of stripes that were put.
  struct PutCounts {
    uint64_t added = 0;
    uint64_t replaced = 0;
    uint64_t unchanged = 0;
  };

  // `timeout` is the deadline of each call; `tls` null: plain text.
  static absl::StatusOr<std::unique_ptr<CatalogApi>> Connect(
      const std::string& coordinator, Duration timeout, const std::shared_ptr<TlsContext>& tls);
  virtual ~CatalogApi() = default;

  // The ids of all blocks that the catalog has on a node.
  virtual absl::StatusOr<std::vector<std::string>> NodeBlocks(const std::string& node) = 0;
  // Asks helpers for at most kMaxBlocksInCheck blocks. One answer for each, in order.
  virtual absl::StatusOr<std::vector<BlockCheck>> CheckBlocks(
      const std::vector<std::string>& block_ids) = 0;
  // Has the coordinator say what PutStripes would do with any number of stripes, or its error. A
  // transaction takes a thousand: what those before would have done is not counted in.
  virtual absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>& stripes) = 0;
  virtual absl::Status RemoveStripes(const std::vector<std::string>& stripe_ids) = 0;
  // `force`: also a node that lives, or on which there are blocks.
  virtual absl::Status ForgetNode(const std::string& node, bool force) = 0;
  struct ExtraCopyPage {
    std::vector<ExtraCopyView> copies;
    std::string next;  // the page after this one; empty: there is none
  };
  virtual absl::StatusOr<ExtraCopyPage> ExtraCopies(const std::string& node,
                                                    const std::string& page) = 0;
  // Of copies that were listed, at most kMaxBlocksInCheck, removes those that are extra still. One
  // answer for each, in order.
  virtual absl::StatusOr<std::vector<ExtraCopyView>> RemoveExtraCopies(
      const std::string& node, const std::vector<ExtraCopyView>& copies) = 0;
  // Begins a drain, and returns the id of the recovery that it is.
  virtual absl::StatusOr<uint64_t> DrainNode(const RecoveryRequest& request) = 0;
  // Returns the id of the recovery that the maintenance is.
  virtual absl::StatusOr<uint64_t> MaintainNode(const std::string& node, double seconds) = 0;
  virtual absl::Status ReadmitNode(const std::string& node) = 0;

  // Dry runs: sentences that say what the call would do, or the error of the call.
  using Effects = absl::StatusOr<std::vector<std::string>>;
  virtual Effects WouldRecover(const RecoveryRequest& request, IfLive if_live) = 0;
  virtual Effects WouldDrain(const RecoveryRequest& request) = 0;
  virtual Effects WouldMaintain(const std::string& node, double seconds) = 0;
  virtual Effects WouldReadmit(const std::string& node) = 0;
  virtual Effects WouldChange(uint64_t recovery_id, RecoveryChange change) = 0;
  virtual Effects WouldSetLimits(const LimitsChange& change) = 0;
  virtual Effects WouldClear(const std::string& block_id) = 0;
  virtual Effects WouldRemove(const std::vector<std::string>& stripe_ids) = 0;
  virtual Effects WouldForget(const std::string& node, bool force) = 0;
};

}  // namespace ecpipe
