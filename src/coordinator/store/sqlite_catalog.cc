// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_catalog.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/bytes/sha256.h"
#include "base/status.h"
#include "coordinator/store/sqlite_schema.h"

namespace ecpipe {

namespace {

// One statement, so that index and stripes are of one snapshot. A left join, because an index entry
// without its stripe must show.
constexpr char kFindByHash[] =
    "SELECT " ECPIPE_STRIPE_COLUMNS
    ", i.stripe FROM (SELECT stripe FROM block_index WHERE hash = ?1 UNION ALL"
    " SELECT stripe FROM block_index_recent WHERE hash = ?1) AS i"
    " LEFT JOIN stripes AS s ON s.row = i.stripe";

// No row has this number: SQLite counts from 1.
constexpr int64_t kNoRow = 0;

std::string Quote(const std::string& name) { return "\"" + name + "\""; }

absl::Status CheckName(const std::string& name, const char* what) {
  if (name.empty()) return absl::InvalidArgumentError(std::string(what) + " is empty");
  if (name.size() > kMaxCatalogIdBytes) {
    return absl::InvalidArgumentError(std::string(what) + " " + Quote(name.substr(0, 32)) +
                                      "... is over " + std::to_string(kMaxCatalogIdBytes) +
                                      " bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckStripe(const Stripe& stripe) {
  ECPIPE_RETURN_IF_ERROR(CheckName(stripe.code, "the code"));
  if (stripe.block_bytes == 0) return absl::InvalidArgumentError("block_bytes is 0");
  if (!stripe.block_lengths.empty()) {
    return absl::InvalidArgumentError(
        "the catalog keeps only stripes whose blocks all have the same length");
  }
  if (stripe.blocks.empty() || stripe.blocks.size() > kMaxStripeBlocks) {
    return absl::InvalidArgumentError("it has " + std::to_string(stripe.blocks.size()) +
                                      " blocks; a stripe needs 1 to " +
                                      std::to_string(kMaxStripeBlocks));
  }
  std::set<std::string_view> ids;
  for (const BlockPlace& block : stripe.blocks) {
    ECPIPE_RETURN_IF_ERROR(CheckName(block.block_id, "a block id"));
    ECPIPE_RETURN_IF_ERROR(CheckName(block.node, "a node id"));
    const bool known = !block.sha256.empty();
    if ((known && !IsSha256Hex(block.sha256)) || known == stripe.blocks[0].sha256.empty()) {
      return absl::InvalidArgumentError(
          "a SHA-256 must be 64 lower-case hexadecimal digits, given for all blocks or for none");
    }
    if (!ids.insert(block.block_id).second) {
      return absl::InvalidArgumentError("block " + Quote(block.block_id) +
                                        " is in the stripe twice");
    }
  }
  return absl::OkStatus();
}

// The batch in the order of stripe ids, which is the order of the tree that it goes into.
absl::StatusOr<std::vector<const Stripe*>> CheckBatch(const std::vector<Stripe>& stripes) {
  std::vector<const Stripe*> sorted;
  sorted.reserve(stripes.size());
  for (const Stripe& stripe : stripes) {
    ECPIPE_RETURN_IF_ERROR(CheckName(stripe.stripe_id, "a stripe id"));
    ECPIPE_RETURN_IF_ERROR(Annotate(CheckStripe(stripe), "stripe " + Quote(stripe.stripe_id)));
    sorted.push_back(&stripe);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Stripe* a, const Stripe* b) { return a->stripe_id < b->stripe_id; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1]->stripe_id == sorted[i]->stripe_id) {
      return absl::InvalidArgumentError("stripe " + Quote(sorted[i]->stripe_id) +
                                        " is in the batch twice");
    }
  }
  return sorted;
}

absl::Status AddToStripeCount(SqliteDb* db, int64_t new_stripes) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement update,
                          db->Prepare("UPDATE totals SET stripes = stripes + ?1"));
  update.Bind(1, new_stripes);
  return update.Execute();
}

absl::Status AlreadyIn(const std::string& block_id, const std::string& stripe_id,
                       const std::string& holder_id) {
  return absl::AlreadyExistsError("block " + Quote(block_id) + " of stripe " + Quote(stripe_id) +
                                  " already belongs to stripe " + Quote(holder_id));
}

