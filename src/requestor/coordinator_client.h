// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/tls.h"
#include "requestor/coordinator_api.h"

namespace ecpipe {

// Speaks to the coordinator at `address` (host:port) over gRPC; connects when first used. `timeout`
// is the deadline of each call; `tls` null: plain text. INVALID_ARGUMENT for a malformed address.
absl::StatusOr<std::unique_ptr<CoordinatorApi>> MakeCoordinatorClient(
    const std::string& address, Duration timeout, const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
