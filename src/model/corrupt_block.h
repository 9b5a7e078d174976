// SPDX-License-Identifier: Apache-2.0
// A status that names the block whose bytes are wrong, so that programs need not parse the message.
// The name is a payload of the status: Annotate() keeps it, but the data plane and gRPC do not
// carry it (ReportPart and FinishRepair have a field for it).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// DATA_LOSS with this message, about this block.
[[nodiscard]] absl::Status CorruptBlockError(const std::string& block_id,
                                             const std::string& message);

// The block that the status names as corrupt; empty if it names none.
std::string CorruptBlockOf(const absl::Status& status);

}  // namespace ecpipe
