// SPDX-License-Identifier: Apache-2.0
// Rounds of probes over helpers that live in memory: the test plays their reports.
#include "coordinator/repairs/link_prober.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <limits>
#include <thread>

#include "unit/coordinator/fakes.h"

namespace ecpipe::link_prober_test {
namespace {

using ::testing::HasSubstr;
using Pairs = std::vector<std::pair<std::string, std::string>>;

class LinkProberTest : public ::testing::Test {
 protected:
  LinkProberTest() {
    for (const char* node : {"a", "b", "c"}) EXPECT_TRUE(nodes_.Register(FakeNode(node)).ok());
    options_.max_bytes = 10'000;
    options_.min_bytes = 10;
    options_.max_bytes_per_second = 1000;
    Make();
  }
  void Make() {
    prober_ = std::make_unique<LinkProber>(&nodes_, &speeds_, &busy_, &helpers_, &clock_, options_);
  }

  std::future<absl::StatusOr<ProbeRound>> Begin(Pairs links, uint64_t bytes = 1000) {
    const size_t before = Rounds();
    auto round = std::async(std::launch::async, [this, links = std::move(links), bytes] {
      return prober_->Probe(links, bytes);
    });
    while (Rounds() == before &&
           round.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout) {
    }
    return round;
  }
  size_t Rounds() {
    MutexLock lock(&helpers_.mutex);
    return static_cast<size_t>(helpers_.rounds);
  }
  // The sender's report says that its bytes took a second.
  void Answer(const absl::Status& status = absl::OkStatus()) {
    std::vector<HelperGateway::Handout> handouts;
    {
      MutexLock lock(&helpers_.mutex);
      handouts = helpers_.last;
    }
    for (const auto& handout : handouts) {
      std::vector<LinkTiming> timings;
      for (const HopOutput& output : handout.part.hops[0].outputs) {
        EXPECT_TRUE(output.measured);
        timings.push_back({output.node, handout.part.grid.bytes, 1.0, 0});
      }
      EXPECT_TRUE(handout.part.probe);
      prober_->Report(handout.helper.node, handout.part.repair_id, status,
                      status.ok() ? timings : std::vector<LinkTiming>{});
    }
  }

