// SPDX-License-Identifier: Apache-2.0
// The default data plane: framed TCP, the receiver dials the sender. See docs/wire.md.
#pragma once

#include <memory>

#include "common/data_server.h"
#include "common/transport.h"

namespace ecpipe {

// `server` accepts the streams that others open to this process and must outlive the transport's
// streams. Null for a process that only receives (a requestor on a client host): Offer then fails.
std::unique_ptr<Transport> MakeTcpTransport(DataServer* server);

}  // namespace ecpipe
