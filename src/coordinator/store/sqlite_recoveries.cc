// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_recoveries.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "coordinator/store/packed_ids.h"
#include "coordinator/store/stripe_record.h"

namespace ecpipe {
namespace {

#define ECPIPE_RECOVERY_COLUMNS                                                           \
  "recovery_id, node, targets, scheme, policy, slice_bytes, transport, streams_per_node," \
  " state, blocks, bytes, done_blocks, done_bytes, failed_blocks, started_unix_ms,"       \
  " ended_unix_ms, rebuild_after_unix_ms"

constexpr char kStoreRecovery[] =
    "INSERT OR REPLACE INTO recoveries(" ECPIPE_RECOVERY_COLUMNS
    ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
    " ?15, ?16, ?17)";
constexpr char kSelect[] =
    "SELECT " ECPIPE_RECOVERY_COLUMNS " FROM recoveries ORDER BY recovery_id DESC LIMIT ?1";

// The place in each of these is in files: add at the end only.
constexpr RecoveryState kStoredStates[] = {RecoveryState::kRunning,   RecoveryState::kPaused,
                                           RecoveryState::kDone,      RecoveryState::kPartial,
                                           RecoveryState::kCancelled, RecoveryState::kReturned};
constexpr RecoveryPolicy kStoredPolicies[] = {
    RecoveryPolicy::kInOrder, RecoveryPolicy::kLeastRecent, RecoveryPolicy::kBalanced};
constexpr TransportKind kStoredTransports[] = {TransportKind::kTcp, TransportKind::kRedis};

template <typename Value, size_t count>
int64_t PlaceOf(const Value (&values)[count], Value value) {
  return std::find(values, values + count, value) - values;
}

template <typename Value, size_t count>
absl::StatusOr<Value> ValueAt(const Value (&values)[count], int64_t place) {
  if (place >= 0 && static_cast<size_t>(place) < count) return values[place];
  return absl::DataLossError("a recovery's row has the unknown value " + std::to_string(place));
}

absl::StatusOr<RecoveryRecord> Decode(const SqliteStatement& row) {
  RecoveryRecord record;
  record.recovery_id = static_cast<RecoveryId>(row.Int(0));
  record.request.node = row.Bytes(1);
  ECPIPE_ASSIGN_OR_RETURN(record.request.to, UnpackIds(row.Bytes(2)));
  record.request.scheme = row.Bytes(3);
  ECPIPE_ASSIGN_OR_RETURN(record.request.policy, ValueAt(kStoredPolicies, row.Int(4)));
  ECPIPE_ASSIGN_OR_RETURN(record.request.slice_bytes, StoredUint32(row, 5, kMaxSliceBytes));
  ECPIPE_ASSIGN_OR_RETURN(record.request.transport, ValueAt(kStoredTransports, row.Int(6)));
  ECPIPE_ASSIGN_OR_RETURN(record.request.streams_per_node, StoredUint32(row, 7, UINT32_MAX));
  ECPIPE_ASSIGN_OR_RETURN(record.state, ValueAt(kStoredStates, row.Int(8)));
  record.blocks = static_cast<uint64_t>(row.Int(9));
  record.bytes = static_cast<uint64_t>(row.Int(10));
  record.done_blocks = static_cast<uint64_t>(row.Int(11));
  record.done_bytes = static_cast<uint64_t>(row.Int(12));
  record.failed_blocks = static_cast<uint64_t>(row.Int(13));
  record.started_unix_ms = row.Int(14);
  record.ended_unix_ms = row.Int(15);
  record.rebuild_after_unix_ms = row.Int(16);
  return record;
}

}  // namespace

absl::Status StoreRecovery(SqliteDb* db, const RecoveryRecord& record) {
  const RecoveryRequest& request = record.request;
  for (const std::string& node : request.to) {
    if (node.size() > kMaxCatalogIdBytes) {
      return absl::InvalidArgumentError("a node id is longer than " +
                                        std::to_string(kMaxCatalogIdBytes) + " bytes");
    }
  }
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement store, db->Prepare(kStoreRecovery));
  store.Bind(1, static_cast<int64_t>(record.recovery_id));
  store.BindText(2, request.node);
  store.BindBlob(3, PackIds(request.to));
  store.BindText(4, request.scheme);
  store.Bind(5, PlaceOf(kStoredPolicies, request.policy));
  store.Bind(6, request.slice_bytes);
  store.Bind(7, PlaceOf(kStoredTransports, request.transport.value_or(TransportKind::kTcp)));
  store.Bind(8, request.streams_per_node);
  store.Bind(9, PlaceOf(kStoredStates, record.state));
  store.Bind(10, static_cast<int64_t>(record.blocks));
  store.Bind(11, static_cast<int64_t>(record.bytes));
  store.Bind(12, static_cast<int64_t>(record.done_blocks));
  store.Bind(13, static_cast<int64_t>(record.done_bytes));
  store.Bind(14, static_cast<int64_t>(record.failed_blocks));
  store.Bind(15, record.started_unix_ms);
  store.Bind(16, record.ended_unix_ms);
  store.Bind(17, record.rebuild_after_unix_ms);
  return store.Execute();
}

absl::StatusOr<std::vector<RecoveryRecord>> LoadRecoveries(SqliteDb* db, int limit) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelect));
  query.Bind(1, limit);
  std::vector<RecoveryRecord> records;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return records;
    ECPIPE_ASSIGN_OR_RETURN(RecoveryRecord record, Decode(query));
    records.push_back(std::move(record));
  }
}

}  // namespace ecpipe
