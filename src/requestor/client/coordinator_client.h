// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "net/tls/tls.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// A connection to the coordinator, over gRPC, that clients with different timeouts share: to open
// one costs more than a call. Dials when first used, and again when it has broken: by itself, so
// that a repair that begins meanwhile fails at once. Thread-safe.
class CoordinatorConnection {
 public:
  // `address`: host:port; `tls` null: plain text. INVALID_ARGUMENT for a malformed address.
  static absl::StatusOr<std::shared_ptr<CoordinatorConnection>> Open(
      const std::string& address, const std::shared_ptr<TlsContext>& tls);
  virtual ~CoordinatorConnection() = default;

  // `timeout` is the deadline of each call. The client keeps the connection open.
  virtual std::unique_ptr<CoordinatorApi> Client(Duration timeout) = 0;
};

// A client with a connection of its own. A call over a broken one first waits a moment for it to
// come back.
absl::StatusOr<std::unique_ptr<CoordinatorApi>> MakeCoordinatorClient(
    const std::string& address, Duration timeout, const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
