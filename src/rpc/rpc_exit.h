// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// For the end of main(), when nothing of gRPC is in use any more: waits until its threads have
// ended, two seconds at most. One that is still at a handshake would use OpenSSL beside, or after,
// what OpenSSL cleans up at exit.
void AwaitRpcExit();

}  // namespace ecpipe
