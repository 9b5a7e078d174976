// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_catalog.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/bytes/sha256.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/store/sqlite_schema.h"

namespace ecpipe {

namespace {

// Left joins, because blocks whose stripe is missing must show.
constexpr char kSelectByBlock[] =
    "SELECT " ECPIPE_STRIPE_COLUMNS("f.stripe") " FROM blocks AS f"
    " LEFT JOIN stripes AS s ON s.stripe = f.stripe" ECPIPE_JOIN_BLOCKS("f.stripe")
    " WHERE f.block_id = ?1 ORDER BY b.position";
constexpr char kSelectAfter[] =
    "SELECT " ECPIPE_STRIPE_COLUMNS("s.stripe") " FROM stripes AS s" ECPIPE_JOIN_BLOCKS(
        "s.stripe") " WHERE s.stripe_id > ?1 ORDER BY s.stripe_id, b.position";
constexpr char kSelectOfNode[] =
    "SELECT " ECPIPE_STRIPE_COLUMNS("f.stripe") " FROM (SELECT DISTINCT stripe FROM blocks"
    " WHERE node = (SELECT node FROM nodes WHERE name = ?1) AND stripe > ?2"
    " ORDER BY stripe LIMIT ?3) AS f"
    " LEFT JOIN stripes AS s ON s.stripe = f.stripe" ECPIPE_JOIN_BLOCKS("f.stripe")
    " ORDER BY f.stripe, b.position";
// Blocks count as well: those that a damaged file has of a missing stripe must not join a new one.
constexpr char kSelectNextNumber[] =
    "SELECT 1 + max((SELECT coalesce(max(stripe), 0) FROM stripes),"
    " (SELECT coalesce(max(stripe), 0) FROM blocks))";

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

int IndexOfBlock(const Stripe& stripe, const std::string& block_id) {
  for (size_t i = 0; i < stripe.blocks.size(); ++i) {
    if (stripe.blocks[i].block_id == block_id) return static_cast<int>(i);
  }
  return -1;
}

struct NewBlock {
  int64_t number;  // of its stripe
  size_t position;
  const Stripe* stripe;  // in the caller's batch

  const BlockPlace& place() const { return stripe->blocks[position]; }
};

// Stores the rows of stripes that are new or not as they were, without their blocks.
absl::StatusOr<std::vector<NewBlock>> PutRows(SqliteDb* db, StripeWriter* writer,
                                              const std::vector<const Stripe*>& sorted,
                                              PutCounts* counts) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement next, db->Prepare(kSelectNextNumber));
  ECPIPE_ASSIGN_OR_RETURN(const bool counted, next.Step());
  int64_t next_number = counted ? next.Int(0) : 1;
  std::vector<NewBlock> blocks;
  for (const Stripe* stripe : sorted) {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement find, db->Prepare(kSelectStripeById));
    find.BindText(1, stripe->stripe_id);
    ECPIPE_ASSIGN_OR_RETURN(const std::optional<StoredStripe> old, StripeRows(&find).Next());
    if (old && old->damage.ok() && old->stripe == *stripe) {
      ++counts->unchanged;
      continue;
    }
    const int64_t number = old ? old->number : next_number++;
    ++(old ? counts->replaced : counts->added);
    if (old) counts->were.push_back(old->stripe);
    ECPIPE_RETURN_IF_ERROR(writer->Replace(number, *stripe));
    for (size_t i = 0; i < stripe->blocks.size(); ++i) blocks.push_back({number, i, stripe});
  }
  return blocks;
}

// Says which stripe has the block; OK when that stripe is missing, and then removes the block.
absl::Status FreeBlock(SqliteDb* db, const NewBlock& block) {
  const std::string& block_id = block.place().block_id;
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement find, db->Prepare(kSelectByBlock));
  find.BindText(1, block_id);
  ECPIPE_ASSIGN_OR_RETURN(const bool found, find.Step());
  if (found && !find.IsNull(1)) {
    return absl::AlreadyExistsError("block " + Quote(block_id) + " of stripe " +
                                    Quote(block.stripe->stripe_id) + " already belongs to stripe " +
                                    Quote(std::string(find.Bytes(1))));
  }
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement remove,
                          db->Prepare("DELETE FROM blocks WHERE block_id = ?1"));
  remove.BindText(1, block_id);
  return remove.Execute();
}

