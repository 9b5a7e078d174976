// SPDX-License-Identifier: Apache-2.0
#include "net/host_lookups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "base/status.h"
#include "unit/net/name_server.h"

namespace ecpipe::host_lookups_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

class HostLookupsTest : public ::testing::Test {
 protected:
  void SetUp() override { server_.Knows({"192.0.2.1", "192.0.2.2"}); }
  static TimePoint Patience() { return Clock::System().Now() + std::chrono::seconds(60); }
  static TimePoint Passed() { return Clock::System().Now() - std::chrono::seconds(1); }
  absl::StatusOr<HostLookups::Addresses> Find(const std::string& host) {
    return lookups_.Begin(host)->Await(Patience());
  }
  std::vector<std::shared_ptr<HostLookups::Lookup>> HangAllThreads() {
    server_.Hang(true);
    std::vector<std::shared_ptr<HostLookups::Lookup>> begun;
    for (size_t i = 0; i < HostLookups::kMaxThreads; ++i) {
      begun.push_back(lookups_.Begin("hangs-" + std::to_string(i)));
    }
    server_.AwaitHanging(HostLookups::kMaxThreads);
    return begun;
  }

  NameServer server_;
  HostLookups lookups_{server_.resolver()};
};

TEST_F(HostLookupsTest, ANumericAddressAsksNobody) {
  server_.Hang(true);
  for (const std::string numeric : {"192.0.2.7", "2001:db8::1", "::"}) {
    const auto found = lookups_.Begin(numeric)->Await(Passed());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, ElementsAre(numeric));
  }
  EXPECT_THAT(server_.asked(), IsEmpty());
}

TEST_F(HostLookupsTest, WhoWaitsForANameServerThatHangsIsTold) {
  server_.Hang(true);
  const absl::Status status = lookups_.Begin("name")->Await(Passed()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("resolve name: the name server"));
}

TEST_F(HostLookupsTest, ANameIsAskedForOnceAndAFailureIsNotKept) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(*Find("name"), ElementsAre("192.0.2.1", "192.0.2.2"));
  EXPECT_THAT(server_.asked(), SizeIs(1));
  for (int i = 0; i < 3; ++i) {
    const absl::Status failure = Find("nowhere").status();
    EXPECT_TRUE(absl::IsUnavailable(failure) && HostLookups::NobodyKnows(failure)) << failure;
  }
  EXPECT_THAT(server_.asked(), SizeIs(4));
}

