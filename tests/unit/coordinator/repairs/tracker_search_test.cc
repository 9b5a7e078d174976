// SPDX-License-Identifier: Apache-2.0
// Every order of events in small worlds: in no state is a promise broken, and from each state the
// repair ends.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "unit/coordinator/repairs/tracker_world.h"

namespace ecpipe::search {
namespace {

#ifdef SEARCH_AT_MOST  // a sanitizer makes each state cost more
constexpr size_t kMostStates = SEARCH_AT_MOST;
#else
constexpr size_t kMostStates = SIZE_MAX;
#endif

// Depth first, each state once.
class Search {
 public:
  void From(const World& world) {
    if (states_.size() >= kMostStates || failed_ || !states_.insert(world.Key()).second) return;
    for (const bool lost : {false, true}) {
      path_.push_back(lost ? "to the end, with a report lost" : "to the end");
      Try([&] { World(world).RunToEnd(lost); });
      path_.pop_back();
    }
    for (const auto& [name, step] : world.Steps()) {
      path_.push_back(name);
      World next = world;
      if (Try([&] { step(next); })) From(next);
      path_.pop_back();
      if (failed_) return;
    }
  }
  size_t states() const { return states_.size(); }

 private:
  bool Try(const std::function<void()>& step) {
    try {
      step();
      return true;
    } catch (const Broken& broken) {
      if (failed_) return false;
      failed_ = true;
      std::string story;
      for (const std::string& name : path_) story += "\n  " + name;
      ADD_FAILURE() << "broken: " << broken.promise << story;
      return false;
    }
  }

  bool failed_ = false;
  std::unordered_set<std::string> states_;
  std::vector<std::string> path_;
};

class TrackerSearch : public ::testing::TestWithParam<Limits> {};

TEST_P(TrackerSearch, NoPromiseIsBrokenAndEveryRepairEnds) {
  Search search;
  search.From(World(GetParam()));
  RecordProperty("states", static_cast<int>(search.states()));
  EXPECT_GT(search.states(), 1000u);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, TrackerSearch,
    ::testing::Values(Limits{.faults = 2}, Limits{.faults = 1, .ticks = 2},
                      Limits{.faults = 1, .checks = 1}, Limits{.hosts = 1, .faults = 2},
                      Limits{.hosts = 1, .faults = 1, .ticks = 1},
                      Limits{.hosts = 1, .faults = 1, .checks = 1},
                      Limits{.hosts = 2, .faults = 1, .helpers = 1},
                      Limits{.hosts = 2, .faults = 1, .ticks = 1, .helpers = 1, .attempts = 1}),
    [](const auto& parameter) {
      const Limits& limits = parameter.param;
      return std::string(limits.hosts == 0   ? "ForARequestor"
                         : limits.hosts == 1 ? "Hosted"
                                             : "TwoHosts") +
             std::to_string(limits.faults) + "Faults" + std::to_string(limits.ticks) + "Ticks" +
             std::to_string(limits.checks) + "Checks";
    });

}  // namespace
}  // namespace ecpipe::search
