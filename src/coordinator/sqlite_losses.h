// SPDX-License-Identifier: Apache-2.0
// What dead DataNodes had, kept for as long as they are dead, so that a coordinator that starts
// again can still say how far the rebuilding of it is. In a file of its own, since a node of a
// million blocks takes 0.2 to 0.3 s, and repairs wait for the journal.
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
#include "coordinator/node_table.h"
#include "coordinator/reported_blocks.h"
#include "coordinator/sqlite_db.h"

namespace ecpipe {

struct LostNode {
  NodeRecord record;          // what names and places it; the rest is not kept
  int64_t heard_unix_ms = 0;  // when it was last heard of
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
  // Forgets the nodes that were last heard of before that.
  absl::Status ForgetOlder(int64_t heard_unix_ms);

  absl::StatusOr<std::vector<std::string>> Nodes();  // of which something is kept
  // NOT_FOUND: nothing is kept of it. DATA_LOSS: what is kept makes no sense.
  absl::StatusOr<LostNode> Load(const std::string& node);

 private:
  SqliteLosses() = default;

  std::unique_ptr<SqlitePool> connection_;  // one
};

// The blocks of a pool as a column of bytes, and back. DATA_LOSS for bytes that PackBlocks does not
// write: not in the order of ids, one twice, one that is of no group, or half a block.
std::string PackBlocks(const std::vector<InternalBlock>& blocks);
absl::StatusOr<std::vector<InternalBlock>> UnpackBlocks(std::string_view bytes);

}  // namespace ecpipe
