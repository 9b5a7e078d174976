// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/limit_book.h"

#include <cmath>
#include <optional>
#include <utility>

#include "base/status.h"
#include "coordinator/store/sqlite_schema.h"

namespace ecpipe {
namespace {

constexpr char kRate[] = "repair_bytes_per_second";
constexpr char kMaxRunning[] = "max_running";
constexpr char kMaxSessions[] = "max_sessions";

std::optional<uint32_t> CountOf(double value) {
  if (!(value >= 0 && value <= UINT32_MAX) || value != std::floor(value)) return std::nullopt;
  return static_cast<uint32_t>(value);
}

// Adds one limit; `node` is empty for the cluster. False when it is none that could be set.
bool AddLimit(const std::string& node, const std::string& name, double value, Limits* limits) {
  if (node.empty()) {
    LimitsOfCluster& cluster = limits->cluster;
    if (name == kRate) {
      cluster.repair_bytes_per_second = value;
    } else if (name != kMaxRunning || !(cluster.max_running = CountOf(value))) {
      return false;
    }
    return CheckLimits(cluster).ok();
  }
  LimitsOfNode& of_node = limits->nodes[node];
  if (name == kRate) {
    of_node.repair_bytes_per_second = value;
  } else if (name != kMaxSessions || !(of_node.max_sessions = CountOf(value))) {
    return false;
  }
  return CheckLimits(node, of_node).ok();
}

absl::Status InsertAll(SqliteDb* db, const Limits& limits) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement insert,
                          db->Prepare("INSERT INTO limits(node, name, value) VALUES(?1, ?2, ?3)"));
  const auto add = [&](const std::string& node, const char* name,
                       const auto& value) -> absl::Status {
    if (!value) return absl::OkStatus();
    insert.BindText(1, node);
    insert.BindText(2, name);
    insert.BindDouble(3, static_cast<double>(*value));
    return insert.Execute();
  };
  ECPIPE_RETURN_IF_ERROR(add("", kRate, limits.cluster.repair_bytes_per_second));
  ECPIPE_RETURN_IF_ERROR(add("", kMaxRunning, limits.cluster.max_running));
  for (const auto& [id, node] : limits.nodes) {
    ECPIPE_RETURN_IF_ERROR(add(id, kRate, node.repair_bytes_per_second));
    ECPIPE_RETURN_IF_ERROR(add(id, kMaxSessions, node.max_sessions));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LimitBook>> LimitBook::Open(const std::string& path) {
  ECPIPE_RETURN_IF_ERROR(EnsureSchema(path));
  std::unique_ptr<LimitBook> book(new LimitBook);
  ECPIPE_ASSIGN_OR_RETURN(book->connection_,
                          SqlitePool::Open(path, {.sync = CommitSync::kPowerSafe}, 1));
  ECPIPE_RETURN_IF_ERROR(Annotate(book->Load(), path));
  return book;
}

absl::Status LimitBook::Load() {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query,
                          db->Prepare("SELECT node, name, value FROM limits"));
  Limits limits;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) break;
    const std::string node(query.Bytes(0));
    const std::string name(query.Bytes(1));
    if (!AddLimit(node, name, query.Double(2), &limits)) {
      return absl::DataLossError("'" + name + "' of '" + node + "' is not a limit");
    }
  }
  MutexLock lock(&mutex_);
  limits_ = std::move(limits);
  return absl::OkStatus();
}

Limits LimitBook::limits() {
  MutexLock lock(&mutex_);
  return limits_;
}

absl::Status LimitBook::Store(Limits limits) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_RETURN_IF_ERROR(db->Run("DELETE FROM limits"));
  ECPIPE_RETURN_IF_ERROR(InsertAll(db.get(), limits));
  const absl::Status committed = transaction.Commit();
  if (!committed.ok() && !absl::IsUnknown(committed)) return committed;
  MutexLock lock(&mutex_);
  limits_ = std::move(limits);
  return committed;
}

absl::Status LimitBook::Set(const LimitsOfCluster& cluster) {
  ECPIPE_RETURN_IF_ERROR(CheckLimits(cluster));
  MutexLock write_lock(&write_mutex_);
  Limits changed = limits();
  changed.cluster = cluster;
  return Store(std::move(changed));
}

absl::Status LimitBook::Set(const std::string& node, const LimitsOfNode& limits_of_node) {
  ECPIPE_RETURN_IF_ERROR(CheckLimits(node, limits_of_node));
  MutexLock write_lock(&write_mutex_);
  Limits changed = limits();
  if (limits_of_node == LimitsOfNode{}) {
    changed.nodes.erase(node);
  } else {
    changed.nodes[node] = limits_of_node;
  }
  return Store(std::move(changed));
}

}  // namespace ecpipe
