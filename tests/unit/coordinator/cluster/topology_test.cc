// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::topology_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Topology, ReadsRacks) {
  const auto racks = ParseRackTable(
      "# host rack\n\nnode-1 /hall/rack-1\n  10.0.0.7\t/rack-2  \r\nlast /x", "racks");
  ASSERT_TRUE(racks.ok()) << racks.status();
  EXPECT_THAT(*racks, ElementsAre(Pair("10.0.0.7", "/rack-2"), Pair("last", "/x"),
                                  Pair("node-1", "/hall/rack-1")));
}

TEST(Topology, ReadsLinks) {
  const auto links = ParseLinkTable("a b 8\nb a 0.8\n/r1 /r2 1e3\n", "links");
  ASSERT_TRUE(links.ok()) << links.status();
  EXPECT_THAT(*links, ElementsAre(Pair(Pair("/r1", "/r2"), 125e6), Pair(Pair("a", "b"), 1e6),
                                  Pair(Pair("b", "a"), 1e5)));
}

TEST(Topology, NamesTheLineOfAMistake) {
  for (const char* bad : {"a", "a b c", "a /r\na /s", "a /\xff", "a\x02 /r"}) {
    const absl::Status status = ParseRackTable(std::string("# fine\n") + bad, "racks").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("racks:")) << bad;
  }
  for (const char* bad :
       {"a b", "a b 0", "a b -1", "a b x", "a b 1x", "a b inf", "a b nan", "a b 1 2",
        "a b 1\na b 2", "a b 1e305", "a b 1e-300", "a b\x01 1", "a \xff 1"}) {
    const absl::Status status = ParseLinkTable(bad, "links").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("links:")) << bad;
  }
  EXPECT_THAT(std::string(ParseLinkTable("a b 1\na b 2", "links").status().message()),
              HasSubstr("links:2: the link from a to b is already in an earlier line"));
}

TEST(Topology, WhatEcpipeLinksPrintsIsATable) {
  const auto links = ParseLinkTable("a b 98.7  # measured 3 times, last 12 s ago\n# all\n", "l");
  ASSERT_TRUE(links.ok()) << links.status();
  EXPECT_DOUBLE_EQ(links->at({"a", "b"}), 98.7e6 / 8);
}

TEST(Topology, AFileThatIsNotThereIsNamed) {
  const absl::Status status = ReadRackTable("/nowhere/racks").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/racks"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadLinkTable("/").status()));
}

}  // namespace
}  // namespace ecpipe::topology_test
