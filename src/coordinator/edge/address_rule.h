// SPDX-License-Identifier: Apache-2.0
// Which addresses a helper may give as its own: others dial them, and send them tokens.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "coordinator/cluster/node_table.h"
#include "net/host_lookups.h"

namespace ecpipe {

class AddressRule {
 public:
  // `allowed`: hosts, as helpers write them, and networks such as 10.1.0.0/16 or fd00::/8.
  // INVALID_ARGUMENT: something that looks like a network and is none.
  static absl::StatusOr<AddressRule> Create(const std::vector<std::string>& allowed,
                                            HostLookups* lookups = &HostLookups::OfThisProcess());

  // PERMISSION_DENIED, naming the address: it neither leads to where the helper calls from, nor is
  // allowed. `peer` is gRPC's text for the caller. May ask a name server. UNAVAILABLE: that has not
  // answered by `deadline`, or not said whether the name is known; the next call may be answered.
  absl::Status Check(const NodeRecord& node, const std::string& peer, TimePoint deadline) const;

 private:
  struct Network {
    std::string bytes;  // of the address: 16, IPv4 as mapped into IPv6
    int prefix_bits = 0;
  };
  explicit AddressRule(HostLookups* lookups) : lookups_(lookups) {}
  bool AllowsHost(const std::string& host) const;
  bool AllowsAddress(const std::string& bytes) const;

  HostLookups* lookups_;
  std::vector<std::string> hosts_;
  std::vector<Network> networks_;
};

}  // namespace ecpipe
