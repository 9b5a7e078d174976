// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "requestor/client/requestor.h"
#include "sim/checks.h"
#include "sim/data_plane.h"

namespace ecpipe::sim {

// A client's process with the real requestor library, for one call.
class RequestorHost : public Host {
 public:
  RequestorHost(const std::string& node, Network* network, Checks* checks);
  ~RequestorHost() override;

  // On a fibre of this host. Both compare all bytes with the truth.
  absl::Status Read(const RepairTarget& target);
  absl::Status RepairToNodes(const RepairTarget& target, const std::vector<std::string>& nodes);
  // As Requestor::Cancel().
  void Cancel() { requestor_->Cancel(); }
  // The process is gone, at this instant.
  void Crash();

 private:
  class Api;

  Checks* const checks_;
  SimTransport* transport_ = nullptr;  // the requestor's
  std::unique_ptr<Requestor> requestor_;
};

}  // namespace ecpipe::sim
