// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), computed by OpenSSL. sha256.cc alone includes OpenSSL's header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ecpipe {

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

}  // namespace ecpipe
