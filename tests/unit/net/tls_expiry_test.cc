// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "net/tls/expiry.h"

namespace ecpipe::tls_expiry_test {
namespace {

constexpr int64_t kDay = 86400;
constexpr int64_t kEnd = 1'800'000'000;

TEST(ExpiryWarnings, OneAStep) {
  ExpiryWarnings warnings;
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 90 * kDay), std::nullopt);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 30 * kDay - 1), std::nullopt);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 30 * kDay), 30);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 29 * kDay), std::nullopt);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 7 * kDay + 1), 7);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 2 * kDay), std::nullopt);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 100), 1);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 1), std::nullopt);
  EXPECT_EQ(warnings.Due(kEnd, kEnd), 0);
  EXPECT_EQ(warnings.Due(kEnd, kEnd + 100 * kDay), std::nullopt);
}

TEST(ExpiryWarnings, ADaemonThatStartsLateIsToldOnce) {
  ExpiryWarnings warnings;
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 5 * kDay), 5);
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 5 * kDay + 1), std::nullopt);
  // The clock was set back: nothing is told again.
  EXPECT_EQ(warnings.Due(kEnd, kEnd - 20 * kDay), std::nullopt);
}

TEST(ExpiryWarnings, ARenewedCertificateBeginsAnew) {
  ExpiryWarnings warnings;
  EXPECT_EQ(warnings.Due(kEnd, kEnd), 0);
  EXPECT_EQ(warnings.Due(kEnd + 90 * kDay, kEnd), std::nullopt);
  EXPECT_EQ(warnings.Due(kEnd + 90 * kDay, kEnd + 60 * kDay), 30);
}

}  // namespace
}  // namespace ecpipe::tls_expiry_test
