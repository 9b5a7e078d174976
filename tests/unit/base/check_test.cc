// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace ecpipe::check_test {
namespace {

TEST(CheckDeathTest, EndsAProgramAndThrowsInALibrary) {
  EXPECT_DEATH(ECPIPE_CHECK(1 == 2), "check_test.cc:[0-9]+: broken invariant: 1 == 2");
  EXPECT_EXIT(
      {
        ThrowOnBrokenInvariants();
        try {
          ECPIPE_CHECK(1 == 2);
        } catch (const std::logic_error&) {
          std::exit(7);
        }
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace ecpipe::check_test
