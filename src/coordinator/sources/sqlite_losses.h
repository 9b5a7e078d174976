// SPDX-License-Identifier: Apache-2.0
// The blocks of dead nodes of a storage system, kept for as long as the nodes are dead, so that a
// coordinator that starts again can still say how many of them are rebuilt. They are in a file of
// their own, because storing a node with a million blocks takes 0.2 to 0.3 s, and repairs would
// wait for the journal.
//
// A power cut may take what was stored within the last seconds, as with the journal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cluster/node_table.h"
#include "coordinator/sources/reported_blocks.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

struct LostNode {
  NodeRecord record;          // its names and addresses; other fields are not kept
  int64_t heard_unix_ms = 0;  // time of its last heartbeat
  NodeBlocks blocks;          // of incarnation 0, which no helper has
};

// Thread-safe. Errors as of SqliteDb.
class SqliteLosses {
 public:
  // Opens or creates the database; also EnsureSchema's errors.
  static absl::StatusOr<std::unique_ptr<SqliteLosses>> Open(const std::string& path);

  // Replaces what was kept of the node.
  absl::Status Keep(const NodeRecord& record, int64_t heard_unix_ms, const NodeBlocks& blocks);
  absl::Status Forget(const std::string& node);
  // Forgets the nodes whose last heartbeat was before this time.
  absl::Status ForgetOlder(int64_t heard_unix_ms);

  absl::StatusOr<std::vector<std::string>> Nodes();  // the nodes on record
  // NOT_FOUND: the node is not on record. DATA_LOSS: its record is damaged.
  absl::StatusOr<LostNode> Load(const std::string& node);

 private:
  SqliteLosses() = default;

  std::unique_ptr<SqlitePool> connection_;  // one
};

// Converts the blocks of a pool to a column of bytes, and back. DATA_LOSS for bytes that PackBlocks
// cannot have written: blocks out of order or given twice, a block without an id, or half a block.
std::string PackBlocks(const BlockList& blocks);
absl::StatusOr<std::vector<InternalBlock>> UnpackBlocks(std::string_view bytes);

}  // namespace ecpipe
