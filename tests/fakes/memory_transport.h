// SPDX-License-Identifier: Apache-2.0
// The data plane within one process: frames are encoded, checksummed and verified as over TCP, but
// no kernel carries them. Unit tests run engines over it, and bench/ measures what they cost.
#pragma once

#include <cstddef>
#include <memory>

#include "net/transport.h"

namespace ecpipe {

struct MemoryTransportOptions {
  // Bytes under way on each stream. Small ones cut frames into pieces; the default is what
  // tcp_transport.cc allows to wait in a socket.
  size_t stream_bytes = 256u << 10;
};

// Both ends of a stream must come from one transport, in either order. A receiver whose edge or
// token nobody offers waits in vain.
std::unique_ptr<Transport> MakeMemoryTransport(const MemoryTransportOptions& options);

}  // namespace ecpipe
