// SPDX-License-Identifier: Apache-2.0
#include "common/config.h"

#include <gtest/gtest.h>

#include "common/size_text.h"

namespace ecpipe {
namespace {

// Reads a small configuration as a daemon would.
absl::Status Read(const std::string& text) {
  absl::StatusOr<Config> config = Config::Parse(text, "test.toml");
  if (!config.ok()) return config.status();
  config->RequiredString("daemon.name");
  config->RequiredStrings("daemon.roots");
  config->Integer("daemon.count", 3, 1, 10);
  config->Size("limits.bytes", 4096, 1, 1 << 20);
  config->Seconds("limits.seconds", 1.5, 60);
  config->Bool("daemon.flag", false);
  return config->Finish();
}

constexpr char kGood[] = "[daemon]\nname = \"n\"\nroots = [\"/a\"]\n";

TEST(Config, ReadsWhatIsThereAndDefaultsTheRest) {
  EXPECT_TRUE(Read(kGood).ok()) << Read(kGood);
  absl::StatusOr<Config> config =
      Config::Parse("[limits]\nbytes = \"64KiB\"\nseconds = 2\n", "test.toml");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->Size("limits.bytes", 1, 1, 1 << 20), 65536u);
  EXPECT_EQ(config->Seconds("limits.seconds", 1, 10), 2.0);
  EXPECT_EQ(config->String("limits.other", "fallback"), "fallback");
  EXPECT_TRUE(config->Finish().ok());
}

TEST(Config, EveryMistakeIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\ncolour = 1\n", "test.toml:4: unknown key"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[typo]\nx = 1\n", "test.toml:4: unknown key typo"},
      {"[daemon]\nname = 7\nroots = [\"/a\"]\n", "test.toml:2: daemon.name must be a string"},
      {"[daemon]\nname = \"\"\nroots = [\"/a\"]\n", "test.toml:2: daemon.name must not be empty"},
      {"[daemon]\nname = \"n\"\nroots = []\n", "test.toml:3"},
      {"[daemon]\nname = \"n\"\nroots = [1]\n", "test.toml:3"},
      {"[daemon]\nname = \"n\"\n", "daemon.roots is missing"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\ncount = 11\n", "test.toml:4: daemon.count"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\ncount = 1.5\n", "test.toml:4: daemon.count"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\nflag = 1\n", "test.toml:4: daemon.flag"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[limits]\nbytes = \"1 cup\"\n", "test.toml:5"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[limits]\nbytes = -1\n", "test.toml:5"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[limits]\nseconds = 0\n", "test.toml:5"},
      {"[daemon]\nname = \n", "test.toml:2"},
  };
  for (const auto& [text, expected] : cases) {
    const absl::Status status = Read(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << status;
    EXPECT_NE(std::string(status.message()).find(expected), std::string::npos) << status;
  }
}

TEST(SizeText, ParsesAndFormats) {
  EXPECT_EQ(*ParseSize("0"), 0u);
  EXPECT_EQ(*ParseSize("64MiB"), uint64_t{64} << 20);
  EXPECT_EQ(*ParseSize("2TiB"), uint64_t{2} << 40);
  for (const char* bad : {"", "MiB", "1MB", "-1", "1.5GiB", "99999999999TiB", "1 KiB", "1KiBs"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
  EXPECT_EQ(FormatSize(64 << 20), "64 MiB");
  EXPECT_EQ(FormatSize(1536), "1.5 KiB");
  EXPECT_EQ(FormatSize(512), "512 B");
}

}  // namespace
}  // namespace ecpipe
