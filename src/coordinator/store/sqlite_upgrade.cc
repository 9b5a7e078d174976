// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_upgrade.h"

#include <span>
#include <utility>

#include "base/bytes/crc32c.h"
#include "base/bytes/hex.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/store/sqlite_recoveries.h"
#include "coordinator/store/sqlite_repairs.h"
#include "coordinator/store/sqlite_schema.h"
#include "coordinator/store/sqlite_stripes.h"

namespace ecpipe {
namespace {

// Version 2 had one host, as text. An id over 127 bytes, which this cannot pack, is dropped: that
// repair counts as a requestor's.
constexpr const char* kUpgradeFrom2 = R"sql(
ALTER TABLE repairs RENAME COLUMN host TO hosts;
ALTER TABLE repairs ADD COLUMN moved BLOB NOT NULL DEFAULT x'';
UPDATE repairs SET hosts = CASE
  WHEN length(CAST(hosts AS BLOB)) BETWEEN 1 AND 127
  THEN CAST(char(length(CAST(hosts AS BLOB))) || hosts AS BLOB) ELSE x'' END;
)sql";

constexpr const char* kUpgradeFrom3 = R"sql(
ALTER TABLE recoveries ADD COLUMN rebuild_after_unix_ms INTEGER NOT NULL DEFAULT 0;
)sql";

// Version 5 only told older programs that members may be of their second format; version 6 added
// the tables of losses, which CreateTables makes where they are missing.

constexpr const char* kUpgradeFrom7 = R"sql(
ALTER TABLE recoveries ADD COLUMN kind TEXT NOT NULL DEFAULT 'rebuild';
ALTER TABLE recoveries ADD COLUMN keeps_out INTEGER NOT NULL DEFAULT 0;
)sql";

constexpr const char* kSetAside = R"sql(
DROP TABLE block_index; DROP TABLE block_index_recent; DROP TABLE totals;
DROP INDEX repairs_by_start;
ALTER TABLE stripes RENAME TO old_stripes; ALTER TABLE nodes RENAME TO old_nodes;
ALTER TABLE repairs RENAME TO old_repairs; ALTER TABLE recoveries RENAME TO old_recoveries;
)sql";

// A number that was never given out becomes a name that there is not, and so stays damage.
constexpr const char* kCopyRows = R"sql(
INSERT INTO repairs(repair_id, attempt, first_byte, bytes, scheme, transport, requestor,
  recovery_id, state, started_unix_ms, ended_unix_ms, detail)
SELECT repair_id, attempt, first_byte, bytes, scheme, transport, requestor, recovery_id,
  CASE state WHEN 0 THEN 'running' WHEN 1 THEN 'done' WHEN 2 THEN 'failed'
    WHEN 3 THEN 'interrupted' ELSE 'unknown' END,
  started_unix_ms, ended_unix_ms, detail FROM old_repairs;
INSERT INTO recoveries(recovery_id, node, scheme, policy, slice_bytes, transport, streams_per_node,
  state, blocks, bytes, done_blocks, done_bytes, failed_blocks, started_unix_ms, ended_unix_ms,
  rebuild_after_unix_ms)
SELECT recovery_id, node, scheme,
  CASE policy WHEN 0 THEN 'in-order' WHEN 1 THEN 'least-recent' WHEN 2 THEN 'balanced'
    ELSE 'unknown' END,
  slice_bytes, CASE transport WHEN 0 THEN 'tcp' WHEN 1 THEN 'redis' ELSE 'unknown' END,
  streams_per_node,
  CASE state WHEN 0 THEN 'running' WHEN 1 THEN 'paused' WHEN 2 THEN 'done' WHEN 3 THEN 'partial'
    WHEN 4 THEN 'cancelled' WHEN 5 THEN 'returned' ELSE 'unknown' END,
  blocks, bytes, done_blocks, done_bytes, failed_blocks, started_unix_ms, ended_unix_ms,
  rebuild_after_unix_ms FROM old_recoveries;
)sql";

constexpr const char* kDropOld = R"sql(
DROP TABLE old_stripes; DROP TABLE old_nodes; DROP TABLE codes;
DROP TABLE old_repairs; DROP TABLE old_recoveries;
)sql";

constexpr size_t kCrcBytes = 4;
constexpr size_t kSha256Bytes = 32;

