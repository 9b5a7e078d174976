// SPDX-License-Identifier: Apache-2.0
// The tables stripes, blocks and nodes: rows in, Stripe values out, and back.
//
// SQLite has no page checksums, and a stripe that has changed unseen could make a repair wrong
// without an error. So each stripe's row has a CRC32C over the stripe: its id, its code, its
// block_bytes as 8 bytes, then id, node and SHA-256 of every block; each text after its length in 4
// bytes, numbers little-endian. Rows that do not fit it are damage, whoever changed them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// What StripeRows reads: `number` is the column that has the stripe's number, which is there even
// if its row in stripes is not. The tables' aliases are those of ECPIPE_JOIN_BLOCKS.
#define ECPIPE_STRIPE_COLUMNS(number)                                                    \
  number                                                                                 \
      ", s.stripe_id, s.code, s.block_bytes, s.crc32c, b.position, b.block_id, n.name, " \
      "b.sha256"
#define ECPIPE_JOIN_BLOCKS(number) \
  " LEFT JOIN blocks AS b ON b.stripe = " number " LEFT JOIN nodes AS n ON n.node = b.node"

inline constexpr char kSelectStripeById[] =
    "SELECT " ECPIPE_STRIPE_COLUMNS("s.stripe") " FROM stripes AS s" ECPIPE_JOIN_BLOCKS(
        "s.stripe") " WHERE s.stripe_id = ?1 ORDER BY b.position";

uint32_t StripeCrc(const Stripe& stripe);

struct StoredStripe {
  int64_t number = 0;   // stays the stripe's own for its life
  Stripe stripe;        // as the rows have it
  absl::Status damage;  // DATA_LOSS, naming the stripe: the rows are not what was stored

  absl::StatusOr<Stripe> Checked() && {
    if (!damage.ok()) return damage;
    return std::move(stripe);
  }
};

// Reads the stripes of a query for ECPIPE_STRIPE_COLUMNS, whose rows are in the order of stripes
// and positions. Borrows the statement.
class StripeRows {
 public:
  explicit StripeRows(SqliteStatement* query) : query_(query) {}
  // Nothing: there are no more.
  absl::StatusOr<std::optional<StoredStripe>> Next();

 private:
  SqliteStatement* const query_;
  bool begun_ = false;   // a step after the last row would start the query again
  bool at_row_ = false;  // the statement stands on the first row of the next stripe
};

// Writes stripes within one write transaction. Fails as SqliteStatement does.
class StripeWriter {
 public:
  explicit StripeWriter(SqliteDb* db) : db_(db) {}

  // Adds the stripe's row, or replaces it and removes all of its blocks.
  absl::Status Replace(int64_t number, const Stripe& stripe);
  // Removes the stripe's row and all of its blocks.
  absl::Status Remove(int64_t number);
  // Adds a block. ALREADY_EXISTS: another stripe has it.
  absl::Status AddBlock(int64_t number, size_t position, const BlockPlace& place);
  // Moves a block of this stripe; `stripe` has the new place.
  absl::Status Move(int64_t number, size_t position, const Stripe& stripe);

 private:
  static constexpr char kDeleteBlocks[] = "DELETE FROM blocks WHERE stripe = ?1";
  // `statement` takes the number of the stripe.
  absl::Status RemoveFrom(const char* statement, int64_t number);
  absl::StatusOr<int64_t> NodeNumber(const std::string& name);

  SqliteDb* const db_;
  std::unordered_map<std::string, int64_t> nodes_;  // that were asked for, with their numbers
};

}  // namespace ecpipe
