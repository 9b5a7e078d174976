// SPDX-License-Identifier: Apache-2.0
#include "requestor/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "common/check.h"

namespace ecpipe {

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) { ECPIPE_CHECK(context != nullptr); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* const context;
};

// OpenSSL's calls fail only when memory is gone or SHA-256 is not compiled in.
Sha256::Sha256() : state_(std::make_unique<State>()) {
  ECPIPE_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const uint8_t> bytes) {
  ECPIPE_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::FinishHex() {
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest;
  unsigned int digest_bytes = 0;
  ECPIPE_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &digest_bytes) == 1);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < digest_bytes; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

}  // namespace ecpipe
