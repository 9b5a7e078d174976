// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/sqlite_losses.h"

#include <span>
#include <utility>

#include "base/bytes/little_endian.h"
#include "base/status.h"
#include "coordinator/store/sqlite_schema.h"

namespace ecpipe {
namespace {

// Of a block: id, generation, length.
constexpr size_t kPackedBytes = 24;

constexpr char kKeepNode[] =
    "INSERT INTO lost_nodes(node, rack, control_address, data_address, storage_id, heard_unix_ms)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
constexpr char kKeepPool[] = "INSERT INTO lost_blocks(node, pool, blocks) VALUES(?1, ?2, ?3)";
constexpr char kForgetNode[] = "DELETE FROM lost_nodes WHERE node = ?1";
constexpr char kForgetPools[] = "DELETE FROM lost_blocks WHERE node = ?1";

absl::Status ForgetIn(SqliteDb* db, const std::string& node) {
  for (const char* sql : {kForgetNode, kForgetPools}) {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement forget, db->Prepare(sql));
    forget.BindText(1, node);
    ECPIPE_RETURN_IF_ERROR(forget.Execute());
  }
  return absl::OkStatus();
}

}  // namespace

std::string PackBlocks(const BlockList& blocks) {
  std::string packed(blocks.size() * kPackedBytes, '\0');
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(packed.data()), packed.size());
  size_t at = 0;
  for (const InternalBlock& block : blocks) {
    PutLittleEndian(bytes, at, static_cast<uint64_t>(block.id));
    PutLittleEndian(bytes, at + 8, block.stamp);
    PutLittleEndian(bytes, at + 16, block.bytes);
    at += kPackedBytes;
  }
  return packed;
}

absl::StatusOr<std::vector<InternalBlock>> UnpackBlocks(std::string_view packed) {
  if (packed.size() % kPackedBytes != 0) {
    return absl::DataLossError("the list of blocks ends within a block");
  }
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(packed.data()),
                                       packed.size());
  std::vector<InternalBlock> blocks;
  blocks.reserve(bytes.size() / kPackedBytes);
  for (size_t at = 0; at < bytes.size(); at += kPackedBytes) {
    const InternalBlock block{static_cast<int64_t>(GetLittleEndian<uint64_t>(bytes, at)),
                              GetLittleEndian<uint64_t>(bytes, at + 8),
                              GetLittleEndian<uint64_t>(bytes, at + 16)};
    if (block.id == 0) return absl::DataLossError("a block has no id");
    if (!blocks.empty() && block.id <= blocks.back().id) {
      return absl::DataLossError("the blocks are out of order");
    }
    blocks.push_back(block);
  }
  return blocks;
}

absl::StatusOr<std::unique_ptr<SqliteLosses>> SqliteLosses::Open(const std::string& path) {
  ECPIPE_RETURN_IF_ERROR(EnsureSchema(path));
  std::unique_ptr<SqliteLosses> losses(new SqliteLosses);
  ECPIPE_ASSIGN_OR_RETURN(losses->connection_,
                          SqlitePool::Open(path, {.sync = CommitSync::kProcessSafe}, 1));
  return losses;
}

absl::Status SqliteLosses::Keep(const NodeRecord& record, int64_t heard_unix_ms,
                                const NodeBlocks& blocks) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_RETURN_IF_ERROR(ForgetIn(db.get(), record.node_id));
  {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement keep, db->Prepare(kKeepNode));
    keep.BindText(1, record.node_id);
    keep.BindText(2, record.rack);
    keep.BindText(3, record.control_address);
    keep.BindText(4, record.data_address);
    keep.BindText(5, record.storage_id);
    keep.Bind(6, heard_unix_ms);
    ECPIPE_RETURN_IF_ERROR(keep.Execute());
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement keep_pool, db->Prepare(kKeepPool));
    for (const auto& [pool, of_pool] : blocks.pools) {
      keep_pool.BindText(1, record.node_id);
      keep_pool.BindText(2, pool);
      keep_pool.BindBlob(3, PackBlocks(of_pool));
      ECPIPE_RETURN_IF_ERROR(keep_pool.Execute());
    }
  }
  return transaction.Commit();
}

absl::Status SqliteLosses::Forget(const std::string& node) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_RETURN_IF_ERROR(ForgetIn(db.get(), node));
  return transaction.Commit();
}

absl::Status SqliteLosses::ForgetOlder(int64_t heard_unix_ms) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  for (const char* sql : {"DELETE FROM lost_blocks WHERE node IN"
                          " (SELECT node FROM lost_nodes WHERE heard_unix_ms < ?1)",
                          "DELETE FROM lost_nodes WHERE heard_unix_ms < ?1"}) {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement forget, db->Prepare(sql));
    forget.Bind(1, heard_unix_ms);
    ECPIPE_RETURN_IF_ERROR(forget.Execute());
  }
  return transaction.Commit();
}

absl::StatusOr<std::vector<std::string>> SqliteLosses::Nodes() {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query,
                          db->Prepare("SELECT node FROM lost_nodes ORDER BY node"));
  std::vector<std::string> nodes;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return nodes;
    nodes.emplace_back(query.Bytes(0));
  }
}

absl::StatusOr<LostNode> SqliteLosses::Load(const std::string& node) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement query,
      db->Prepare("SELECT rack, control_address, data_address, storage_id, heard_unix_ms"
                  " FROM lost_nodes WHERE node = ?1"));
  query.BindText(1, node);
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) return absl::NotFoundError("the blocks of node " + node + " are not on record");
  LostNode lost;
  lost.record.node_id = node;
  lost.record.rack = query.Bytes(0);
  lost.record.control_address = query.Bytes(1);
  lost.record.data_address = query.Bytes(2);
  lost.record.storage_id = query.Bytes(3);
  lost.heard_unix_ms = query.Int(4);
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement pools,
                          db->Prepare("SELECT pool, blocks FROM lost_blocks WHERE node = ?1"));
  pools.BindText(1, node);
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, pools.Step());
    if (!more) return lost;
    absl::StatusOr<std::vector<InternalBlock>> blocks = UnpackBlocks(pools.Bytes(1));
    if (!blocks.ok()) return Annotate(blocks.status(), "the record of node " + node);
    lost.blocks.pools.emplace(pools.Bytes(0), BlockList(*blocks));
  }
}

}  // namespace ecpipe