void AppendFixed(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

std::string CrcOf(const Stripe& stripe, std::string_view body) {
  std::string covered;
  AppendFixed(stripe.stripe_id.size(), 4, &covered);
  covered += stripe.stripe_id;
  AppendFixed(stripe.code.size(), 4, &covered);
  covered += stripe.code;
  AppendFixed(stripe.block_bytes, 8, &covered);
  covered += body;
  std::string crc;
  AppendFixed(Crc32c(std::span(reinterpret_cast<const uint8_t*>(covered.data()), covered.size())),
              kCrcBytes, &crc);
  return crc;
}

// Reads forward over bytes that may be anything; every read says whether it stayed inside.
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : rest_(bytes) {}

  bool Varint(uint32_t* value) {
    uint64_t sum = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      sum |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      *value = static_cast<uint32_t>(sum);
      return sum <= UINT32_MAX;
    }
    return false;
  }

  bool Take(size_t bytes, std::string_view* out) {
    if (rest_.size() < bytes) return false;
    *out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool UnpackMember(PackedReader* reader, bool with_sha256,
                  const std::map<int64_t, std::string>& nodes, std::string_view previous,
                  BlockPlace* place) {
  uint32_t node = 0;
  uint32_t shared = 0;
  uint32_t suffix_bytes = 0;
  std::string_view suffix;
  std::string_view sha256;
  if (!reader->Varint(&node) || !reader->Varint(&shared) || !reader->Varint(&suffix_bytes) ||
      !reader->Take(suffix_bytes, &suffix) || shared > previous.size() ||
      (with_sha256 && !reader->Take(kSha256Bytes, &sha256))) {
    return false;
  }
  const auto name = nodes.find(node);
  if (name == nodes.end()) return false;
  place->node = name->second;
  place->block_id = std::string(previous.substr(0, shared)) + std::string(suffix);
  place->sha256 = HexText({reinterpret_cast<const uint8_t*>(sha256.data()), sha256.size()});
  return !place->block_id.empty() && place->block_id.size() <= kMaxCatalogIdBytes;
}

absl::StatusOr<std::map<int64_t, std::string>> OldNodes(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare("SELECT ref, name FROM old_nodes"));
  std::map<int64_t, std::string> nodes;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return nodes;
    nodes.emplace(query.Int(0), query.Bytes(1));
  }
}

void LogDamage(const std::string& what, const absl::Status& damage) {
  Log(LogLevel::kError, "upgrade.damaged", {{"row", what}, {"status", StatusText(damage)}});
}

absl::Status CopyStripes(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(const auto nodes, OldNodes(db));
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement query,
      db->Prepare("SELECT s.row, s.stripe_id, c.name, s.block_bytes, s.members"
                  " FROM old_stripes AS s LEFT JOIN codes AS c ON c.ref = s.code ORDER BY s.row"));
  StripeWriter writer(db);
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return absl::OkStatus();
    const int64_t number = query.Int(0);
    Stripe stripe;
    stripe.stripe_id = query.Bytes(1);
    stripe.code = query.Bytes(2);
    stripe.block_bytes = static_cast<uint64_t>(query.Int(3));
    const absl::Status unpacked = UnpackMembers(query.Bytes(4), nodes, &stripe);
    // Without blocks it is damaged in the new tables as well.
    if (!unpacked.ok()) LogDamage("stripe " + stripe.stripe_id, unpacked);
    ECPIPE_RETURN_IF_ERROR(writer.Replace(number, stripe));
    for (size_t i = 0; i < stripe.blocks.size(); ++i) {
      ECPIPE_RETURN_IF_ERROR(writer.AddBlock(number, i, stripe.blocks[i]));
    }
  }
}

absl::Status UnpackLists(const SqliteStatement& row, RepairRecord* record) {
  ECPIPE_ASSIGN_OR_RETURN(record->block_ids, UnpackIds(row.Bytes(1)));
  ECPIPE_ASSIGN_OR_RETURN(record->hosts, UnpackIds(row.Bytes(2)));
  for (const char moved : row.Bytes(3)) {
    record->moved.push_back(static_cast<uint8_t>(moved));
    if (record->moved.back() < record->hosts.size()) continue;
    return absl::DataLossError("a moved row without a host");
  }
  return absl::OkStatus();
}

// Makes the record damage, since it lacks its lists.
absl::Status Spoil(SqliteDb* db, const char* sql, int64_t id, const absl::Status& damage) {
  LogDamage("journal record " + std::to_string(id), damage);
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement spoil, db->Prepare(sql));
  spoil.Bind(1, id);
  return spoil.Execute();
}

