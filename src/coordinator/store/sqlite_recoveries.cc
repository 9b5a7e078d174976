// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_recoveries.h"

#include "base/status.h"
#include "coordinator/store/journal_rows.h"

namespace ecpipe {
namespace {

#define ECPIPE_RECOVERY_COLUMNS                                                     \
  "recovery_id, node, scheme, policy, slice_bytes, transport, streams_per_node,"    \
  " state, blocks, bytes, done_blocks, done_bytes, failed_blocks, started_unix_ms," \
  " ended_unix_ms, rebuild_after_unix_ms, kind, keeps_out"

constexpr char kRemoveRecovery[] = "DELETE FROM recoveries WHERE recovery_id = ?1";
constexpr char kStoreRecovery[] =
    "INSERT INTO recoveries(" ECPIPE_RECOVERY_COLUMNS
    ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
constexpr char kSelectRecoveries[] =
    "SELECT " ECPIPE_RECOVERY_COLUMNS
    " FROM recoveries WHERE keeps_out <> 0 OR state IN ('running', 'paused') OR recovery_id IN"
    " (SELECT recovery_id FROM recoveries ORDER BY recovery_id DESC LIMIT ?1)"
    " ORDER BY recovery_id DESC";

constexpr RecoveryState kRecoveryStates[] = {RecoveryState::kRunning,   RecoveryState::kPaused,
                                             RecoveryState::kDone,      RecoveryState::kPartial,
                                             RecoveryState::kCancelled, RecoveryState::kReturned};
constexpr RecoveryPolicy kPolicies[] = {RecoveryPolicy::kInOrder, RecoveryPolicy::kLeastRecent,
                                        RecoveryPolicy::kBalanced};
constexpr RecoveryKind kKinds[] = {RecoveryKind::kRebuild, RecoveryKind::kMove,
                                   RecoveryKind::kMaintenance};
constexpr TransportKind kTransports[] = {TransportKind::kTcp, TransportKind::kRedis};

absl::StatusOr<std::vector<std::string>> LoadTargets(SqliteDb* db, int64_t id) {
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement query,
      db->Prepare("SELECT position, node FROM recovery_targets WHERE recovery_id = ?1"
                  " ORDER BY position"));
  query.Bind(1, id);
  std::vector<std::string> targets;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return targets;
    if (query.Int(0) != static_cast<int64_t>(targets.size())) {
      return absl::DataLossError("a target of it is missing");
    }
    targets.emplace_back(query.Bytes(1));
  }
}

absl::StatusOr<RecoveryRecord> DecodeRecovery(SqliteDb* db, const SqliteStatement& row) {
  RecoveryRecord record;
  RecoveryRequest& request = record.request;
  record.recovery_id = static_cast<RecoveryId>(row.Int(0));
  request.node = row.Bytes(1);
  request.scheme = row.Bytes(2);
  ECPIPE_ASSIGN_OR_RETURN(request.policy, NamedIn(kPolicies, RecoveryPolicyName, row.Bytes(3)));
  ECPIPE_ASSIGN_OR_RETURN(request.slice_bytes, row.Uint32(4, UINT32_MAX));
  ECPIPE_ASSIGN_OR_RETURN(request.transport, NamedIn(kTransports, TransportName, row.Bytes(5)));
  ECPIPE_ASSIGN_OR_RETURN(request.streams_per_node, row.Uint32(6, UINT32_MAX));
  ECPIPE_ASSIGN_OR_RETURN(record.state, NamedIn(kRecoveryStates, RecoveryStateName, row.Bytes(7)));
  record.blocks = static_cast<uint64_t>(row.Int(8));
  record.bytes = static_cast<uint64_t>(row.Int(9));
  record.done_blocks = static_cast<uint64_t>(row.Int(10));
  record.done_bytes = static_cast<uint64_t>(row.Int(11));
  record.failed_blocks = static_cast<uint64_t>(row.Int(12));
  record.started_unix_ms = row.Int(13);
  record.ended_unix_ms = row.Int(14);
  record.rebuild_after_unix_ms = row.Int(15);
  ECPIPE_ASSIGN_OR_RETURN(request.kind, NamedIn(kKinds, RecoveryKindName, row.Bytes(16)));
  record.keeps_out = row.Int(17) != 0;
  ECPIPE_ASSIGN_OR_RETURN(request.hosts, LoadTargets(db, row.Int(0)));
  ECPIPE_RETURN_IF_ERROR(AsDamage(CheckRecovery(record)));
  return record;
}

}  // namespace

