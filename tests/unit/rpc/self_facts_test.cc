// SPDX-License-Identifier: Apache-2.0
#include "rpc/examine/self_facts.h"

#include <gtest/gtest.h>

#include "net/tcp_socket.h"

namespace ecpipe::self_facts_test {
namespace {

// Nobody listens there: it was bound a moment ago, and is free again.
std::string ClosedAddress() {
  const auto listener = ListenOnAll({"127.0.0.1", 0}).value();
  return FormatHostPort(BoundAddress(listener[0].get()).value());
}

TEST(SelfFacts, WhatIsNotReachedIsNamed) {
  const auto listener = ListenOnAll({"127.0.0.1", 0}).value();
  const std::string open = FormatHostPort(BoundAddress(listener[0].get()).value());
  const std::string closed = ClosedAddress();
  v1::DialFacts facts;
  DialAll({{"a", "control", open}, {"a", "data", closed}, {"b", "data", "no address"}},
          Clock::System().Now() + std::chrono::seconds(60), &facts);
  EXPECT_EQ(facts.dialled(), 3u);
  EXPECT_EQ(facts.failed(), 2u);
  EXPECT_EQ(facts.not_dialled(), 0u);
  ASSERT_EQ(facts.failures_size(), 2);
  EXPECT_EQ(facts.failures(0).node_id(), "a");
  EXPECT_EQ(facts.failures(0).port(), "data");
  EXPECT_EQ(facts.failures(0).address(), closed);
  EXPECT_NE(facts.failures(0).error(), "");
}

TEST(SelfFacts, WithoutTimeNothingIsDialled) {
  v1::DialFacts facts;
  DialAll({{"a", "control", "127.0.0.1:1"}}, Clock::System().Now(), &facts);
  EXPECT_EQ(facts.dialled(), 0u);
  EXPECT_EQ(facts.not_dialled(), 1u);
}

TEST(SelfFacts, OnlyTheFirstFailuresAreNamedAndAllAreCounted) {
  const std::vector<DialTarget> targets(200, {"a", "data", "no address"});
  v1::DialFacts facts;
  DialAll(targets, Clock::System().Now() + std::chrono::seconds(60), &facts);
  EXPECT_EQ(facts.failed(), 200u);
  EXPECT_LT(facts.failures_size(), 200);
}

TEST(SelfFacts, TheTimeToDialIsBounded) {
  EXPECT_LE(DialPatience(29), std::chrono::seconds(2));
  EXPECT_GT(DialPatience(999), DialPatience(29));
  EXPECT_LE(DialPatience(1'000'000), std::chrono::seconds(20));
}

TEST(SelfFacts, OfThisProcess) {
  v1::DaemonFacts facts;
  FillDaemonFacts(nullptr, &facts);
  EXPECT_NE(facts.version(), "");
  EXPECT_GT(facts.open_descriptors(), 2u);
  EXPECT_GT(facts.max_descriptors(), facts.open_descriptors());
  EXPECT_FALSE(facts.has_certificate_end());
  EXPECT_GT(RoomOf("/").total_bytes(), 0u);
  EXPECT_NE(RoomOf("/no/such/directory").error(), "");
}

}  // namespace
}  // namespace ecpipe::self_facts_test
