// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// Call it at the end of main(), when gRPC is no longer used: waits at most two seconds until gRPC's
// threads have ended. A thread that is still in a handshake would use OpenSSL while, or after,
// OpenSSL cleans up at exit.
void AwaitRpcExit();

}  // namespace ecpipe
