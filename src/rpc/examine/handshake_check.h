// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ecpipe/v1/doctor.pb.h"
#include "net/tls/tls.h"
#include "rpc/examine/self_facts.h"

namespace ecpipe {

// Makes a TLS connection to the control port of the helper `node`, says nothing in it, and closes
// it: which end refuses the other's certificate, and why, or why there was no handshake. All stay
// empty if all is well, or if nobody listens there. Nothing: there was no answer within `timeout`.
std::optional<v1::HandshakeFacts> CheckHandshake(const std::string& address,
                                                 const std::string& node, TlsContext* tls,
                                                 Duration timeout);

// With the control ports of all these, some dozens at once, until `stop` says so; `timeout` is of
// each. Adds those that fail, and counts those of which nothing is known.
void CheckHandshakes(const std::vector<DialTarget>& helpers, Duration timeout,
                     const std::function<bool()>& stop, TlsContext* tls,
                     v1::ExamineClusterResponse* response);

}  // namespace ecpipe
