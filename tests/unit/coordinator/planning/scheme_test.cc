// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ecpipe::scheme_test {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

// Those of `names` whose order and use these tests assert. A new scheme may stand among them.
std::vector<std::string> Settled(std::vector<std::string> names) {
  static const auto* const settled =
      new std::set<std::string>{"rp",  "rp-weighted",  "rp-rack", "rp-cyclic", "rp-all", "mixed",
                                "ppr", "conventional", "pipe-b",  "pipe-s",    "direct"};
  std::erase_if(names, [](const std::string& name) { return !settled->contains(name); });
  return names;
}

TEST(Schemes, AreInOrder) {
  EXPECT_THAT(Settled(SchemeNames()),
              ElementsAre("rp", "rp-weighted", "rp-rack", "rp-cyclic", "rp-all", "mixed", "ppr",
                          "conventional", "pipe-b", "pipe-s", "direct"));
  EXPECT_THAT(Settled(SchemesForLostBlocks()),
              ElementsAre("rp", "rp-weighted", "rp-rack", "rp-cyclic", "rp-all", "mixed", "ppr",
                          "conventional", "pipe-b", "pipe-s"));
  EXPECT_THAT(Settled(SchemesThatRepair()), ElementsAre("rp", "rp-weighted", "rp-rack", "rp-cyclic",
                                                        "rp-all", "mixed", "ppr", "conventional"));
}

TEST(Schemes, EachSaysWhatItIs) {
  std::set<std::string> names = {"auto", "unknown"};  // nobody may be called that
  std::set<int> ranks = {0};                          // somebody has forgotten it
  for (const Scheme* scheme : AllSchemes()) {
    SCOPED_TRACE(scheme->name);
    EXPECT_TRUE(names.insert(scheme->name).second);
    EXPECT_TRUE(ranks.insert(scheme->rank).second) << scheme->rank;
    EXPECT_EQ(FindScheme(scheme->name), scheme);
    EXPECT_THAT(scheme->name, MatchesRegex("[a-z][a-z0-9]*(-[a-z0-9]+)*"));
    EXPECT_THAT(scheme->help, MatchesRegex("[^\n]{10,64}")) << "one line, for the list";
    EXPECT_THAT(scheme->timeslots, MatchesRegex("[^\n]{1,32}"));
    EXPECT_THAT(scheme->source, MatchesRegex("[^\n]{1,50}"));
    EXPECT_GE(scheme->most_failed, 1u);
  }
  EXPECT_EQ(FindScheme("unknown"), nullptr);
}

TEST(Schemes, AutoTriesWhatLooksAtSomethingKnown) {
  const auto tried = [](const ClusterView& cluster, size_t failed_blocks) {
    return Settled(SchemesWorthATry(cluster, failed_blocks));
  };
  ClusterView cluster;
  cluster.nodes = {{.node = "a", .rack = "r"}, {.node = "b", .rack = "r"}, {.node = "c"}};
  EXPECT_THAT(tried(cluster, 1), ElementsAre("rp", "ppr", "conventional"));
  EXPECT_THAT(tried(cluster, 2), ElementsAre("rp", "mixed", "ppr", "conventional"));
  cluster.nodes[1].rack = "s";
  EXPECT_THAT(tried(cluster, 1), ElementsAre("rp", "rp-rack", "ppr", "conventional"));
  cluster.links = std::make_shared<LinkTable>();
  EXPECT_THAT(tried(cluster, 1), ElementsAre("rp", "rp-weighted", "rp-rack", "rp-cyclic", "rp-all",
                                             "ppr", "conventional"));
  ClusterView speeds;
  speeds.nodes = {{.node = "a", .down_bytes_per_second = 1}};
  EXPECT_THAT(tried(speeds, 1),
              ElementsAre("rp", "rp-weighted", "rp-cyclic", "rp-all", "ppr", "conventional"));
}

TEST(Schemes, AreDescribed) {
  const std::vector<SchemeInfo> all = DescribeSchemes();
  ASSERT_EQ(all.size(), AllSchemes().size());
  const auto found = [&](const std::string& name) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const SchemeInfo& info) { return info.name == name; });
  };
  EXPECT_EQ(found("mixed").kind, "repairs");
  EXPECT_THAT(found("mixed").looks_at, ElementsAre("several blocks"));
  EXPECT_EQ(found("pipe-b").kind, "baseline");
  EXPECT_EQ(found("direct").kind, "direct");
  EXPECT_EQ(found("direct").most_failed, 1u);
  EXPECT_EQ(found("rp-rack").source, "§4.2");
  EXPECT_THAT(found("rp-rack").looks_at, ElementsAre("racks"));
  EXPECT_THAT(found("rp-all-rack").looks_at, ElementsAre("links", "racks"));
}

}  // namespace
}  // namespace ecpipe::scheme_test