absl::Status CheckRecovery(const RecoveryRecord& record) {
  const RecoveryRequest& request = record.request;
  ECPIPE_RETURN_IF_ERROR(CheckName("its node", request.node));
  ECPIPE_RETURN_IF_ERROR(CheckName("its scheme", request.scheme));
  for (const std::string& node : request.hosts) {
    ECPIPE_RETURN_IF_ERROR(CheckName("a node that stores blocks", node));
  }
  if (request.slice_bytes > kMaxSliceBytes) {
    return absl::InvalidArgumentError("its slices have " + std::to_string(request.slice_bytes) +
                                      " bytes, but at most " + std::to_string(kMaxSliceBytes) +
                                      " are allowed");
  }
  for (const uint64_t count :
       {record.blocks, record.bytes, record.done_blocks, record.done_bytes, record.failed_blocks}) {
    if (count <= uint64_t{INT64_MAX}) continue;
    return absl::InvalidArgumentError("a count of it is negative, or over " +
                                      std::to_string(INT64_MAX));
  }
  return absl::OkStatus();
}

absl::Status StoreTargets(SqliteDb* db, RecoveryId id, const std::vector<std::string>& targets) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement remove,
                          db->Prepare("DELETE FROM recovery_targets WHERE recovery_id = ?1"));
  remove.Bind(1, static_cast<int64_t>(id));
  ECPIPE_RETURN_IF_ERROR(remove.Execute());
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement store,
      db->Prepare("INSERT INTO recovery_targets(recovery_id, position, node) VALUES(?1, ?2, ?3)"));
  for (size_t i = 0; i < targets.size(); ++i) {
    store.Bind(1, static_cast<int64_t>(id));
    store.Bind(2, static_cast<int64_t>(i));
    store.BindText(3, targets[i]);
    ECPIPE_RETURN_IF_ERROR(store.Execute());
  }
  return absl::OkStatus();
}

absl::Status StoreRecovery(SqliteDb* db, const RecoveryRecord& record) {
  ECPIPE_RETURN_IF_ERROR(CheckRecovery(record));
  const RecoveryRequest& request = record.request;
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement remove, db->Prepare(kRemoveRecovery));
  remove.Bind(1, static_cast<int64_t>(record.recovery_id));
  ECPIPE_RETURN_IF_ERROR(remove.Execute());
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement store, db->Prepare(kStoreRecovery));
  store.Bind(1, static_cast<int64_t>(record.recovery_id));
  store.BindText(2, request.node);
  store.BindText(3, request.scheme);
  store.BindText(4, RecoveryPolicyName(request.policy));
  store.Bind(5, request.slice_bytes);
  store.BindText(6, TransportName(request.transport.value_or(TransportKind::kTcp)));
  store.Bind(7, request.streams_per_node);
  store.BindText(8, RecoveryStateName(record.state));
  store.Bind(9, static_cast<int64_t>(record.blocks));
  store.Bind(10, static_cast<int64_t>(record.bytes));
  store.Bind(11, static_cast<int64_t>(record.done_blocks));
  store.Bind(12, static_cast<int64_t>(record.done_bytes));
  store.Bind(13, static_cast<int64_t>(record.failed_blocks));
  store.Bind(14, record.started_unix_ms);
  store.Bind(15, record.ended_unix_ms);
  store.Bind(16, record.rebuild_after_unix_ms);
  store.BindText(17, RecoveryKindName(request.kind));
  store.Bind(18, record.keeps_out ? 1 : 0);
  ECPIPE_RETURN_IF_ERROR(store.Execute());
  return StoreTargets(db, record.recovery_id, request.hosts);
}

absl::StatusOr<std::vector<RecoveryRecord>> LoadRecoveries(SqliteDb* db, int limit) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectRecoveries));
  query.Bind(1, limit);
  std::vector<RecoveryRecord> records;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return records;
    absl::StatusOr<RecoveryRecord> record = DecodeRecovery(db, query);
    if (record.ok()) {
      records.push_back(*std::move(record));
    } else if (absl::IsDataLoss(record.status())) {
      LogBadRow("recovery " + std::to_string(query.Int(0)), record.status());
    } else {
      return record.status();
    }
  }
}

}  // namespace ecpipe
