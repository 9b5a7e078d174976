// SPDX-License-Identifier: Apache-2.0
// A status that names the block whose bytes are not what they should be, so that whoever hears of
// it need not read the message. The name is a payload: Annotate() keeps it, the data plane and
// gRPC do not carry it (ReportPart and FinishRepair have a field for it).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// DATA_LOSS with this message, about this block.
[[nodiscard]] absl::Status CorruptBlockError(const std::string& block_id,
                                             const std::string& message);

// The block that the status is about; empty: the status is OK, or about none.
std::string CorruptBlockOf(const absl::Status& status);

}  // namespace ecpipe