int IndexOfBlock(const Stripe& stripe, const std::string& block_id) {
  for (size_t i = 0; i < stripe.blocks.size(); ++i) {
    if (stripe.blocks[i].block_id == block_id) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteCatalog>> SqliteCatalog::Open(const std::string& path,
                                                                   const Options& options) {
  ECPIPE_RETURN_IF_ERROR(EnsureSchema(path));
  std::unique_ptr<SqliteCatalog> catalog(new SqliteCatalog(options));
  ECPIPE_ASSIGN_OR_RETURN(catalog->writer_,
                          SqlitePool::Open(path, {.cache_kib = options.writer_cache_kib}, 1));
  ECPIPE_ASSIGN_OR_RETURN(
      catalog->readers_,
      SqlitePool::Open(path, {.cache_kib = options.reader_cache_kib}, options.reader_connections));
  ECPIPE_RETURN_IF_ERROR(catalog->stripes_.Load(catalog->readers_->Take().get()));
  return catalog;
}

// ---- Writing --------------------------------------------------------------------------------

absl::Status SqliteCatalog::Put(const std::vector<Stripe>& stripes) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<const Stripe*> sorted, CheckBatch(stripes));
  if (sorted.empty()) return absl::OkStatus();
  const SqlitePool::Lease db = writer_->Take();
  // Before the transaction, so that an error here does not belie stripes that are stored.
  ECPIPE_RETURN_IF_ERROR(index_.MoveOld(db.get()));

  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  SqliteStripes::Writer writer(&stripes_, db.get());
  IndexChanges changes;
  for (const Stripe* stripe : sorted) {
    ECPIPE_RETURN_IF_ERROR(Annotate(PutStripe(db.get(), &writer, *stripe, &changes),
                                    "put stripe " + Quote(stripe->stripe_id)));
  }
  // All stripes are as they will be by now, so a block may change its stripe within the batch.
  ECPIPE_RETURN_IF_ERROR(CheckBlocksFree(db.get(), &changes.new_blocks));
  ECPIPE_RETURN_IF_ERROR(index_.Remove(db.get(), std::move(changes.removed)));
  ECPIPE_RETURN_IF_ERROR(index_.Add(db.get(), std::move(changes.added)));
  ECPIPE_RETURN_IF_ERROR(AddToStripeCount(db.get(), changes.new_stripes));
  ECPIPE_RETURN_IF_ERROR(transaction.Commit());
  writer.Publish();
  return absl::OkStatus();
}

absl::Status SqliteCatalog::PutStripe(SqliteDb* db, SqliteStripes::Writer* writer,
                                      const Stripe& stripe, IndexChanges* changes) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement find, db->Prepare(kSelectStripeById));
  find.BindText(1, stripe.stripe_id);
  ECPIPE_ASSIGN_OR_RETURN(const bool known, find.Step());
  if (!known) {
    ECPIPE_ASSIGN_OR_RETURN(const int64_t row, writer->Insert(stripe));
    ++changes->new_stripes;
    NoteChanges(row, nullptr, stripe, changes);
    return absl::OkStatus();
  }
  const int64_t row = find.Int(0);
  // A damaged stripe has to be replaceable. The index entries of blocks that it had stay behind
  // then, and do no harm: whoever follows one looks for the block id in the stripe.
  const absl::StatusOr<StripeRow> old = stripes_.Decode(db, find);
  if (old.ok() && old->stripe == stripe) return absl::OkStatus();
  find.Reset();
  ECPIPE_RETURN_IF_ERROR(writer->Update(row, stripe));
  NoteChanges(row, old.ok() ? &old->stripe : nullptr, stripe, changes);
  return absl::OkStatus();
}

void SqliteCatalog::NoteChanges(int64_t row, const Stripe* old_stripe, const Stripe& stripe,
                                IndexChanges* changes) const {
  // Blocks of one stripe may share a hash and then share the entry, hence sets.
  std::set<std::string_view> old_ids;
  std::set<uint32_t> old_hashes;
  if (old_stripe != nullptr) {
    for (const BlockPlace& block : old_stripe->blocks) {
      old_ids.insert(block.block_id);
      old_hashes.insert(block_hash_(block.block_id));
    }
  }
  std::set<uint32_t> hashes;
  for (const BlockPlace& block : stripe.blocks) {
    const BlockIndexEntry entry{block_hash_(block.block_id), row};
    if (!old_ids.contains(block.block_id)) {
      changes->new_blocks.push_back({entry, &stripe, &block.block_id});
    }
    if (hashes.insert(entry.hash).second && !old_hashes.contains(entry.hash)) {
      changes->added.push_back(entry);
    }
  }
  for (const uint32_t hash : old_hashes) {
    if (!hashes.contains(hash)) changes->removed.push_back({hash, row});
  }
}