absl::Status PutBlock(SqliteDb* db, StripeWriter* writer, const NewBlock& block) {
  const absl::Status added = writer->AddBlock(block.number, block.position, block.place());
  if (!absl::IsAlreadyExists(added)) return added;
  ECPIPE_RETURN_IF_ERROR(FreeBlock(db, block));
  return writer->AddBlock(block.number, block.position, block.place());
}

// Within a transaction of the caller.
absl::StatusOr<PutCounts> PutIn(SqliteDb* db, const std::vector<const Stripe*>& sorted) {
  StripeWriter writer(db);
  PutCounts counts;
  // All stripes have lost their old blocks by then, so a block may change its stripe within the
  // batch.
  ECPIPE_ASSIGN_OR_RETURN(std::vector<NewBlock> blocks, PutRows(db, &writer, sorted, &counts));
  // In the order of the largest index, so that neighbours meet the same page while it is cached.
  std::sort(blocks.begin(), blocks.end(), [](const NewBlock& a, const NewBlock& b) {
    return a.place().block_id < b.place().block_id;
  });
  for (const NewBlock& block : blocks) {
    ECPIPE_RETURN_IF_ERROR(
        Annotate(PutBlock(db, &writer, block), "put stripe " + Quote(block.stripe->stripe_id)));
  }
  return counts;
}

// Within a transaction of the caller.
absl::StatusOr<std::vector<Stripe>> RemoveIn(SqliteDb* db,
                                             const std::vector<std::string>& stripe_ids) {
  StripeWriter writer(db);
  std::vector<Stripe> removed;
  for (const std::string& stripe_id : stripe_ids) {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement find, db->Prepare(kSelectStripeById));
    find.BindText(1, stripe_id);
    ECPIPE_ASSIGN_OR_RETURN(std::optional<StoredStripe> stored, StripeRows(&find).Next());
    if (!stored) return absl::NotFoundError("the catalog has no stripe " + Quote(stripe_id));
    ECPIPE_RETURN_IF_ERROR(writer.Remove(stored->number));
    removed.push_back(std::move(stored->stripe));
  }
  return removed;
}

absl::StatusOr<StoredStripe> FindByBlock(SqliteDb* db, const std::string& block_id) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectByBlock));
  query.BindText(1, block_id);
  ECPIPE_ASSIGN_OR_RETURN(std::optional<StoredStripe> stored, StripeRows(&query).Next());
  if (!stored) return absl::NotFoundError("no stripe of the catalog has block " + Quote(block_id));
  if (!stored->damage.ok()) return Annotate(stored->damage, "find block " + Quote(block_id));
  if (IndexOfBlock(stored->stripe, block_id) >= 0) return *std::move(stored);
  return absl::DataLossError("find block " + Quote(block_id) + ": an index of " + db->path() +
                             " is damaged; REINDEX it with sqlite3 while no coordinator runs");
}

absl::StatusOr<int64_t> CountRows(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare("SELECT count(*) FROM stripes"));
  ECPIPE_RETURN_IF_ERROR(query.Step().status());
  return query.Int(0);
}

