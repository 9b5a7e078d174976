// SPDX-License-Identifier: Apache-2.0
#include "net/tls/expiry.h"

#include <algorithm>
#include <iterator>

namespace ecpipe {
namespace {

constexpr int64_t kDay = 86400;
constexpr int kSteps[] = {0, 1, 7, 30};  // in days

}  // namespace

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
