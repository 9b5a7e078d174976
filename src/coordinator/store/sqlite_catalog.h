// SPDX-License-Identifier: Apache-2.0
// The embedded catalog: stripes in one SQLite file. A Put that has returned OK survives a crash and
// a power cut. Readers never wait for a Put; writers wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/sqlite_db.h"
#include "coordinator/store/sqlite_stripes.h"

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
  };

  // Opens or creates the database. Errors as in EnsureSchema and SqliteDb::Open.
  static absl::StatusOr<std::unique_ptr<SqliteCatalog>> Open(const std::string& path,
                                                             const Options& options);

  // As the interface says, and: INVALID_ARGUMENT when a stripe is in the batch twice, has more than
  // kMaxStripeBlocks blocks, or a name is empty or over kMaxCatalogIdBytes; UNKNOWN when the disk
  // failed in the commit: put the same stripes again, it does no harm. A block may move from
  // one stripe to another within one batch.
  absl::StatusOr<PutCounts> Put(const std::vector<Stripe>& stripes) override;
  absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>& stripes) override;
  absl::StatusOr<std::vector<Stripe>> Remove(const std::vector<std::string>& stripe_ids) override;
  absl::StatusOr<std::vector<Stripe>> TryRemove(
      const std::vector<std::string>& stripe_ids) override;
  absl::StatusOr<BlockLocation> FindBlock(const std::string& block_id) override;
  absl::StatusOr<Stripe> FindStripe(const std::string& stripe_id) override;
  absl::StatusOr<StripePage> List(const std::string& after_stripe_id, int limit) override;
  absl::StatusOr<NodeBlockPage> ListNode(const std::string& node, const std::string& page,
                                         int limit) override;
  absl::StatusOr<uint64_t> CountStripes() override;
  absl::StatusOr<std::map<std::string, uint64_t>> CountBlocksBut(
      const std::set<std::string>& but) override;
  absl::Status MoveBlock(const std::string& block_id, const std::string& node,
                         const Stripe& was) override;

 private:
  SqliteCatalog() = default;

  // Commits, and counts the stripes that this adds; negative: removes. The caller has the writer.
  absl::Status Commit(SqliteTransaction* transaction, int64_t added);

  std::unique_ptr<SqlitePool> writer_;  // one connection: SQLite has one writer at a time
  std::unique_ptr<SqlitePool> readers_;
  Mutex mutex_;
  int64_t added_ ABSL_GUARDED_BY(mutex_) = 0;  // since the start
  // Those that were there before. Counted once, for that reads a whole index.
  std::optional<int64_t> at_start_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
