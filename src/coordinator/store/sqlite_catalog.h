// SPDX-License-Identifier: Apache-2.0
// The embedded catalog: stripes in one SQLite file. A Put that has returned OK survives a crash and
// a power cut. Readers never wait for a Put; writers wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/store/catalog.h"
#include "coordinator/store/sqlite_block_index.h"
#include "coordinator/store/sqlite_db.h"
#include "coordinator/store/sqlite_stripes.h"
#include "coordinator/store/stripe_record.h"

namespace ecpipe {

class SqliteCatalog : public Catalog {
 public:
  // The largest page that List returns, whatever it is asked for: 10,000 stripes of 14 blocks are
  // about 10 MB in memory.
  static constexpr int kMaxListedStripes = 10'000;

  struct Options {
    int writer_cache_kib = 64 << 10;
    // Small, because the kernel keeps the pages that readers share.
    int reader_cache_kib = 8 << 10;
    int reader_connections = 4;  // look-ups that run at once
    // 26 to 38 MB, which fits the writer's cache. Halving it doubles what a bulk load writes.
    int64_t recent_index_entries = 2'000'000;
    // For tests that need collisions. A file must always be opened with the same one.
    uint32_t (*block_hash)(std::string_view block_id) = &BlockIdHash;
  };

  // Opens or creates the database. Errors as in EnsureSchema and SqliteDb::Open.
  static absl::StatusOr<std::unique_ptr<SqliteCatalog>> Open(const std::string& path,
                                                             const Options& options);

  // As the interface says, and: INVALID_ARGUMENT when a stripe is in the batch twice, has more than
  // kMaxStripeBlocks blocks, or a name is empty or over kMaxCatalogIdBytes; UNKNOWN when the disk
  // failed in the commit: put the same stripes again, it does no harm. A block may move from
  // one stripe to another within one batch.
  absl::Status Put(const std::vector<Stripe>& stripes) override;
  absl::StatusOr<BlockLocation> FindBlock(const std::string& block_id) override;
  absl::StatusOr<Stripe> FindStripe(const std::string& stripe_id) override;
  absl::StatusOr<std::vector<Stripe>> List(const std::string& after_stripe_id, int limit) override;
  absl::StatusOr<uint64_t> CountStripes() override;
  absl::Status MoveBlock(const std::string& block_id, const std::string& node) override;

 private:
  struct Found {
    StripeRow row;
    int block_index = 0;
  };
  // A block that a batch brings into a stripe.
  struct NewBlock {
    BlockIndexEntry entry;
    const Stripe* stripe;          // in the caller's batch
    const std::string* block_id;  // in `stripe`
  };
  struct IndexChanges {
    std::vector<BlockIndexEntry> removed;
    std::vector<BlockIndexEntry> added;
    std::vector<NewBlock> new_blocks;
    int64_t new_stripes = 0;
  };

  explicit SqliteCatalog(const Options& options)
      : block_hash_(options.block_hash), index_(options.recent_index_entries) {}

  absl::Status PutStripe(SqliteDb* db, SqliteStripes::Writer* writer, const Stripe& stripe,
                         IndexChanges* changes);
  void NoteChanges(int64_t row, const Stripe* old_stripe, const Stripe& stripe,
                   IndexChanges* changes) const;
  absl::Status CheckBlocksFree(SqliteDb* db, std::vector<NewBlock>* blocks);
  absl::StatusOr<Found> FindBlockIn(SqliteDb* db, const std::string& block_id,
                                    int64_t except_row);

  uint32_t (*const block_hash_)(std::string_view);
  SqliteStripes stripes_;
  SqliteBlockIndex index_;               // used by the holder of the writer's lease only
  std::unique_ptr<SqlitePool> writer_;   // one connection: SQLite has one writer at a time
  std::unique_ptr<SqlitePool> readers_;
};

}  // namespace ecpipe
