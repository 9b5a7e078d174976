// SPDX-License-Identifier: Apache-2.0
#include "net/tls/expiry.h"

#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <iterator>

namespace ecpipe {
namespace {

constexpr int64_t kDay = 86400;
constexpr int kSteps[] = {0, 1, 7, 30};  // in days

int64_t ExpiryOf(const X509* certificate) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &utc) != 1) return 0;
  return ::timegm(&utc);
}

}  // namespace

int64_t FirstExpiry(const x509_st* certificate, x509_store_st* trusted) {
  int64_t first = ExpiryOf(certificate);
  const STACK_OF(X509_OBJECT)* objects = X509_STORE_get0_objects(trusted);
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    const X509* ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    if (ca != nullptr) first = std::min(first, ExpiryOf(ca));
  }
  return first;
}

std::optional<int> ExpiryWarnings::Due(int64_t expiry, int64_t now) {
  if (expiry != expiry_) {
    expiry_ = expiry;
    warned_.reset();
  }
  const int64_t left = std::max<int64_t>(expiry - now, 0);
  const auto* const step = std::find_if(std::begin(kSteps), std::end(kSteps),
                                        [&](int days) { return left <= days * kDay; });
  if (step == std::end(kSteps) || (warned_ && *warned_ <= *step)) return std::nullopt;
  warned_ = *step;
  return static_cast<int>((left + kDay - 1) / kDay);
}

}  // namespace ecpipe
