// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_exit.h"

#include <grpc/grpc.h>
#include <openssl/crypto.h>

#include <chrono>
#include <thread>

namespace ecpipe {

void PrepareRpcExit() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

bool RpcInUse() { return grpc_is_initialized() != 0; }

// gRPC joins its threads as its last user lets go of it, on whatever thread that is.
void AwaitRpcExit() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (RpcInUse() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleep-ok: gRPC tells nobody
  }
}

}  // namespace ecpipe
