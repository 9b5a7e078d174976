// SPDX-License-Identifier: Apache-2.0
// What the coordinator knows of stripes: which blocks form a stripe, with which code, and on which
// nodes they are, for stripes that somebody has loaded. sqlite_catalog.h implements it. Stripes
// of storage systems that know them are in no catalog: a request brings their facts
// (model/stripe_facts.h), or a StripeSource tells them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/stripe.h"

namespace ecpipe {

inline constexpr size_t kMaxStripeBlocks = 255;  // no code here has more: GF(2^8)
// Ids are file names on helpers, which end at 255 bytes; the other names follow suit.
inline constexpr size_t kMaxCatalogIdBytes = 255;

// Damaged stripes that a page of a list names. The rest of them are counted.
inline constexpr size_t kMaxNamedDamaged = 100;

struct StripePage {
  std::vector<Stripe> stripes;
  // Ids of damaged stripes, of those between the page before and the last stripe of this one; at
  // the end of the catalog, of all after the page before.
  std::vector<std::string> damaged;  // the first kMaxNamedDamaged
  uint64_t damaged_count = 0;
};

// A block of a node that ListNode was asked for.
struct NodeBlock {
  std::string block_id;
  absl::StatusOr<Stripe> stripe;  // DATA_LOSS names the stripe that is damaged in the catalog
};

struct NodeBlockPage {
  std::vector<NodeBlock> blocks;
  std::string next;  // asks for the next page; empty: this was the last
};

// What becomes of the stripes of a Put.
struct PutCounts {
  uint64_t added = 0;
  uint64_t replaced = 0;  // one of that id was there, and was another, or damaged
  uint64_t unchanged = 0;
  std::vector<Stripe> were;  // those that are replaced, as they were; of damaged ones what is left
};

// Whether the two say the same of a stripe's bytes: all but where its blocks are, which change
// while the bytes stay.
inline bool SameBytes(const Stripe& a, const Stripe& b) {
  const auto same_block = [](const BlockPlace& one, const BlockPlace& other) {
    return one.block_id == other.block_id && one.sha256 == other.sha256;
  };
  return a.stripe_id == b.stripe_id && a.code == b.code && a.block_bytes == b.block_bytes &&
         std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(), same_block);
}

// The error of MoveBlock and its like. `was`: the stripe as the repair began; `now`: as it is.
// OK: the block may get its new place.
absl::Status CheckMayMove(const std::string& block_id, const std::string& node, const Stripe& was,
                          const Stripe& now);

// Thread-safe. Every call may block on a disk or a network.
class Catalog {
 public:
  virtual ~Catalog() = default;

  // Adds the stripes, or replaces those whose stripe_id is known, as one transaction: on an error
  // none is stored. INVALID_ARGUMENT: no blocks; an empty, over-long or repeated block id; a length
  // of 0; block_lengths, which only stripes of facts have. ALREADY_EXISTS: another stripe holds one
  // of the blocks. It does not look at `code`: the caller has checked it.
  virtual absl::StatusOr<PutCounts> Put(const std::vector<Stripe>& stripes) = 0;

  // What Put would do, or its error; changes nothing.
  virtual absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>& stripes) = 0;

  // Removes these stripes, as one transaction, and returns them; of a damaged one what is left of
  // it. NOT_FOUND names a stripe that is not there; then none is removed.
  virtual absl::StatusOr<std::vector<Stripe>> Remove(
      const std::vector<std::string>& stripe_ids) = 0;
  // What Remove would do, or its error; changes nothing.
  virtual absl::StatusOr<std::vector<Stripe>> TryRemove(
      const std::vector<std::string>& stripe_ids) = 0;

  // The stripe that holds a block. NOT_FOUND names the block.
  virtual absl::StatusOr<BlockLocation> FindBlock(const std::string& block_id) = 0;

  virtual absl::StatusOr<Stripe> FindStripe(const std::string& stripe_id) = 0;

  // Up to `limit` stripes in the order of their ids, after `after_stripe_id` ("" starts). Damaged
  // stripes do not count and are logged, so only the end gives a page without stripes.
  virtual absl::StatusOr<StripePage> List(const std::string& after_stripe_id, int limit) = 0;

  // The blocks on a node, of up to `limit` stripes at once, in time proportional to the page.
  // `page` is empty, or `next` of the page before. Every block that stays on the node from the
  // first call to the last is listed once. Unknown node: no blocks.
  virtual absl::StatusOr<NodeBlockPage> ListNode(const std::string& node, const std::string& page,
                                                 int limit) = 0;

  virtual absl::StatusOr<uint64_t> CountStripes() = 0;

  // How many blocks are on each node that has some, without the nodes in `but`: it takes time in
  // proportion to the blocks that are counted.
  virtual absl::StatusOr<std::map<std::string, uint64_t>> CountBlocksBut(
      const std::set<std::string>& but) = 0;

  // Records that a block now lives on another node, which has stored what was rebuilt of the stripe
  // as it `was`. ABORTED, with nothing changed: the stripe has been loaded anew since, and is to
  // have other bytes, or the block is elsewhere now; what the node has may be old. NOT_FOUND when
  // the block is unknown.
  virtual absl::Status MoveBlock(const std::string& block_id, const std::string& node,
                                 const Stripe& was) = 0;
};

}  // namespace ecpipe
