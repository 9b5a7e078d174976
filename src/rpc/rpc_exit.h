// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// Call it at the beginning of main(), before any library uses OpenSSL: makes OpenSSL free nothing
// at exit. A thread of gRPC that still works then would miss it. Not for libecpipe: the host
// decides what its OpenSSL does at exit.
void PrepareRpcExit();

// Returns whether anything in this process uses gRPC.
bool RpcInUse();

// Call it at the end of main(), when gRPC is no longer used: waits at most two seconds until gRPC's
// threads have ended. A thread that is still in a handshake would use OpenSSL while, or after,
// OpenSSL cleans up at exit.
void AwaitRpcExit();

}  // namespace ecpipe
