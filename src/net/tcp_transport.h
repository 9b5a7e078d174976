// SPDX-License-Identifier: Apache-2.0
// The default data plane: framed TCP, with TLS or without, the receiver dials the sender. See
// docs/wire.md.
#pragma once

#include <memory>

#include "net/data_server.h"
#include "net/tls/tls.h"
#include "net/transport.h"

namespace ecpipe {

// `server` accepts the streams that others open to this process and must outlive the transport's
// streams. Null for a process that only receives (a requestor on a client host): Offer then fails.
// With `tls` every stream that this process opens is TLS, to the node that the plan names and no
// other; what it accepts is the server's affair.
std::unique_ptr<Transport> MakeTcpTransport(DataServer* server,
                                            std::shared_ptr<TlsContext> tls = nullptr);

}  // namespace ecpipe
