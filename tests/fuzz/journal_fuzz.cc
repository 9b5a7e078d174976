// SPDX-License-Identifier: Apache-2.0
// Rows of the journal that no ecpipe has written, or that a disk has damaged: DATA_LOSS, or a
// record that can be written and read again.
#include <algorithm>
#include <iterator>
#include <string>

#include "base/check.h"
#include "coordinator/store/sqlite_db.h"
#include "coordinator/store/sqlite_journal.h"
#include "fuzz_input.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {
namespace {

constexpr int64_t kId = 7;

// A journal, and a connection past it to the same file.
struct Journals {
  ScratchDirectory directory;
  std::unique_ptr<SqliteJournal> journal = Open();
  std::unique_ptr<SqliteDb> rows =
      SqliteDb::Open(Path(), {.sync = CommitSync::kProcessSafe}).value();

  std::string Path() const { return directory.File("journal.db"); }
  std::unique_ptr<SqliteJournal> Open() const { return SqliteJournal::Open(Path()).value(); }
};

// One of the words that the journal knows, or another one.
std::string Word(FuzzInput* input) {
  static const std::string kWords[] = {
      "running",      "done",     "failed",    "interrupted", "paused",
      "partial",      "tcp",      "cancelled", "returned",    "in-order",
      "least-recent", "balanced", "redis",     "unknown",     ""};
  return kWords[input->Take<uint8_t>() % std::size(kWords)];
}

// Stores a row whose first column is kId. Kinds: integer, small integer, text, word, text or NULL.
void Store(SqliteDb* db, const char* sql, FuzzInput* input, const std::string& kinds) {
  auto store = db->Prepare(sql);
  ECPIPE_CHECK(store.ok());
  store->Bind(1, kId);
  for (size_t i = 0; i < kinds.size(); ++i) {
    const int parameter = static_cast<int>(i) + 2;
    if (kinds[i] == 'i') store->Bind(parameter, input->Take<int64_t>());
    if (kinds[i] == 's') store->Bind(parameter, input->Take<int8_t>());
    if (kinds[i] == 't') store->BindText(parameter, input->Text());
    if (kinds[i] == 'w') store->BindText(parameter, Word(input));
    if (kinds[i] != 'n') continue;
    if (const std::string text = input->Text(); text != "NULL") store->BindText(parameter, text);
  }
  const absl::Status stored = store->Execute();
  ECPIPE_CHECK(stored.ok());
}

void CheckRepair(Journals* journals, FuzzInput* input) {
  SqliteDb* const db = journals->rows.get();
  ECPIPE_CHECK(db->Run("DELETE FROM repairs; DELETE FROM repair_blocks").ok());
  Store(db,
        "INSERT INTO repairs(repair_id, attempt, first_byte, bytes, scheme, transport, requestor,"
        " recovery_id, state, started_unix_ms, ended_unix_ms, detail)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        input, "iiitttiwiit");
  for (int row = 0; row < 70 && !input->empty(); ++row) {
    Store(db,
          "INSERT OR REPLACE INTO repair_blocks(repair_id, position, block_id, host, moved)"
          " VALUES(?1, ?2, ?3, ?4, ?5)",
          input, "snns");
  }
  SqliteJournal& journal = *journals->journal;
  const auto record = journal.Find(kId);
  const auto recent = journal.Recent(10);
  ECPIPE_CHECK(recent.ok() && recent->size() == (record.ok() ? 1 : 0));
  if (!record.ok()) {
    ECPIPE_CHECK(absl::IsDataLoss(record.status()));
    return;
  }
  ECPIPE_CHECK(record->block_ids.size() <= kMaxRows && record->hosts.size() <= kMaxRows);
  for (const Row row : record->moved) ECPIPE_CHECK(row < record->hosts.size());
  ECPIPE_CHECK(journal.Record(*record).ok());
  const auto again = journal.Find(kId);
  ECPIPE_CHECK(again.ok() && *again == *record);
}

void CheckRecovery(Journals* journals, FuzzInput* input) {
  SqliteDb* const db = journals->rows.get();
  ECPIPE_CHECK(db->Run("DELETE FROM recoveries; DELETE FROM recovery_targets").ok());
  Store(db,
        "INSERT INTO recoveries(recovery_id, node, scheme, policy, slice_bytes, transport,"
        " streams_per_node, state, blocks, bytes, done_blocks, done_bytes, failed_blocks,"
        " started_unix_ms, ended_unix_ms, rebuild_after_unix_ms)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        input, "ttwiwiwiiiiiiii");
  for (int row = 0; row < 10 && !input->empty(); ++row) {
    Store(db,
          "INSERT OR REPLACE INTO recovery_targets(recovery_id, position, node)"
          " VALUES(?1, ?2, ?3)",
          input, "st");
  }
  const auto records = journals->journal->Recoveries(10);
  ECPIPE_CHECK(records.ok());
  if (records->empty()) return;
  ECPIPE_CHECK(records->size() == 1 && records->front().request.slice_bytes <= kMaxSliceBytes);
  ECPIPE_CHECK(journals->journal->RecordRecovery(records->front()).ok());
  const auto again = journals->journal->Recoveries(10);
  ECPIPE_CHECK(again.ok() && *again == *records);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ecpipe::Journals journals;
  ecpipe::FuzzInput input(data, std::min<size_t>(size, 32 << 10));
  if (input.Take<uint8_t>() % 2 == 0) {
    ecpipe::CheckRepair(&journals, &input);
  } else {
    ecpipe::CheckRecovery(&journals, &input);
  }
  return 0;
}
