// SPDX-License-Identifier: Apache-2.0
// A status that names the block whose bytes are wrong, so that programs need not parse the message.
// The name is a payload of the status: Annotate() keeps it, but the data plane and gRPC do not
// carry it (ReportPart and FinishRepair have a field for it).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// DATA_LOSS with this message, about this block.
[[nodiscard]] absl::Status CorruptBlockError(const std::string& block_id,
                                             const std::string& message);

// The block that the status names as corrupt; empty if it names none.
std::string CorruptBlockOf(const absl::Status& status);

// The block that a store has under this id: `stored`, the SHA-256 that it had when it was stored,
// must be the one `expected`. An empty one is not known, and nothing is compared. DATA_LOSS about
// the block otherwise: it is another one, such as that of a time when its node was away.
[[nodiscard]] absl::Status CheckStoredAs(const std::string& block_id, const std::string& stored,
                                         const std::string& expected);

// What a helper says of a block that it has read from beginning to end. A block that does not match
// its checksums is DATA_LOSS instead.
struct WholeBlock {
  uint64_t bytes = 0;
  std::string sha256;          // 64 lower-case hexadecimal digits
  bool has_checksums = false;  // false: its bytes were compared with nothing
};

}  // namespace ecpipe
