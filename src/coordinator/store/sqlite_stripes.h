// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/sqlite_db.h"
#include "coordinator/store/sqlite_names.h"

namespace ecpipe {

// The columns that SqliteStripes::Decode takes, of the table under the alias `s`.
#define ECPIPE_STRIPE_COLUMNS "s.row, s.stripe_id, s.code, s.block_bytes, s.members"

inline constexpr char kSelectStripeById[] =
    "SELECT " ECPIPE_STRIPE_COLUMNS " FROM stripes AS s WHERE s.stripe_id = ?1";

struct StripeRow {
  int64_t row = 0;  // the row's number in the table; stays the stripe's own for its life
  Stripe stripe;
};

// The stripes table with its names: rows in, Stripe values out. A row that does not decode is
// DATA_LOSS and names the stripe. Thread-safe once loaded, each thread with its own connection.
class SqliteStripes {
 public:
  absl::Status Load(SqliteDb* db);

  // The stripe of a row that starts with ECPIPE_STRIPE_COLUMNS.
  absl::StatusOr<StripeRow> Decode(SqliteDb* db, const SqliteStatement& row);

  // Writes stripes within one write transaction.
  class Writer {
   public:
    Writer(SqliteStripes* stripes, SqliteDb* db)
        : db_(db), nodes_(&stripes->nodes_, db), codes_(&stripes->codes_, db) {}
    // The number of the new row.
    absl::StatusOr<int64_t> Insert(const Stripe& stripe);
    absl::Status Update(int64_t row, const Stripe& stripe);
    // Call once the transaction is committed.
    void Publish();

   private:
    absl::StatusOr<std::string> Encode(const Stripe& stripe);

    SqliteDb* db_;
    SqliteNames::Writer nodes_;
    SqliteNames::Writer codes_;
  };

 private:
  absl::StatusOr<Stripe> DecodeStripe(SqliteDb* db, const SqliteStatement& row);

  SqliteNames nodes_{SqliteNames::Table::kNodes};
  SqliteNames codes_{SqliteNames::Table::kCodes};
};

}  // namespace ecpipe