absl::Status CopyRepairBlocks(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement query,
      db->Prepare("SELECT repair_id, block_ids, hosts, moved FROM old_repairs"));
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return absl::OkStatus();
    RepairRecord record;
    record.repair_id = static_cast<RepairId>(query.Int(0));
    const absl::Status unpacked = UnpackLists(query, &record);
    ECPIPE_RETURN_IF_ERROR(
        unpacked.ok() ? StoreRepairBlocks(db, record)
                      : Spoil(db, "UPDATE repairs SET state = 'unknown' WHERE repair_id = ?1",
                              query.Int(0), unpacked));
  }
}

absl::Status CopyTargets(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query,
                          db->Prepare("SELECT recovery_id, targets FROM old_recoveries"));
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return absl::OkStatus();
    const int64_t id = query.Int(0);
    const absl::StatusOr<std::vector<std::string>> targets = UnpackIds(query.Bytes(1));
    ECPIPE_RETURN_IF_ERROR(
        targets.ok() ? StoreTargets(db, static_cast<RecoveryId>(id), *targets)
                     : Spoil(db, "UPDATE recoveries SET state = 'unknown' WHERE recovery_id = ?1",
                             id, targets.status()));
  }
}

}  // namespace

absl::Status UnpackMembers(std::string_view members, const std::map<int64_t, std::string>& nodes,
                           Stripe* stripe) {
  if (members.size() <= kCrcBytes) return absl::DataLossError("its record is cut short");
  const std::string_view body = members.substr(0, members.size() - kCrcBytes);
  if (members.substr(body.size()) != CrcOf(*stripe, body)) {
    return absl::DataLossError("the checksum of its record does not match");
  }
  PackedReader reader(body.substr(1));
  uint32_t count = 0;
  if (body[0] < 1 || body[0] > 2 || !reader.Varint(&count) || count == 0 ||
      count > kMaxStripeBlocks) {
    return absl::DataLossError("its record has an unknown format or number of blocks");
  }
  std::vector<BlockPlace> blocks(count);
  std::string previous;
  for (BlockPlace& place : blocks) {
    if (!UnpackMember(&reader, body[0] == 2, nodes, previous, &place)) {
      return absl::DataLossError("a block in its record is malformed");
    }
    previous = place.block_id;
  }
  if (!reader.empty()) return absl::DataLossError("its record goes on after the last block");
  stripe->blocks = std::move(blocks);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> UnpackIds(std::string_view packed) {
  std::vector<std::string> ids;
  while (!packed.empty()) {
    const size_t bytes = static_cast<uint8_t>(packed.front());
    packed.remove_prefix(1);
    if (bytes > packed.size()) return absl::DataLossError("a list of ids ends too early");
    ids.emplace_back(packed.substr(0, bytes));
    packed.remove_prefix(bytes);
  }
  return ids;
}

absl::Status UpgradeTables(SqliteDb* db, int64_t version) {
  Log(LogLevel::kInfo, "upgrade.begin",
      {{"file", db->path()}, {"version", std::to_string(version)}});
  if (version == 7) {
    ECPIPE_RETURN_IF_ERROR(db->Run(kUpgradeFrom7));
    Log(LogLevel::kInfo, "upgrade.end", {{"file", db->path()}});
    return absl::OkStatus();
  }
  if (version == 2) ECPIPE_RETURN_IF_ERROR(db->Run(kUpgradeFrom2));
  if (version <= 3) ECPIPE_RETURN_IF_ERROR(db->Run(kUpgradeFrom3));
  ECPIPE_RETURN_IF_ERROR(db->Run(kSetAside));
  ECPIPE_RETURN_IF_ERROR(CreateTables(db));
  ECPIPE_RETURN_IF_ERROR(CopyStripes(db));
  ECPIPE_RETURN_IF_ERROR(db->Run(kCopyRows));
  ECPIPE_RETURN_IF_ERROR(CopyRepairBlocks(db));
  ECPIPE_RETURN_IF_ERROR(CopyTargets(db));
  ECPIPE_RETURN_IF_ERROR(db->Run(kDropOld));
  ECPIPE_RETURN_IF_ERROR(CreateIndexes(db));
  Log(LogLevel::kInfo, "upgrade.end", {{"file", db->path()}});
  return absl::OkStatus();
}

}  // namespace ecpipe
