// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/probe_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>

namespace ecpipe::probe_rounds_test {
namespace {

using Link = std::pair<std::string, std::string>;
using Racks = std::map<std::string, std::string>;

// All links among the nodes, the faster the later their names are.
std::vector<LinkSpeed> AllLinks(const std::string& nodes) {
  std::vector<LinkSpeed> links;
  for (const char from : nodes) {
    for (const char to : nodes) {
      if (from == to) continue;
      links.push_back({std::string(1, from), std::string(1, to), double(from + to), 1, 0, false});
    }
  }
  return links;
}

bool Has(const ProbeLinksOfRound& round, const Link& link) {
  return std::find(round.begin(), round.end(), link) != round.end();
}

size_t RoundWith(const std::vector<ProbeLinksOfRound>& rounds, const Link& a, const Link& b) {
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (Has(rounds[i], a) && Has(rounds[i], b)) return i;
  }
  return rounds.size();
}

TEST(RoundsAboutSharing, HaveTheTwoFastestLinksOfEachNodeTogether) {
  const auto rounds = RoundsAboutSharing(AllLinks("abcd"), {});
  EXPECT_LT(RoundWith(rounds, {"a", "c"}, {"a", "d"}), rounds.size());
  EXPECT_LT(RoundWith(rounds, {"c", "a"}, {"d", "a"}), rounds.size());
  EXPECT_LT(RoundWith(rounds, {"d", "b"}, {"d", "c"}), rounds.size());
  size_t links = 0;
  for (const auto& round : rounds) links += round.size();
  EXPECT_EQ(links, 16u) << "two each way for each of four nodes";
}

// Otherwise what other streams take of a node's link would count as shared.
TEST(RoundsAboutSharing, GiveANodeToOneQuestionAtATime) {
  const Racks racks = {{"a", "/x"}, {"b", "/x"}, {"c", "/y"}, {"d", "/y"},
                       {"e", "/z"}, {"f", "/z"}, {"g", ""},   {"h", ""}};
  for (const auto& round : RoundsAboutSharing(AllLinks("abcdefgh"), racks)) {
    std::map<std::string, std::set<std::string>> met;
    for (const auto& [from, to] : round) {
      met[from].insert(to);
      met[to].insert(from);
    }
    for (const auto& [from, to] : round) {
      // Streams that meet at a node, or none: three nodes in a row would be two questions.
      EXPECT_TRUE(met[from].size() == 1 || met[to].size() == 1) << from << " " << to;
      EXPECT_LE(std::max(met[from].size(), met[to].size()), 2u);
    }
  }
}

TEST(RoundsAboutSharing, ProbeTwoLinksBetweenRacksAloneAndThenTogether) {
  const Racks racks = {{"a", "/x"}, {"b", "/x"}, {"c", "/y"}, {"d", "/y"}};
  const auto rounds = RoundsAboutSharing(AllLinks("abcd"), racks);
  const size_t together = RoundWith(rounds, {"a", "c"}, {"b", "d"});
  ASSERT_LT(together, rounds.size());
  // Links the other way are other links.
  const auto is_alone = [&](const Link& link, const Link& other) {
    return std::any_of(
        rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(together),
        [&](const ProbeLinksOfRound& round) { return Has(round, link) && !Has(round, other); });
  };
  EXPECT_TRUE(is_alone({"a", "c"}, {"b", "d"}));
  EXPECT_TRUE(is_alone({"b", "d"}, {"a", "c"}));
}

TEST(RoundsAboutSharing, AreNoneForTwoNodes) {
  EXPECT_TRUE(RoundsAboutSharing(AllLinks("ab"), {{"a", "/x"}, {"b", "/y"}}).empty());
}

}  // namespace
}  // namespace ecpipe::probe_rounds_test
