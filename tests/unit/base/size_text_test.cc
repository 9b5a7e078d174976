// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/size_text.h"

#include <gtest/gtest.h>

namespace ecpipe::size_text_test {
namespace {

TEST(SizeText, ParsesBytesAndBinaryUnits) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"32KiB", uint64_t{32} << 10},
      {"64MiB", uint64_t{64} << 20},
      {"1GiB", uint64_t{1} << 30},
      {"2TiB", uint64_t{2} << 40},
      {"0TiB", 0},
      {"007", 7},
      {"18446744073709551615", UINT64_MAX},
      {"16777215TiB", uint64_t{16777215} << 40},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = ParseSize(text);
    ASSERT_TRUE(parsed.ok()) << text << parsed.status();
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(SizeText, RefusesEverythingElse) {
  for (const char* text :
       {"", " ", "KiB", "1MB", "1kib", "1 KiB", "1KiB ", " 1", "-1", "+1", "1.5GiB", "1KiBs",
        "0x10", "1e3", "1PiB", "18446744073709551616", "16777216TiB", "99999999999TiB"}) {
    const auto parsed = ParseSize(text);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << "'" << text << "'";
  }
  EXPECT_FALSE(ParseSize(std::string("1\0", 2)).ok());
}

TEST(SizeText, FormatsForPeople) {
  EXPECT_EQ(FormatSize(0), "0 B");
  EXPECT_EQ(FormatSize(512), "512 B");
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(1024), "1 KiB");
  EXPECT_EQ(FormatSize(1536), "1.5 KiB");
  EXPECT_EQ(FormatSize(uint64_t{64} << 20), "64 MiB");
  EXPECT_EQ(FormatSize(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(FormatSize(uint64_t{2048} << 40), "2048 TiB");
}

}  // namespace
}  // namespace ecpipe::size_text_test
