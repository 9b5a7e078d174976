// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/number_text.h"

#include <gtest/gtest.h>

namespace ecpipe::number_text_test {
namespace {

TEST(NumberText, TakesDecimalNumbersOfTheRange) {
  const std::pair<const char*, double> cases[] = {{"0", 0},     {"-0", 0},    {"2.5", 2.5},
                                                  {"1e3", 1e3}, {"10", 10.0}, {"1e9", 1e9}};
  for (const auto& [text, value] : cases) {
    const auto parsed = ParseNumber(text, 0, 1e9);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, value);
    EXPECT_EQ(NumberFrom(0, 1e9)(text), "");
  }
}

TEST(NumberText, RefusesWhatIsNoneOrOutOfRange) {
  for (const char* text :
       {"nan", "-nan", "NaN", "nan(1)", "inf", "-inf", "infinity", "1e400", "", " ", "1 ", " 1",
        "+1", "0x10", "1,5", "1s", "-1", "1000000001"}) {
    const absl::Status status = ParseNumber(text, 0, 1e9).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(NumberFrom(0, 1e9)(text), status.message());
  }
  EXPECT_EQ(ParseNumber("nan", 0.05, 86400).status().message(),
            "'nan' is not a number from 0.05 to 86400");
}

}  // namespace
}  // namespace ecpipe::number_text_test