// The place in the ids of pages that ListNode gives out: the last stripe's number.
absl::StatusOr<int64_t> PageStart(const std::string& page) {
  int64_t number = 0;
  const char* end = page.data() + page.size();
  if (page.empty()) return number;
  const auto [stop, error] = std::from_chars(page.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  return absl::InvalidArgumentError(Quote(page) + " names no page of the catalog");
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteCatalog>> SqliteCatalog::Open(const std::string& path,
                                                                   const Options& options) {
  ECPIPE_RETURN_IF_ERROR(EnsureSchema(path));
  std::unique_ptr<SqliteCatalog> catalog(new SqliteCatalog);
  ECPIPE_ASSIGN_OR_RETURN(catalog->writer_,
                          SqlitePool::Open(path, {.cache_kib = options.writer_cache_kib}, 1));
  ECPIPE_ASSIGN_OR_RETURN(
      catalog->readers_,
      SqlitePool::Open(path, {.cache_kib = options.reader_cache_kib}, options.reader_connections));
  return catalog;
}

absl::Status CheckMayMove(const std::string& block_id, const std::string& node, const Stripe& was,
                          const Stripe& now) {
  const auto gone = [&](const std::string& why) {
    return absl::AbortedError(
        "block " + block_id + " was rebuilt on node " + node + ", but " + why +
        " meanwhile, so what the node has stored may be old and is not used (`ecpipe nodes clean` "
        "removes it); repair the block again");
  };
  if (!SameBytes(was, now)) return gone("stripe " + was.stripe_id + " was loaded anew");
  const int index = IndexOfBlock(now, block_id);
  if (index < 0) return gone("stripe " + was.stripe_id + " was loaded anew");
  const auto at = static_cast<size_t>(index);
  const std::string& there = now.blocks[at].node;
  // On `node`: the same move, once more.
  if (there == was.blocks[at].node || there == node) return absl::OkStatus();
  return gone("the catalog was told that it is on node " + there);
}

// ---- Writing --------------------------------------------------------------------------------

absl::StatusOr<PutCounts> SqliteCatalog::Put(const std::vector<Stripe>& stripes) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<const Stripe*> sorted, CheckBatch(stripes));
  if (sorted.empty()) return PutCounts{};
  const SqlitePool::Lease db = writer_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_ASSIGN_OR_RETURN(PutCounts counts, PutIn(db.get(), sorted));
  ECPIPE_RETURN_IF_ERROR(Commit(&transaction, static_cast<int64_t>(counts.added)));
  return counts;
}

absl::StatusOr<PutCounts> SqliteCatalog::TryPut(const std::vector<Stripe>& stripes) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<const Stripe*> sorted, CheckBatch(stripes));
  const SqlitePool::Lease db = writer_->Take();
  // It ends without a commit.
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  return PutIn(db.get(), sorted);
}

absl::StatusOr<std::vector<Stripe>> SqliteCatalog::Remove(
    const std::vector<std::string>& stripe_ids) {
  const SqlitePool::Lease db = writer_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_ASSIGN_OR_RETURN(std::vector<Stripe> removed, RemoveIn(db.get(), stripe_ids));
  ECPIPE_RETURN_IF_ERROR(Commit(&transaction, -static_cast<int64_t>(removed.size())));
  return removed;
}

absl::StatusOr<std::vector<Stripe>> SqliteCatalog::TryRemove(
    const std::vector<std::string>& stripe_ids) {
  const SqlitePool::Lease db = writer_->Take();
  // It ends without a commit.
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  return RemoveIn(db.get(), stripe_ids);
}

absl::Status SqliteCatalog::MoveBlock(const std::string& block_id, const std::string& node,
                                      const Stripe& was) {
  ECPIPE_RETURN_IF_ERROR(CheckName(node, "a node id"));
  const SqlitePool::Lease db = writer_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_ASSIGN_OR_RETURN(StoredStripe stored, FindByBlock(db.get(), block_id));
  ECPIPE_RETURN_IF_ERROR(CheckMayMove(block_id, node, was, stored.stripe));
  const auto position = static_cast<size_t>(IndexOfBlock(stored.stripe, block_id));
  stored.stripe.blocks[position].node = node;
  ECPIPE_RETURN_IF_ERROR(StripeWriter(db.get()).Move(stored.number, position, stored.stripe));
  return transaction.Commit();
}

absl::Status SqliteCatalog::Commit(SqliteTransaction* transaction, int64_t added) {
  ECPIPE_RETURN_IF_ERROR(transaction->Commit());
  MutexLock lock(&mutex_);
  added_ += added;
  return absl::OkStatus();
}

// ---- Reading --------------------------------------------------------------------------------

absl::StatusOr<BlockLocation> SqliteCatalog::FindBlock(const std::string& block_id) {
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(StoredStripe stored, FindByBlock(db.get(), block_id));
  const int block_index = IndexOfBlock(stored.stripe, block_id);
  return BlockLocation{std::move(stored.stripe), block_index};
}

