// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"
#include "ecpipe/v1/doctor.pb.h"
#include "net/tls/tls.h"

namespace ecpipe {

// Makes a TLS connection to the control port of the helper `node`, says nothing in it, and closes
// it: which end refuses the other's certificate, and why, or why there was no handshake. All stay
// empty if all is well, or if there was no answer within `timeout`.
v1::HandshakeFacts CheckHandshake(const std::string& address, const std::string& node,
                                  TlsContext* tls, Duration timeout);

}  // namespace ecpipe
