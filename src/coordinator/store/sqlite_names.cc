// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_names.h"

#include "base/status.h"

namespace ecpipe {

namespace {

struct Texts {
  const char* what;
  const char* all;
  const char* by_ref;
  const char* by_name;
  const char* insert;
};

const Texts& TextsOf(SqliteNames::Table table) {
  static constexpr Texts kNodes = {
      "node", "SELECT ref, name FROM nodes", "SELECT name FROM nodes WHERE ref = ?1",
      "SELECT ref FROM nodes WHERE name = ?1", "INSERT INTO nodes(name) VALUES(?1)"};
  static constexpr Texts kCodes = {
      "code", "SELECT ref, name FROM codes", "SELECT name FROM codes WHERE ref = ?1",
      "SELECT ref FROM codes WHERE name = ?1", "INSERT INTO codes(name) VALUES(?1)"};
  return table == SqliteNames::Table::kNodes ? kNodes : kCodes;
}

}  // namespace

absl::Status SqliteNames::Load(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(TextsOf(table_).all));
  std::unordered_map<int64_t, std::string> names;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) break;
    names.emplace(query.Int(0), query.Bytes(1));
  }
  MutexLock lock(&mutex_);
  names_ = std::move(names);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SqliteNames::Name(SqliteDb* db, int64_t ref) {
  {
    MutexLock lock(&mutex_);
    const auto found = names_.find(ref);
    if (found != names_.end()) return found->second;
  }
  const Texts& texts = TextsOf(table_);
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(texts.by_ref));
  query.Bind(1, ref);
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) {
    return absl::DataLossError(std::string("the catalog has no ") + texts.what + " with number " +
                               std::to_string(ref));
  }
  // Either this runs inside the transaction that adds the name, which may yet be rolled back, or
  // between its commit and Publish. So it is not kept here.
  return std::string(query.Bytes(0));
}

absl::StatusOr<uint32_t> SqliteNames::Writer::Ref(const std::string& name) {
  const auto found = refs_.find(name);
  if (found != refs_.end()) return found->second;
  ECPIPE_ASSIGN_OR_RETURN(const uint32_t ref, ReadOrAdd(name));
  refs_.emplace(name, ref);
  return ref;
}

absl::StatusOr<uint32_t> SqliteNames::Writer::ReadOrAdd(const std::string& name) {
  const Texts& texts = TextsOf(names_->table_);
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db_->Prepare(texts.by_name));
  query.BindText(1, name);
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (found) return static_cast<uint32_t>(query.Int(0));
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement insert, db_->Prepare(texts.insert));
  insert.BindText(1, name);
  ECPIPE_RETURN_IF_ERROR(insert.Execute());
  const int64_t ref = db_->last_insert_rowid();
  if (ref > kMaxNames) {
    return absl::ResourceExhaustedError("the catalog already has " + std::to_string(kMaxNames) +
                                        " different " + texts.what + " names, which is the limit");
  }
  return static_cast<uint32_t>(ref);
}

void SqliteNames::Writer::Publish() {
  MutexLock lock(&names_->mutex_);
  for (const auto& [name, ref] : refs_) names_->names_.emplace(ref, name);
}

}  // namespace ecpipe
