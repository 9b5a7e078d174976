// SPDX-License-Identifier: Apache-2.0
// When certificates end, and when a daemon warns of it: 30, 7 and 1 days before, and at the end.
#pragma once

#include <cstdint>
#include <optional>

struct x509_st;
struct x509_store_st;

namespace ecpipe {

// When the first of a certificate and of the CAs in `trusted` ends, in Unix seconds. OpenSSL's X509
// and X509_STORE.
int64_t FirstExpiry(const x509_st* certificate, x509_store_st* trusted);

// Not thread-safe.
class ExpiryWarnings {
 public:
  // The days that are left, rounded up, if a warning is due that has not been given: 0 when it has
  // ended. Once one was due for an end, the next is at the next of the steps above. Both in Unix
  // seconds.
  std::optional<int> Due(int64_t expiry, int64_t now);

 private:
  int64_t expiry_ = 0;         // the end that `warned_` is about
  std::optional<int> warned_;  // the step, in days, of the last warning
};

}  // namespace ecpipe