TEST_F(HostLookupsTest, WhatALookUpThrowsIsItsError) {
  HostLookups lookups([](const std::string& host) -> absl::StatusOr<HostLookups::Addresses> {
    if (host == "heavy") throw std::bad_alloc();
    return HostLookups::Addresses{"192.0.2.1"};
  });
  const absl::Status status = lookups.Begin("heavy")->Await(Patience()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(lookups.Begin("light")->Await(Patience()).ok());
}

TEST_F(HostLookupsTest, ThreadsAreLimitedAndAllNamesHaveTheirTurn) {
  constexpr int kNames = 3 * HostLookups::kMaxThreads;
  server_.Hang(true);
  std::vector<std::shared_ptr<HostLookups::Lookup>> begun;
  for (int i = 0; i < kNames; ++i) begun.push_back(lookups_.Begin("name" + std::to_string(i)));
  server_.AwaitHanging(HostLookups::kMaxThreads);
  server_.Hang(false);
  for (const auto& lookup : begun) EXPECT_TRUE(lookup->Await(Patience()).ok());
  EXPECT_THAT(server_.asked(), SizeIs(kNames));
  EXPECT_THAT(server_.most_hanging(), Le(HostLookups::kMaxThreads));
}

// What was given up while it waited for a thread is not looked up, and holds no file open.
TEST_F(HostLookupsTest, WhatNobodyWaitsForAnyMoreIsForgotten) {
  const auto hanging = HangAllThreads();
  const std::weak_ptr<HostLookups::Lookup> given_up = lookups_.Begin("given-up");
  EXPECT_TRUE(given_up.expired());
  const auto wanted = lookups_.Begin("wanted");
  server_.Hang(false);
  EXPECT_TRUE(wanted->Await(Patience()).ok());
  for (const auto& lookup : hanging) EXPECT_TRUE(lookup->Await(Patience()).ok());
  EXPECT_THAT(server_.asked(), SizeIs(HostLookups::kMaxThreads + 1));
  EXPECT_THAT(server_.asked(), Not(Contains("given-up")));
}

TEST_F(HostLookupsTest, SoManyNamesAtOnceAndNoMore) {
  const auto hanging = HangAllThreads();
  for (size_t i = hanging.size(); i < HostLookups::kMaxHosts; ++i) {
    (void)lookups_.Begin("name" + std::to_string(i));  // not kept: each has an open file
  }
  const absl::Status refused = lookups_.Begin("one-more")->Await(Passed()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(lookups_.Begin("192.0.2.7")->Await(Passed()).ok());
}

TEST_F(HostLookupsTest, AServerThatCannotSayNowMayKnowTheNameAllTheSame) {
  for (const int error : {EAI_AGAIN, EAI_FAIL, EAI_SYSTEM, EAI_MEMORY}) {
    const absl::Status failure = HostLookups::FailureOf("name", error);
    EXPECT_TRUE(absl::IsUnavailable(failure)) << failure;
    EXPECT_FALSE(HostLookups::NobodyKnows(failure)) << failure;
    EXPECT_EQ(IsOwnShortage(failure), error == EAI_SYSTEM || error == EAI_MEMORY) << failure;
  }
  EXPECT_FALSE(HostLookups::NobodyKnows(Find("busy").status()));
  EXPECT_TRUE(HostLookups::NobodyKnows(HostLookups::FailureOf("name", EAI_NODATA)));
  EXPECT_FALSE(IsOwnShortage(HostLookups::FailureOf("name", EAI_NODATA)));
}

// What is known is looked up anew behind what is not, and never by all threads.
TEST_F(HostLookupsTest, FirstLookUpsGoBeforeRefreshes) {
  constexpr size_t kKnown = 4 * HostLookups::kMaxThreads;
  static auto& clock = *new FakeClock;  // for threads that outlive the test
  HostLookups lookups(server_.resolver(), &clock);
  const auto name = [](size_t i) { return "known-" + std::to_string(i); };
  for (size_t i = 0; i < kKnown; ++i) {
    ASSERT_TRUE(lookups.Begin(name(i))->Await(Patience()).ok());
  }
  clock.Advance(2 * HostLookups::kFresh);
  server_.Hang(true);
  for (size_t i = 0; i < kKnown; ++i) EXPECT_TRUE(lookups.Begin(name(i))->Await(Passed()).ok());
  server_.AwaitHanging(HostLookups::kMaxRefreshing);
  const auto first = lookups.Begin("first");
  // Somebody who wants no old result waits for the one that is queued.
  const auto anew = lookups.Begin(name(kKnown - 1), HostLookups::kFresh);
  server_.AwaitHanging(HostLookups::kMaxRefreshing + 2);
  EXPECT_THAT(server_.asked(), Contains("first"));
  EXPECT_THAT(server_.asked(), SizeIs(kKnown + HostLookups::kMaxRefreshing + 2));
  server_.Hang(false);
  EXPECT_TRUE(first->Await(Patience()).ok());
  EXPECT_TRUE(anew->Await(Patience()).ok());
}

TEST_F(HostLookupsTest, TheSystemKnowsThisHost) {
  const auto found = HostLookups::OfThisProcess().Begin("localhost")->Await(Patience());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, Not(IsEmpty()));
}

}  // namespace
}  // namespace ecpipe::host_lookups_test
