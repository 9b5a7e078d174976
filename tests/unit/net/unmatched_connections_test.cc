// SPDX-License-Identifier: Apache-2.0
#include "net/unmatched_connections.h"

#include <gtest/gtest.h>

#include <deque>

namespace ecpipe::unmatched_connections_test {
namespace {

TEST(UnmatchedConnections, ThereIsRoomUpToTheCapacity) {
  UnmatchedConnections connections(2);
  EXPECT_EQ(connections.Surplus(), nullptr);
  Unmatched* const first = connections.Add({}, "a", {});
  EXPECT_EQ(connections.Surplus(), nullptr);
  connections.Add({}, "a", {});
  EXPECT_EQ(connections.Surplus(), first);
  connections.Remove(first);
  EXPECT_EQ(connections.Surplus(), nullptr);
}

TEST(UnmatchedConnections, WhoHasTheMostLosesTheOldest) {
  UnmatchedConnections connections(6);
  Unmatched* const honest = connections.Add({}, "honest", {});
  std::deque<Unmatched*> flood = {connections.Add({}, "flood", {})};
  connections.Add({}, "other", {});
  for (int i = 0; i < 100; ++i) {
    if (Unmatched* const surplus = connections.Surplus(); surplus != nullptr) {
      ASSERT_EQ(surplus, flood.front());
      connections.Remove(surplus);
      flood.pop_front();
    }
    flood.push_back(connections.Add({}, "flood", {}));
  }
  EXPECT_EQ(flood.size(), 4u);
  EXPECT_EQ(connections.Oldest(), honest);
}

TEST(UnmatchedConnections, OfEqualsTheOldestGoes) {
  UnmatchedConnections connections(2);
  Unmatched* const a = connections.Add({}, "a", {});
  connections.Add({}, "b", {});
  EXPECT_EQ(connections.Surplus(), a);
}

TEST(UnmatchedConnections, ACapacityOfNoneHasNoSurplus) {
  UnmatchedConnections connections(0);
  EXPECT_EQ(connections.Surplus(), nullptr);
  EXPECT_TRUE(connections.empty());
}

}  // namespace
}  // namespace ecpipe::unmatched_connections_test
