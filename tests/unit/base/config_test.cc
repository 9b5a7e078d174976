// SPDX-License-Identifier: Apache-2.0
#include "base/process/config.h"

#include <gtest/gtest.h>

#include "base/process/running_config.h"

namespace ecpipe::config_test {
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
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[typo]\nx = 1\n",
       "test.toml:4: unknown key typo"},
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
      // A duration that the clock would round to nothing.
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[limits]\nseconds = 1e-10\n", "test.toml:5"},
      // One key with a dot in its name is not the key of a section.
      {"\"daemon.count\" = 5\n[daemon]\nname = \"n\"\nroots = [\"/a\"]\n",
       "test.toml:1: unknown key \"daemon.count\""},
      {"[\"daemon.x\"]\n[daemon]\nname = \"n\"\nroots = [\"/a\"]\n", "test.toml:1: unknown key"},
  };
  for (const auto& [text, expected] : cases) {
    const absl::Status status = Read(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << status;
    EXPECT_NE(std::string(status.message()).find(expected), std::string::npos) << status;
  }
}

TEST(Config, TheLineIsExact) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"# a comment\n\n[daemon]\nname = \"n\"\nroots = [\"/a\"]\n\ncount = 0\n",
       "test.toml:7: daemon.count must be an integer from 1 to 10"},
      {"[daemon]\nname = \"n\"\nroots = \"/a\"\n",
       "test.toml:3: daemon.roots must be a list of strings"},
      {"[daemon]\nname = \"n\"\nroots = []\n", "test.toml:3: daemon.roots must name at least one"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\",\n  2]\n",
       "test.toml:4: daemon.roots must be a string"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\nflag = \"true\"\n",
       "test.toml:4: daemon.flag must be true or false"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[limits]\nbytes = \"2MiB\"\n",
       "test.toml:5: limits.bytes must be a size from 1 B to 1 MiB, e.g. 65536 or \"64KiB\""},
      {"[daemon]\nroots = [\"/a\"]\n", "test.toml: required key daemon.name is missing"},
      {"stray = 1\n[daemon]\nname = \"n\"\nroots = [\"/a\"]\n",
       "test.toml:1: unknown key stray; known here: daemon.count, daemon.flag, daemon.name, "
       "daemon.roots, limits.bytes, limits.seconds"},
      {"[daemon]\nname = \"n\"\nroots = [\"/a\"]\n[daemon.inner]\nx = 1\n",
       "test.toml:4: unknown key daemon.inner; known here: daemon.count, daemon.flag, "
       "daemon.name, daemon.roots"},
      {"limits = 3\n[daemon]\nname = \"n\"\nroots = [\"/a\"]\n",
       "test.toml:1: unknown key limits; known here: daemon.count, daemon.flag, daemon.name, "
       "daemon.roots, limits.bytes, limits.seconds"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Read(text), absl::InvalidArgumentError(message)) << text;
  }
}

TEST(Config, BrokenTomlIsNamedWithLineAndColumn) {
  for (const char* text : {"[daemon]\nname = \"n\n", "[daemon]\nname == 1\n",
                           "[daemon]\nname = 1\nname = 2\n", "[daemon\nx = 1\n"}) {
    const absl::Status status = Config::Parse(text, "test.toml").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << status;
    EXPECT_EQ(std::string(status.message()).rfind("test.toml:", 0), 0u) << status;
    EXPECT_NE(status.message().find(": "), std::string::npos) << status;
  }
}

TEST(Config, SecondsTakeIntegersAndFractionsWithinTheirRange) {
  const auto read = [](const std::string& value) {
    Config config = Config::Parse("[t]\ns = " + value + "\n", "test.toml").value();
    const double seconds = config.Seconds("t.s", 7, 60);
    return std::pair(seconds, config.Finish().ok());
  };
  EXPECT_EQ(read("3"), std::pair(3.0, true));
  EXPECT_EQ(read("0.25"), std::pair(0.25, true));
  EXPECT_EQ(read("60"), std::pair(60.0, true));
  for (const char* bad : {"0", "-1", "60.5", "inf", "nan", "\"1\"", "true", "[1]"}) {
    EXPECT_EQ(read(bad), std::pair(7.0, false)) << bad;
  }
}

TEST(Config, IntegersAndSizesKeepTheirBounds) {
  const auto finish = [](const std::string& value, auto get) {
    Config config = Config::Parse("[t]\nv = " + value + "\n", "test.toml").value();
    get(&config);
    return config.Finish().ok();
  };
  const auto integer = [](Config* config) { config->Integer("t.v", 1, -2, 2); };
  const auto size = [](Config* config) { config->Size("t.v", 1, 1, UINT64_MAX); };
  for (const char* good : {"-2", "2", "0"}) EXPECT_TRUE(finish(good, integer)) << good;
  for (const char* bad : {"-3", "3", "1.0", "\"1\"", "true"}) {
    EXPECT_FALSE(finish(bad, integer)) << bad;
  }
  for (const char* good : {"1", "9223372036854775807", "\"1TiB\"", "\"1\""}) {
    EXPECT_TRUE(finish(good, size)) << good;
  }
  for (const char* bad : {"0", "-1", "1.0", "\"\"", "\"1kb\"", "true"}) {
    EXPECT_FALSE(finish(bad, size)) << bad;
  }
}

