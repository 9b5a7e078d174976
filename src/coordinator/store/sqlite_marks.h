// SPDX-License-Identifier: Apache-2.0
// The marks of corrupt and suspect blocks, in a database of their own: a mark is stored rarely and
// must survive a power cut, so that no later recovery reads the block. No other database has its
// table, so the version of the schema does not tell of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

class SqliteMarks : public CorruptBlockStore {
 public:
  // Opens or creates the database. Errors as in EnsureSchema and SqliteDb::Open.
  static absl::StatusOr<std::unique_ptr<SqliteMarks>> Open(const std::string& path);

  // As the interface says, with the errors of SqliteDb. A suspect's `undecided` is not kept: it is
  // checked again after a restart.
  absl::Status Keep(const CorruptBlock& block) override;
  absl::Status Forget(const std::string& block_id, const std::string& node) override;
  absl::StatusOr<std::vector<CorruptBlock>> Load() override;

 private:
  SqliteMarks() = default;

  std::unique_ptr<SqlitePool> connection_;  // one: CorruptBlocks writes one mark at a time
};

}  // namespace ecpipe
