// SPDX-License-Identifier: Apache-2.0
// The two ends of a slice stream over any ByteStream: frames are encoded, checksummed and verified
// as over TCP.
#pragma once

#include <memory>

#include "fakes/byte_stream.h"
#include "net/transport.h"

namespace ecpipe {

// The stream is shared with its other end. Both close their end when they are destroyed.
std::unique_ptr<SliceReceiver> MakeFramedReceiver(const HopInput& input,
                                                  std::shared_ptr<ByteStream> stream);
std::unique_ptr<SliceSender> MakeFramedSender(const HopOutput& output,
                                              std::shared_ptr<ByteStream> stream);

}  // namespace ecpipe
