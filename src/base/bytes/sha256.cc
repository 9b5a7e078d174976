// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <vector>

#include "base/bytes/hex.h"
#include "base/status.h"

namespace ecpipe {

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) {
    if (context == nullptr) throw std::bad_alloc();
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* const context;
};

bool IsSha256Hex(std::string_view text) {
  return text.size() == 2 * kSha256Bytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

namespace {

// OpenSSL's calls fail only when memory is gone, or where OpenSSL is configured so that it has no
// SHA-256. Of that no caller can make anything.
void Require(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL does not compute SHA-256");
}

}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  Require(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const uint8_t> bytes) {
  Require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

std::string Sha256::FinishHex() {
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest;
  unsigned int digest_bytes = 0;
  Require(EVP_DigestFinal_ex(state_->context, digest.data(), &digest_bytes));
  return HexText({digest.data(), digest_bytes});
}

absl::StatusOr<std::string> Sha256Of(const ReadAtFn& read_at, uint64_t bytes) {
  Sha256 sha256;
  std::vector<uint8_t> buffer(1 << 20);
  for (uint64_t at = 0; at < bytes; at += buffer.size()) {
    const auto step = static_cast<size_t>(std::min<uint64_t>(buffer.size(), bytes - at));
    ECPIPE_RETURN_IF_ERROR(read_at(at, {buffer.data(), step}));
    sha256.Update({buffer.data(), step});
  }
  return sha256.FinishHex();
}

absl::Status CompareSha256(const std::string& what, const std::string& got,
                           const std::string& expected) {
  if (expected.empty() || got == expected) return absl::OkStatus();
  return absl::DataLossError(what + " SHA-256 " + got + ", expected " + expected);
}

absl::Status CompareRebuilt(const std::string& block_id, const std::string& got,
                            const std::string& expected) {
  const absl::Status compared =
      CompareSha256("block " + block_id + " was rebuilt with", got, expected);
  if (compared.ok()) return compared;
  return absl::DataLossError(std::string(compared.message()) +
                             ": a survivor is corrupt; those that were read are being checked, so "
                             "ask again soon, or with --verify locate if there are enough others");
}

}  // namespace ecpipe
