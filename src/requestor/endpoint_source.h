// SPDX-License-Identifier: Apache-2.0
// Who makes the repairs that the connections of an endpoint ask for.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "requestor/endpoint_wire.h"
#include "requestor/requestor.h"

namespace ecpipe {

// One repair.
class RepairSource {
 public:
  virtual ~RepairSource() = default;

  // As Requestor::Read. Called once.
  virtual absl::StatusOr<RepairReport> Read(const EndpointRequest& request, const ByteSink& sink,
                                            const BegunFn& begun) = 0;
  // Ends a Read() that is under way, soon. Any thread. One that begins later may not hear of it,
  // and ends with the first error of its sink.
  virtual void Cancel() = 0;
};

// Thread-safe.
using RepairSourceFactory =
    std::function<absl::StatusOr<std::unique_ptr<RepairSource>>(const EndpointRequest& request)>;

// Repairs by a Requestor of each one's own, with these options but for name and call timeout, which
// follow from the request.
RepairSourceFactory RequestorSources(RequestorOptions options);

}  // namespace ecpipe