absl::Status SqliteCatalog::CheckBlocksFree(SqliteDb* db, std::vector<NewBlock>* blocks) {
  std::sort(blocks->begin(), blocks->end(), [](const NewBlock& a, const NewBlock& b) {
    return std::tuple(StoredHash(a.entry.hash), std::string_view(*a.block_id)) <
           std::tuple(StoredHash(b.entry.hash), std::string_view(*b.block_id));
  });
  for (size_t i = 0; i < blocks->size(); ++i) {
    const NewBlock& block = (*blocks)[i];
    if (i > 0 && *(*blocks)[i - 1].block_id == *block.block_id) {
      return AlreadyIn(*block.block_id, block.stripe->stripe_id,
                       (*blocks)[i - 1].stripe->stripe_id);
    }
    const absl::StatusOr<Found> holder = FindBlockIn(db, *block.block_id, block.entry.stripe);
    if (holder.ok()) {
      return AlreadyIn(*block.block_id, block.stripe->stripe_id, holder->row.stripe.stripe_id);
    }
    // A damaged stripe that shares the hash must not keep healthy ones out.
    if (!absl::IsNotFound(holder.status()) && !absl::IsDataLoss(holder.status())) {
      return holder.status();
    }
  }
  return absl::OkStatus();
}

absl::Status SqliteCatalog::MoveBlock(const std::string& block_id, const std::string& node) {
  ECPIPE_RETURN_IF_ERROR(CheckName(node, "a node id"));
  const SqlitePool::Lease db = writer_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_ASSIGN_OR_RETURN(Found found, FindBlockIn(db.get(), block_id, kNoRow));
  found.row.stripe.blocks[static_cast<size_t>(found.block_index)].node = node;
  SqliteStripes::Writer writer(&stripes_, db.get());
  ECPIPE_RETURN_IF_ERROR(writer.Update(found.row.row, found.row.stripe));
  ECPIPE_RETURN_IF_ERROR(transaction.Commit());
  writer.Publish();
  return absl::OkStatus();
}

// ---- Reading --------------------------------------------------------------------------------

absl::StatusOr<SqliteCatalog::Found> SqliteCatalog::FindBlockIn(SqliteDb* db,
                                                                const std::string& block_id,
                                                                int64_t except_row) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kFindByHash));
  query.Bind(1, StoredHash(block_hash_(block_id)));
  // A damaged candidate counts only if no healthy one has the block.
  absl::Status damage;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) break;
    if (query.Int(5) == except_row) continue;
    if (query.IsNull(0)) {
      damage =
          absl::DataLossError("the index of " + db->path() + " names a stripe that does not exist");
      continue;
    }
    absl::StatusOr<StripeRow> row = stripes_.Decode(db, query);
    if (!row.ok()) {
      damage = row.status();
      continue;
    }
    const int block_index = IndexOfBlock(row->stripe, block_id);
    if (block_index >= 0) return Found{*std::move(row), block_index};
  }
  if (!damage.ok()) return Annotate(damage, "find block " + Quote(block_id));
  return absl::NotFoundError("no stripe of the catalog has block " + Quote(block_id));
}

absl::StatusOr<BlockLocation> SqliteCatalog::FindBlock(const std::string& block_id) {
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(Found found, FindBlockIn(db.get(), block_id, kNoRow));
  return BlockLocation{std::move(found.row.stripe), found.block_index};
}

absl::StatusOr<Stripe> SqliteCatalog::FindStripe(const std::string& stripe_id) {
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectStripeById));
  query.BindText(1, stripe_id);
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) return absl::NotFoundError("the catalog has no stripe " + Quote(stripe_id));
  ECPIPE_ASSIGN_OR_RETURN(StripeRow row, stripes_.Decode(db.get(), query));
  return std::move(row.stripe);
}

absl::StatusOr<std::vector<Stripe>> SqliteCatalog::List(const std::string& after_stripe_id,
                                                        int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement query,
      db->Prepare("SELECT " ECPIPE_STRIPE_COLUMNS " FROM stripes AS s WHERE s.stripe_id > ?1"
                  " ORDER BY s.stripe_id LIMIT ?2"));
  query.BindText(1, after_stripe_id);
  query.Bind(2, std::min(limit, kMaxListedStripes));
  std::vector<Stripe> page;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return page;
    ECPIPE_ASSIGN_OR_RETURN(StripeRow row, stripes_.Decode(db.get(), query));
    page.push_back(std::move(row.stripe));
  }
}

absl::StatusOr<uint64_t> SqliteCatalog::CountStripes() {
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare("SELECT stripes FROM totals"));
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) {
    return absl::DataLossError(db->path() +
                               ": the table of totals is empty, so the database is damaged");
  }
  return static_cast<uint64_t>(query.Int(0));
}

}  // namespace ecpipe