  FakeClock clock_;
  NodeRegistry nodes_{&clock_, std::chrono::seconds(5), {}, ""};
  KnownLinks speeds_{&clock_, nullptr};
  BusyNodes busy_{&clock_};
  FakeHelpers helpers_;
  LinkProber::Options options_;
  std::unique_ptr<LinkProber> prober_;
};

TEST_F(LinkProberTest, MeasuresEachLinkOfARound) {
  auto running = Begin({{"a", "b"}, {"b", "c"}, {"c", "a"}});
  EXPECT_EQ(helpers_.last.size(), 6u);
  Answer();
  const auto round = running.get();
  ASSERT_TRUE(round.ok()) << round.status();
  for (const ProbedLink& link : round->links) {
    EXPECT_TRUE(link.status.ok()) << link.status;
    EXPECT_EQ(link.bytes_per_second, 1000);
  }
  EXPECT_EQ(round->rest_seconds, 1);
  EXPECT_EQ(speeds_.Measured().size(), 3u);
  EXPECT_TRUE(helpers_.cancelled.empty());
}

// NaN is neither above nor below 0, and a tiny time makes an endless speed.
TEST_F(LinkProberTest, ATimeThatIsNoneMeasuresNothing) {
  for (const double seconds : {std::numeric_limits<double>::quiet_NaN(), -1.0, 0.0, 1e-320}) {
    auto running = Begin({{"a", "b"}});
    std::vector<HelperGateway::Handout> handouts;
    {
      MutexLock lock(&helpers_.mutex);
      handouts = helpers_.last;
    }
    for (const auto& handout : handouts) {
      prober_->Report(handout.helper.node, handout.part.repair_id, absl::OkStatus(),
                      {{"b", 1000, seconds, 0}});
    }
    const auto round = running.get();
    ASSERT_TRUE(round.ok()) << round.status();
    EXPECT_TRUE(absl::IsInternal(round->links[0].status)) << seconds;
    EXPECT_EQ(round->links[0].bytes_per_second, 0);
    EXPECT_TRUE(speeds_.Measured().empty());
    clock_.Advance(std::chrono::seconds(2));
    for (const char* node : {"a", "b", "c"}) ASSERT_TRUE(nodes_.Heartbeat(node, 1, {}).ok());
  }
}

TEST_F(LinkProberTest, NodesRestAfterARound) {
  auto running = Begin({{"a", "b"}}, 5000);
  EXPECT_TRUE(absl::IsResourceExhausted(prober_->Probe({{"b", "c"}}, 10).status()))
      << "one round at a time";
  Answer();
  ASSERT_TRUE(running.get().ok());
  const absl::Status resting = prober_->Probe({{"b", "c"}}, 10).status();
  EXPECT_TRUE(absl::IsResourceExhausted(resting));
  EXPECT_THAT(std::string(resting.message()), HasSubstr("allows the next probes in 5.00 s"));
  clock_.Advance(std::chrono::milliseconds(5001));
  for (const char* node : {"a", "b", "c"}) ASSERT_TRUE(nodes_.Heartbeat(node, 1, {}).ok());
  running = Begin({{"b", "c"}}, 10);
  Answer();
  EXPECT_TRUE(running.get().ok());
}

TEST_F(LinkProberTest, WhatIsRefused) {
  const auto refused = [&](const Pairs& links, uint64_t bytes) {
    return absl::IsInvalidArgument(prober_->Probe(links, bytes).status());
  };
  EXPECT_TRUE(refused({}, 10));
  EXPECT_TRUE(refused({{"a", "a"}}, 10));
  EXPECT_TRUE(refused({{"a", "b"}, {"a", "c"}}, 10)) << "two streams share a link";
  EXPECT_TRUE(refused({{"a", "c"}, {"b", "c"}}, 10));
  EXPECT_TRUE(refused({{"a", "b"}}, 9));
  EXPECT_TRUE(refused({{"a", "b"}}, 10'001));
  EXPECT_EQ(helpers_.rounds, 0);
}

TEST_F(LinkProberTest, ComparesStreamsThatShareANode) {
  for (const char* from : {"a", "b"}) speeds_.RecordProbe(from, {"c", 2500, 1, 0}, true);
  auto running = std::async(std::launch::async, [&] {
    return prober_->Probe({{"a", "c"}, {"b", "c"}}, 1000, LinkProber::Kind::kWhatIsShared);
  });
  while (Rounds() == 0) std::this_thread::yield();
  Answer();
  const auto round = running.get();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_EQ(round->rest_seconds, 2) << "a node may have had twice the bytes";
  const std::vector<LinkEstimate> known = speeds_.Measured();
  ASSERT_EQ(known.size(), 3u);
  EXPECT_EQ(known[0].bytes_per_second, 2500) << "the links by themselves are as fast as before";
  EXPECT_EQ(known[2].to, "c");
  EXPECT_EQ(known[2].from, "");
  EXPECT_EQ(known[2].bytes_per_second, 2000) << "of 5000";
  clock_.Advance(std::chrono::seconds(3));
  EXPECT_TRUE(absl::IsInvalidArgument(
      prober_->Probe({{"a", "c"}, {"b", "c"}, {"d", "c"}}, 1000, LinkProber::Kind::kWhatIsShared)
          .status()));
}

TEST_F(LinkProberTest, ANodeThatCannotTakePartDoesNotEndTheRound) {
  auto running = Begin({{"a", "b"}, {"c", "nobody"}});
  Answer();
  const auto round = running.get();
  ASSERT_TRUE(round.ok());
  EXPECT_TRUE(round->links[0].status.ok());
  EXPECT_THAT(std::string(round->links[1].status.message()), HasSubstr("nobody is not registered"));
}

TEST_F(LinkProberTest, FaultsAreNamedAndTheOtherEndIsToldToStop) {
  helpers_.down = {"b"};
  const auto refused = Begin({{"a", "b"}}).get();
  ASSERT_TRUE(refused.ok());
  EXPECT_THAT(std::string(refused->links[0].status.message()), HasSubstr("b: refused"));
  EXPECT_EQ(helpers_.cancelled.size(), 1u);
  helpers_.down.clear();
  clock_.Advance(std::chrono::seconds(2));
  auto running = Begin({{"a", "b"}});
  Answer(absl::UnavailableError("node b closed the stream"));
  EXPECT_TRUE(absl::IsUnavailable(running.get()->links[0].status));
  EXPECT_TRUE(speeds_.Measured().empty());
  EXPECT_FALSE(prober_->Report("a", 42, absl::OkStatus(), {})) << "that is a repair's";
}

TEST_F(LinkProberTest, OnlyBothEndsEndALink) {
  auto running = Begin({{"a", "b"}});
  const RepairId id = helpers_.last[0].part.repair_id;
  EXPECT_TRUE(prober_->Report("b", id, absl::OkStatus(), {}));
  EXPECT_TRUE(prober_->Report("b", id, absl::OkStatus(), {})) << "a report that comes twice";
  EXPECT_EQ(running.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_TRUE(prober_->Report("a", id, absl::OkStatus(), {}));
  EXPECT_TRUE(absl::IsInternal(running.get()->links[0].status)) << "no time was given";
}

TEST_F(LinkProberTest, ARepairThatRunsMakesItALowerBound) {
  const auto repair = busy_.Reserve({"b"});
  auto running = Begin({{"a", "b"}});
  EXPECT_TRUE(repair->Shared("b")) << "and the repair's figures are no better";
  Answer();
  EXPECT_EQ(running.get()->links[0].bytes_per_second, 1000);
  EXPECT_TRUE(speeds_.Measured().empty());
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_FALSE(busy_.Reserve({"a"})->Shared("a")) << "the round holds its nodes no longer";
}

TEST_F(LinkProberTest, SilenceAndTheEndOfTheCoordinatorEndARound) {
  options_.patience = std::chrono::milliseconds(20);
  Make();
  const auto silent = Begin({{"a", "b"}}).get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(silent->links[0].status));
  EXPECT_EQ(helpers_.cancelled.size(), 1u);
  options_.patience = std::chrono::hours(1);
  Make();
  auto running = Begin({{"a", "b"}});
  prober_->Stop();
  EXPECT_TRUE(absl::IsCancelled(running.get()->links[0].status));
  EXPECT_TRUE(absl::IsUnavailable(prober_->Probe({{"a", "b"}}, 10).status()));
}

}  // namespace
}  // namespace ecpipe::link_prober_test
