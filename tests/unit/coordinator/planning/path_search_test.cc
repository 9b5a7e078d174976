// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/path_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <random>
#include <set>

namespace ecpipe::path_search_test {
namespace {

constexpr uint64_t kSeed = 20260301;

double SlowestLink(const LinkSpeeds& speeds, const std::vector<int>& path) {
  double slowest = speeds.at(path.back(), speeds.requestor());
  for (size_t i = 1; i < path.size(); ++i) {
    slowest = std::min(slowest, speeds.at(path[i - 1], path[i]));
  }
  return slowest;
}

void ExpectIsAPath(const LinkSpeeds& speeds, int length, const WidestPath& found) {
  ASSERT_EQ(found.helpers.size(), static_cast<size_t>(length));
  EXPECT_EQ(std::set<int>(found.helpers.begin(), found.helpers.end()).size(), found.helpers.size());
  EXPECT_EQ(found.speed, SlowestLink(speeds, found.helpers));
  EXPECT_GE(found.bound, found.speed);
}

bool Keeps(const RackRule& rule, const std::vector<int>& path) {
  std::vector<int> stays;  // from the requestor backwards
  if (rule.home >= 0) stays.push_back(rule.home);
  for (auto node = path.rbegin(); node != path.rend(); ++node) {
    const int rack = rule.rack_of[static_cast<size_t>(*node)];
    if (stays.empty() || stays.back() != rack) stays.push_back(rack);
  }
  const bool once = std::set<int>(stays.begin(), stays.end()).size() == stays.size();
  const int remote = static_cast<int>(stays.size()) - (rule.home >= 0 ? 1 : 0);
  return once && remote <= rule.most_remote;
}

// All paths there are, or all that keep the rule.
double BestByBruteForce(const LinkSpeeds& speeds, int length, const RackRule* rule = nullptr) {
  double best = 0;
  std::vector<int> path;
  const auto extend = [&](const auto& self) -> void {
    if (static_cast<int>(path.size()) == length) {
      if (rule == nullptr || Keeps(*rule, path)) best = std::max(best, SlowestLink(speeds, path));
      return;
    }
    for (int next = 0; next < speeds.candidates(); ++next) {
      if (std::find(path.begin(), path.end(), next) != path.end()) continue;
      path.push_back(next);
      self(self);
      path.pop_back();
    }
  };
  extend(extend);
  return best;
}

// best[set][last]: the fastest slowest link of a path through exactly `set` that ends at `last`.
double BestByDynamicProgramming(const LinkSpeeds& speeds, int length) {
  const auto count = static_cast<size_t>(speeds.candidates());
  std::vector<std::vector<double>> best(size_t{1} << count, std::vector<double>(count, -1));
  double result = 0;
  for (size_t set = 1; set < best.size(); ++set) {
    for (size_t last = 0; last < count; ++last) {
      if ((set >> last & 1) == 0) continue;
      const size_t before = set ^ size_t { 1 } << last;
      if (before == 0) best[set][last] = std::numeric_limits<double>::infinity();
      for (size_t from = 0; from < count; ++from) {
        if ((before >> from & 1) == 0) continue;
        const double link = speeds.at(static_cast<int>(from), static_cast<int>(last));
        best[set][last] = std::max(best[set][last], std::min(best[before][from], link));
      }
      if (std::popcount(set) == length) {
        const double end = speeds.at(static_cast<int>(last), speeds.requestor());
        result = std::max(result, std::min(best[set][last], end));
      }
    }
  }
  return result;
}

// `values` different speeds: few make many paths equal.
LinkSpeeds RandomSpeeds(std::mt19937_64& random, int candidates, uint64_t values) {
  LinkSpeeds speeds(candidates);
  for (int from = 0; from < candidates; ++from) {
    for (int to = 0; to <= candidates; ++to) {
      if (from != to) speeds.Set(from, to, 1 + static_cast<double>(random() % values));
    }
  }
  return speeds;
}

TEST(PathSearch, IsOptimalOnAllSmallShapes) {
  std::mt19937_64 random(kSeed);
  for (int candidates = 1; candidates <= 7; ++candidates) {
    for (int length = 1; length <= candidates; ++length) {
      for (const uint64_t values : {2u, 5u, 1'000'000u}) {
        for (int round = 0; round < 12; ++round) {
          const LinkSpeeds speeds = RandomSpeeds(random, candidates, values);
          const WidestPath found = FindWidestPath(speeds, length);
          ASSERT_NO_FATAL_FAILURE(ExpectIsAPath(speeds, length, found));
          ASSERT_EQ(found.speed, BestByBruteForce(speeds, length))
              << candidates << " " << length << " " << values << " round " << round;
          ASSERT_EQ(found.bound, found.speed);
        }
      }
    }
  }
}

TEST(PathSearch, IsOptimalForWideStripes) {
  std::mt19937_64 random(kSeed + 1);
  for (int round = 0; round < 20; ++round) {
    const LinkSpeeds speeds = RandomSpeeds(random, 13, 1'000'000);
    const WidestPath found = FindWidestPath(speeds, 10);
    EXPECT_EQ(found.speed, BestByDynamicProgramming(speeds, 10)) << "round " << round;
    EXPECT_EQ(found.bound, found.speed);
  }
}

// Table 1 of the paper, Mb/s from the row's region to the column's; (16, 12) codes, four nodes a
// region, one of them the requestor.
using Regions = std::array<std::array<double, 4>, 4>;
constexpr Regions kNorthAmerica = {{{501.3, 57.2, 44.1, 299.9},
                                    {55.3, 732.0, 63.3, 48.0},
                                    {46.3, 65.7, 332.5, 95.6},
                                    {297.8, 50.2, 93.6, 250.1}}};
constexpr Regions kAsia = {{{624.8, 62.3, 39.5, 37.7},
                            {63.8, 265.7, 86.1, 183.2},
                            {41.5, 88.1, 493.0, 49.1},
                            {39.7, 181.0, 46.9, 489.1}}};

TEST(PathSearch, IsOptimalOnThePapersTwoContinents) {
  for (const Regions& regions : {kNorthAmerica, kAsia}) {
    for (size_t home = 0; home < 4; ++home) {
      std::vector<size_t> region_of;
      for (size_t region = 0; region < 4; ++region) {
        region_of.insert(region_of.end(), region == home ? 3 : 4, region);
      }
      LinkSpeeds speeds(15);
      for (int from = 0; from < 15; ++from) {
        const size_t sender = region_of[static_cast<size_t>(from)];
        for (int to = 0; to < 15; ++to) {
          speeds.Set(from, to, regions[sender][region_of[static_cast<size_t>(to)]]);
        }
        speeds.Set(from, 15, regions[sender][home]);
      }
      const WidestPath found = FindWidestPath(speeds, 12);
      EXPECT_EQ(found.speed, BestByDynamicProgramming(speeds, 12)) << home;
      EXPECT_EQ(found.bound, found.speed);
    }
  }
}

TEST(PathSearch, KeepsToTheFewestRacksAndIsOptimalAmongThose) {
  std::mt19937_64 random(kSeed + 3);
  for (int round = 0; round < 600; ++round) {
    const int candidates = 1 + static_cast<int>(random() % 7);
    const int length = 1 + static_cast<int>(random() % static_cast<uint64_t>(candidates));
    const LinkSpeeds speeds = RandomSpeeds(random, candidates, round % 2 == 0 ? 3 : 1'000'000);
    RackRule rule;
    for (int i = 0; i < candidates; ++i) rule.rack_of.push_back(static_cast<int>(random() % 4));
    rule.home = static_cast<int>(random() % 5) - 1;
    rule.most_remote = FewestRemoteRacks(rule, length);
    const WidestPath found = FindWidestPath(speeds, rule, length);
    ASSERT_NO_FATAL_FAILURE(ExpectIsAPath(speeds, length, found));
    ASSERT_TRUE(Keeps(rule, found.helpers)) << "round " << round;
    ASSERT_EQ(found.speed, BestByBruteForce(speeds, length, &rule)) << "round " << round;
    ASSERT_EQ(found.bound, found.speed);
    if (rule.most_remote > 0) {
      --rule.most_remote;
      ASSERT_EQ(BestByBruteForce(speeds, length, &rule), 0) << "fewer racks would have done";
    }
  }
}

TEST(PathSearch, EqualLinksNeedNoSearch) {
  LinkSpeeds speeds(50);
  for (int from = 0; from < 50; ++from) {
    for (int to = 0; to <= 50; ++to) speeds.Set(from, to, 7);
  }
  const WidestPath found = FindWidestPath(speeds, 30);
  ExpectIsAPath(speeds, 30, found);
  EXPECT_EQ(found.speed, 7);
  EXPECT_EQ(found.bound, 7);
  EXPECT_EQ(found.steps, 0u);
}

// There is one link of speed 9, and a path has two.
TEST(PathSearch, TooFewLinksNeedNoSearch) {
  LinkSpeeds speeds(2);
  for (int from = 0; from < 2; ++from) {
    for (int to = 0; to <= 2; ++to) {
      if (from != to) speeds.Set(from, to, from == 0 && to == speeds.requestor() ? 9 : 1);
    }
  }
  const WidestPath found = FindWidestPath(speeds, 2);
  EXPECT_EQ(found.speed, 1);
  EXPECT_EQ(found.steps, 0u);
}

TEST(PathSearch, ALimitEndsItWithAPathAndABound) {
  std::mt19937_64 random(kSeed + 2);
  constexpr std::pair<int, int> kShapes[] = {{13, 10}, {39, 30}, {99, 80}, {255, 255}};
  for (const auto& [candidates, length] : kShapes) {
    const LinkSpeeds speeds = RandomSpeeds(random, candidates, 1'000'000);
    double speed = 0;
    for (const uint64_t limit : {0u, 20u, 2'000u}) {
      const WidestPath found = FindWidestPath(speeds, length, limit);
      ASSERT_NO_FATAL_FAILURE(ExpectIsAPath(speeds, length, found));
      EXPECT_LE(found.steps, limit + 64) << "each question may pass its share by one";
      EXPECT_GE(found.speed, speed) << "more steps found less";
      speed = found.speed;
      if (limit == 0) EXPECT_GT(found.bound, found.speed) << "nothing has been tried";
    }
  }
}

TEST(PathSearch, TakesAsManyCandidatesAsItSays) {
  const LinkSpeeds most(LinkSpeeds::kMaxCandidates);
  EXPECT_EQ(FindWidestPath(most, 255, 1).helpers.size(), 255u);
  const RackRule one_rack{.rack_of = std::vector<int>(255, 0), .home = 0, .most_remote = 0};
  EXPECT_EQ(FindWidestPath(most, one_rack, 255, 1).helpers.size(), 255u);
}

TEST(PathSearchDeathTest, HasBounds) {
  const char* const broken = "broken invariant";
  const LinkSpeeds two(2);
  const LinkSpeeds too_many(LinkSpeeds::kMaxCandidates + 1);
  const RackRule racks{.rack_of = {0, 1}, .home = -1, .most_remote = 2};
  EXPECT_DEATH(FindWidestPath(two, 0), broken);
  EXPECT_DEATH(FindWidestPath(two, 3), broken);
  EXPECT_DEATH(FindWidestPath(too_many, 1), broken);
  EXPECT_DEATH(FindWidestPath(two, racks, 0), broken);
  EXPECT_DEATH(FindWidestPath(two, racks, 3), broken);
  const RackRule long_rule{.rack_of = std::vector<int>(256, 0), .home = 0, .most_remote = 0};
  EXPECT_DEATH(FindWidestPath(too_many, long_rule, 1), broken);
  RackRule bad = racks;
  bad.most_remote = 1;
  EXPECT_DEATH(FindWidestPath(two, bad, 2), broken) << "they are in two racks";
  bad.rack_of = {0};
  EXPECT_DEATH(FindWidestPath(two, bad, 1), broken) << "nobody knows where the second one is";
  EXPECT_DEATH(FewestRemoteRacks(racks, 3), broken);
}

}  // namespace
}  // namespace ecpipe::path_search_test
