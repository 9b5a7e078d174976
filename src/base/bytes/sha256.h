// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), computed by OpenSSL. sha256.cc alone includes OpenSSL's header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

inline constexpr size_t kSha256Bytes = 32;

// True for 64 lower-case hexadecimal digits.
bool IsSha256Hex(std::string_view text);

// Hashes a stream of bytes. Used by one thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;

  void Update(std::span<const uint8_t> bytes);
  // 64 lower-case hexadecimal digits. To be called once, at the end.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Fills `out` with bytes from `offset` on.
using ReadAtFn = std::function<absl::Status(uint64_t offset, std::span<uint8_t> out)>;

// FinishHex() of the first `bytes` bytes.
absl::StatusOr<std::string> Sha256Of(const ReadAtFn& read_at, uint64_t bytes);

// DATA_LOSS "<what> SHA-256 <got>, expected <expected>" unless the two are equal. OK if `expected`
// is empty.
absl::Status CompareSha256(const std::string& what, const std::string& got,
                           const std::string& expected);
// The same for a block that was rebuilt; the message also says what to do.
absl::Status CompareRebuilt(const std::string& block_id, const std::string& got,
                            const std::string& expected);

}  // namespace ecpipe
