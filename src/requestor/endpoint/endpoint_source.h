// SPDX-License-Identifier: Apache-2.0
// The source of the repairs that the connections of an endpoint ask for.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "requestor/client/requestor.h"
#include "requestor/endpoint/endpoint_wire.h"

namespace ecpipe {

// One repair.
class RepairSource {
 public:
  virtual ~RepairSource() = default;

  // As Requestor::ReadSeveral, of the request's targets over the longest of their ranges. Called
  // once.
  virtual absl::StatusOr<RepairReport> Read(const EndpointRequest& request, const PiecesSink& sink,
                                            const BegunFn& begun) = 0;
  // Soon ends a running Read(), and tells the coordinator why. Any thread. A Read() that begins
  // later may miss it, and ends with the first error of its sink.
  virtual void Cancel(const absl::Status& why) = 0;
};

// Thread-safe.
using RepairSourceFactory =
    std::function<absl::StatusOr<std::unique_ptr<RepairSource>>(const EndpointRequest& request)>;

// Makes each repair with a Requestor of its own. It has these options, except for the name and the
// call timeout, which follow from the request. All share one connection to the coordinator, which
// is dialled when it is first needed. The errors are those of Requestor::Connect.
absl::StatusOr<RepairSourceFactory> RequestorSources(RequestorOptions options);

}  // namespace ecpipe