TEST(Config, EachTroubleIsReportedInTheOrderOfTheFile) {
  Config config = Config::Parse("[t]\na = 1\nc = 3\nb = 2\n", "test.toml").value();
  config.String("t.b", "");
  config.String("t.a", "");
  config.RequiredString("t.d");
  EXPECT_EQ(config.Finish(),
            absl::InvalidArgumentError("test.toml: required key t.d is missing\n"
                                       "test.toml:2: t.a must be a string\n"
                                       "test.toml:3: unknown key t.c; known here: t.a, t.b, t.d\n"
                                       "test.toml:4: t.b must be a string"));
}

TEST(Config, AValueIsRefusedOnce) {
  Config config = Config::Parse("[t]\na = 1\nb = 2\n", "test.toml").value();
  config.RequiredString("t.a");
  config.Reject("t.a", "'' is not one of x, y");
  config.Integer("t.b", 1, 1, 9);
  config.Reject("t.b", "not today");
  EXPECT_EQ(config.Finish(), absl::InvalidArgumentError("test.toml:2: t.a must be a string\n"
                                                        "test.toml:3: t.b: not today"));
}

TEST(Config, WhatIsFoundLaterIsNamedWithAllElse) {
  Config config = Config::Parse("[t]\na = 1\nb = 2\n", "test.toml").value();
  config.RequiredString("t.a");
  config.Integer("t.b", 1, 1, 9);
  ConfigTroubles troubles;
  troubles.Add("t.c", absl::NotFoundError("no such file"));
  troubles.Add("t.a", absl::InvalidArgumentError("the default is no good"));
  troubles.Add("t.b", absl::InvalidArgumentError("not today"));
  troubles.Add("t.b", absl::OkStatus());
  troubles.Add("t.b", absl::InvalidArgumentError("not tomorrow"));
  EXPECT_FALSE(troubles.ok());
  EXPECT_EQ(troubles.First(), absl::NotFoundError("no such file"));
  config.Reject(troubles);
  EXPECT_EQ(config.Finish(), absl::InvalidArgumentError("test.toml: t.c: no such file\n"
                                                        "test.toml:2: t.a must be a string\n"
                                                        "test.toml:3: t.b: not today\n"
                                                        "test.toml:3: t.b: not tomorrow"));
  EXPECT_TRUE(ConfigTroubles().First().ok());
}

TEST(Config, ValuesAreAsAFileHasThem) {
  const auto read = [](Config config) {
    config.String("a.text", "with \"quotes\"");
    config.RequiredString("a.needed");
    config.Strings("a.list");
    config.Strings("a.none");
    config.Integer("b.number", 7, 1, 9);
    config.Size("b.size", 65536, 1, UINT64_MAX);
    config.Size("b.odd_size", 1000, 1, UINT64_MAX);
    config.Seconds("b.seconds", 0.25, 9);
    config.Rate("b.mbit", 0);
    config.Bool("b.yes", true);
    EXPECT_TRUE(config.Finish().ok()) << config.Finish();
    return config.values();
  };
  const std::string file = "[a]\nneeded = 'x'\nlist = ['p', 'q']\n[b]\nsize = 3145728\n";
  const ConfigValues values = read(Config::Parse(file, "test.toml").value());
  EXPECT_EQ(values.at("a.text"), R"("with \"quotes\"")");
  EXPECT_EQ(values.at("b.size"), "\"3MiB\"");
  EXPECT_EQ(values.at("b.odd_size"), "1000");
  EXPECT_EQ(values.at("b.seconds"), "0.25");
  EXPECT_EQ(values.at("b.yes"), "true");
  EXPECT_EQ(values.at("a.none"), "[]");
  EXPECT_EQ(read(Config::Parse(ConfigText(values), "test.toml").value()), values);
}

TEST(RunningConfig, TakesUpOnlyWhatIsReloadable) {
  RunningConfig running({{"a.x", "1"}, {"a.y", "2"}, {"a.z", "3"}}, {"a.y", "a.z"});
  const RunningConfig::Changes changes =
      running.Reload({{"a.x", "10"}, {"a.y", "20"}, {"a.z", "3"}});
  EXPECT_EQ(changes.taken, std::vector<std::string>{"a.y"});
  EXPECT_EQ(changes.need_restart, std::vector<std::string>{"a.x"});
  EXPECT_EQ(running.values(), (ConfigValues{{"a.x", "1"}, {"a.y", "20"}, {"a.z", "3"}}));
  EXPECT_EQ(running.Reload({{"a.x", "10"}, {"a.y", "20"}, {"a.z", "3"}}).need_restart,
            std::vector<std::string>{"a.x"})
      << "it is told each time";
}

TEST(Config, RejectNamesTheLineOfTheKeyOrTheFile) {
  Config there = Config::Parse("[t]\na = 1\n", "test.toml").value();
  there.Integer("t.a", 1, 1, 9);
  there.Reject("t.a", "not today");
  EXPECT_EQ(there.Finish(), absl::InvalidArgumentError("test.toml:2: t.a: not today"));
  Config absent = Config::Parse("", "test.toml").value();
  absent.Integer("t.a", 1, 1, 9);
  absent.Reject("t.a", "not today");
  EXPECT_EQ(absent.Finish(), absl::InvalidArgumentError("test.toml: t.a: not today"));
}

TEST(Config, LoadNamesTheFileThatIsNotThere) {
  const absl::Status status = Config::Load("no/such/file.toml").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(status.message().find("no/such/file.toml"), std::string::npos) << status;
}

}  // namespace
}  // namespace ecpipe::config_test
