// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// For the begin of main(), before OpenSSL is used by whichever library: has OpenSSL free nothing at
// exit. A thread of gRPC that is at work till then would miss it. Not for libecpipe: at exit its
// host's OpenSSL does what the host wants.
void PrepareRpcExit();

// Whether anybody in this process uses gRPC.
bool RpcInUse();

// For the end of main(), when nothing of gRPC is in use any more: waits until its threads have
// ended, two seconds at most. One that is still at a handshake would use OpenSSL beside, or after,
// what OpenSSL cleans up at exit.
void AwaitRpcExit();

}  // namespace ecpipe