absl::StatusOr<Stripe> SqliteCatalog::FindStripe(const std::string& stripe_id) {
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectStripeById));
  query.BindText(1, stripe_id);
  ECPIPE_ASSIGN_OR_RETURN(std::optional<StoredStripe> stored, StripeRows(&query).Next());
  if (!stored) return absl::NotFoundError("the catalog has no stripe " + Quote(stripe_id));
  return (*std::move(stored)).Checked();
}

absl::StatusOr<StripePage> SqliteCatalog::List(const std::string& after_stripe_id, int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  const auto most = static_cast<size_t>(std::min(limit, kMaxListedStripes));
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectAfter));
  query.BindText(1, after_stripe_id);
  StripeRows rows(&query);
  StripePage page;
  while (page.stripes.size() < most) {
    ECPIPE_ASSIGN_OR_RETURN(std::optional<StoredStripe> stored, rows.Next());
    if (!stored) break;
    if (stored->damage.ok()) {
      page.stripes.push_back(std::move(stored->stripe));
    } else if (++page.damaged_count <= kMaxNamedDamaged) {
      Log(LogLevel::kError, "catalog.damaged", {{"status", StatusText(stored->damage)}});
      page.damaged.push_back(std::move(stored->stripe.stripe_id));
    }
  }
  return page;
}

absl::StatusOr<NodeBlockPage> SqliteCatalog::ListNode(const std::string& node,
                                                      const std::string& page, int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  ECPIPE_ASSIGN_OR_RETURN(const int64_t after, PageStart(page));
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectOfNode));
  query.BindText(1, node);
  query.Bind(2, after);
  const int most = std::min(limit, kMaxListedStripes);
  query.Bind(3, most);
  StripeRows rows(&query);
  NodeBlockPage listed;
  for (int count = 0;; ++count) {
    ECPIPE_ASSIGN_OR_RETURN(std::optional<StoredStripe> stored, rows.Next());
    if (!stored) {
      if (count < most) listed.next.clear();
      return listed;
    }
    listed.next = std::to_string(stored->number);
    const Stripe& stripe = stored->stripe;
    for (const BlockPlace& place : stripe.blocks) {
      if (place.node != node) continue;
      listed.blocks.push_back({place.block_id, stripe});
      if (!stored->damage.ok()) listed.blocks.back().stripe = stored->damage;
    }
  }
}

absl::StatusOr<uint64_t> SqliteCatalog::CountStripes() {
  {
    MutexLock lock(&mutex_);
    if (at_start_) return static_cast<uint64_t>(*at_start_ + added_);
  }
  const SqlitePool::Lease db = readers_->Take();
  int64_t added = 0;
  {
    const SqlitePool::Lease nobody_writes = writer_->Take();
    ECPIPE_RETURN_IF_ERROR(db->BeginReading());
    MutexLock lock(&mutex_);
    added = added_;
  }
  const absl::StatusOr<int64_t> count = CountRows(db.get());
  ECPIPE_RETURN_IF_ERROR(db->EndReading());
  ECPIPE_RETURN_IF_ERROR(count.status());
  MutexLock lock(&mutex_);
  at_start_ = *count - added;
  return static_cast<uint64_t>(*at_start_ + added_);
}

absl::StatusOr<std::map<std::string, uint64_t>> SqliteCatalog::CountBlocksBut(
    const std::set<std::string>& but) {
  const SqlitePool::Lease db = readers_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement nodes, db->Prepare("SELECT node, name FROM nodes"));
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement count,
                          db->Prepare("SELECT count(*) FROM blocks WHERE node = ?1"));
  std::map<std::string, uint64_t> counts;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, nodes.Step());
    if (!more) return counts;
    std::string name(nodes.Bytes(1));
    if (but.contains(name)) continue;
    count.Bind(1, nodes.Int(0));
    ECPIPE_RETURN_IF_ERROR(count.Step().status());
    const auto blocks = static_cast<uint64_t>(count.Int(0));
    if (blocks > 0) counts[std::move(name)] = blocks;
    count.Reset();
  }
}

}  // namespace ecpipe
