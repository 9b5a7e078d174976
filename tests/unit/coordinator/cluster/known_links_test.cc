// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/known_links.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <thread>

#include "coordinator/cluster/busy_nodes.h"

namespace ecpipe::known_links_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

double SpeedOf(const LinkHistory& history, const std::string& from, const std::string& to) {
  const LinkTable table = history.Table().pairs;
  const auto found = table.find({from, to});
  return found == table.end() ? 0 : found->second;
}

TEST(LinkHistory, IsAnExponentiallyWeightedMean) {
  LinkHistory history;
  FakeClock clock;
  history.Measured("a", "b", 100, clock.Now());
  EXPECT_EQ(SpeedOf(history, "a", "b"), 100);
  history.Measured("a", "b", 200, clock.Now());
  EXPECT_DOUBLE_EQ(SpeedOf(history, "a", "b"), 130);
  EXPECT_EQ(SpeedOf(history, "b", "a"), 0) << "links have a direction";
  clock.Advance(minutes(20));
  history.Measured("a", "b", 30, clock.Now());
  EXPECT_DOUBLE_EQ(SpeedOf(history, "a", "b"), 130 - 0.75 * 100) << "two half-lives later";
  EXPECT_EQ(history.All()[0].samples, 3u);
  EXPECT_EQ(history.All()[0].last, clock.Now());
}

TEST(LinkHistory, ALowerBoundOnlyRaises) {
  LinkHistory history;
  history.AtLeast("a", "b", 50);
  EXPECT_TRUE(history.All().empty()) << "a bound alone is no estimate";
  history.Measured("a", "b", 100, TimePoint());
  history.AtLeast("a", "b", 50);
  EXPECT_EQ(SpeedOf(history, "a", "b"), 100);
  history.AtLeast("a", "b", 150);
  EXPECT_EQ(SpeedOf(history, "a", "b"), 150);
  EXPECT_EQ(history.All()[0].samples, 1u);
}

TEST(LinkHistory, ForgetsAndRefusesNonsense) {
  LinkHistory history;
  FakeClock clock;
  for (const double speed : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    history.Measured("a", "b", speed, clock.Now());
  }
  EXPECT_TRUE(history.All().empty());
  history.Measured("a", "b", 1, clock.Now());
  clock.Advance(hours(23));
  history.Measured("c", "d", 1, clock.Now());
  clock.Advance(hours(2));
  history.Forget(clock.Now());
  ASSERT_EQ(history.All().size(), 1u);
  EXPECT_EQ(history.All()[0].from, "c");
}

// In a cluster of 1,000 nodes those that came first would otherwise be all that is ever known.
TEST(LinkHistory, ForMorePairsTheOldestMakeRoom) {
  LinkHistory history(20);
  FakeClock clock;
  for (int i = 0; i < 30; ++i) {
    clock.Advance(seconds(1));
    const std::string to = std::to_string(i);
    history.Measured("a", to, 100, clock.Now());
    history.Measured("a", "1", 100, clock.Now());  // measured again and again
    history.Together({"a", to}, 100, 200, clock.Now());
    EXPECT_EQ(history.SpeedOf("a", to), 100);
    EXPECT_LE(history.Table().pairs.size(), 20u);
    EXPECT_LE(history.Table().racks.size(), 20u);
  }
  EXPECT_EQ(history.SpeedOf("a", "0"), 0);
  EXPECT_EQ(history.SpeedOf("a", "1"), 100);
  EXPECT_EQ(history.SpeedOf("a", "20"), 100);
  EXPECT_GE(history.Table().pairs.size(), 17u) << "not more than a tenth has to go";
  EXPECT_TRUE(history.Table().racks.contains({"a", "29"}));
}

TEST(BusyNodes, KnowsWhoHadANodeForItself) {
  FakeClock clock;
  BusyNodes busy(&clock);
  const auto first = busy.Reserve({"a", "b"});
  EXPECT_FALSE(first->Shared("a"));
  EXPECT_FALSE(first->Shared("b"));
  EXPECT_TRUE(first->Has("a"));
  EXPECT_FALSE(first->Has("c"));
  auto second = busy.Reserve({"b", "c"});
  EXPECT_TRUE(first->Shared("b")) << "though it came first";
  EXPECT_TRUE(second->Shared("b"));
  EXPECT_FALSE(second->Shared("c"));
  EXPECT_FALSE(first->Shared("a"));
  first->Release();
  EXPECT_TRUE(first->Shared("b")) << "that stays known";
  second.reset();
  const auto third = busy.Reserve({"a", "b", "c"});
  for (const char* node : {"a", "b", "c"}) EXPECT_FALSE(third->Shared(node)) << node;
}

TEST(BusyNodes, TrustsNobodyForAWhileIfToldSo) {
  FakeClock clock;
  BusyNodes busy(&clock);
  busy.DistrustUntil(clock.Now() + minutes(1));
  EXPECT_TRUE(busy.Reserve({"a"})->Shared("a"));
  clock.Advance(minutes(1));
  EXPECT_FALSE(busy.Reserve({"a"})->Shared("a"));
}

double Speed(const ClusterView& view, const std::string& from, const std::string& to) {
  const Links links(view);
  return links.Between(links.At(from), links.At(to));
}

class KnownLinksTest : public ::testing::Test {
 protected:
  double Measured(const std::string& from, const std::string& to) {
    ClusterView view;
    speeds_.FillIn(&view);
    view.default_bytes_per_second = 1e12;
    const double speed = Speed(view, from, to);
    return speed == 1e12 ? 0 : speed;
  }

  FakeClock clock_;
  KnownLinks speeds_{&clock_, nullptr};
};

TEST_F(KnownLinksTest, OnlyAStreamThatTheNetworkHeldUpMeasures) {
  // What namespaces with 100 Mb/s gave: a sender that always has data, and one that seldom has.
  speeds_.Record("a", {"b", 4'194'305, 0.345, 0.340}, true);
  EXPECT_NEAR(Measured("a", "b") * 8 / 1e6, 98.7, 0.1);
  speeds_.Record("a", {"c", 4'194'305, 1.394, 0.004}, true);
  EXPECT_EQ(Measured("a", "c"), 0) << "bursts tell nothing";
  speeds_.Record("a", {"d", 40'000, 0.0105, 0.010}, true);
  EXPECT_EQ(Measured("a", "d"), 0) << "too short for the kernel's ticks";
  speeds_.Record("a", {"e", 4'194'305, 0.345, 0.340}, false);
  EXPECT_EQ(Measured("a", "e"), 0) << "it had company";
}

TEST_F(KnownLinksTest, ANewFileOfLinksHoldsForTheNextPlan) {
  const auto table = std::make_shared<const LinkTable>(LinkTable{{{"a", "b"}, 5.0}});
  ClusterView before;
  speeds_.FillIn(&before);
  speeds_.SetConfigured(table);
  ClusterView after;
  speeds_.FillIn(&after);
  EXPECT_EQ(before.links, nullptr);
  EXPECT_EQ(after.links, table);
  EXPECT_EQ(speeds_.configured(), table);
}

TEST_F(KnownLinksTest, WithoutAMeasurementNothingIsKnown) {
  speeds_.Record("a", {"b", 4'194'305, 0.345, 0.340}, false);
  ClusterView view;
  speeds_.FillIn(&view);
  EXPECT_FALSE(HavePairs(view)) << "auto would try schemes that look at links";
}

TEST_F(KnownLinksTest, OthersAreLowerBounds) {
  speeds_.Record("a", {"b", 1'000'000, 1.0, 1.0}, true);
  speeds_.Record("a", {"b", 500'000, 1.0, 1.0}, false);
  EXPECT_EQ(Measured("a", "b"), 1e6) << "slow because it was shared";
  speeds_.Record("a", {"b", 3'000'000, 1.0, 0.1}, true);
  EXPECT_EQ(Measured("a", "b"), 3e6) << "it has carried that much";
}

TEST_F(KnownLinksTest, AProbeMeasuresWhateverTheKernelSays) {
  speeds_.RecordProbe("a", {"b", 1'000'000, 0.5, 0}, true);
  EXPECT_EQ(Measured("a", "b"), 2e6);
  speeds_.RecordProbe("a", {"b", 1'000'000, 1.0, 0}, false);
  EXPECT_EQ(Measured("a", "b"), 2e6) << "slower because a repair ran";
}

TEST_F(KnownLinksTest, TheKernelsTicksMayBeLongerThanTheStream) {
  speeds_.Record("a", {"b", 1'000'000, 0.5, 0.504}, true);
  EXPECT_EQ(Measured("a", "b"), 2e6);
  speeds_.RecordProbe("c", {"d", 1'000'000, 0.001, 0.004}, true);
  EXPECT_EQ(Measured("c", "d"), 1e9);
}

TEST_F(KnownLinksTest, ABurstIsNoBound) {
  speeds_.RecordProbe("a", {"b", 1'000'000, 0.5, 0}, true);
  speeds_.Record("a", {"b", 100'000, 0.001, 0.0005}, true);
  EXPECT_EQ(Measured("a", "b"), 2e6);
}

TEST_F(KnownLinksTest, WhatIsOldIsForgottenWithoutNews) {
  speeds_.RecordProbe("a", {"b", 1'000'000, 0.5, 0}, true);
  EXPECT_EQ(Measured("a", "b"), 2e6);
  clock_.Advance(hours(25));
  EXPECT_EQ(Measured("a", "b"), 0);
}

TEST_F(KnownLinksTest, NonsenseIsIgnored) {
  const double bad[] = {0, -1, std::nan(""), std::numeric_limits<double>::infinity()};
  for (const double nonsense : bad) {
    speeds_.Record("a", {"b", 1000, nonsense, 1}, true);
    speeds_.RecordProbe("a", {"b", 1000, nonsense, 1}, true);
  }
  speeds_.Record("a", {"b", 0, 1, 1}, true);
  speeds_.Record("a", {"b", 1000, 1, std::nan("")}, true);
  speeds_.Record("a", {"b", 1000, 1, -1}, true);
  speeds_.RecordProbe("a", {"b", UINT64_MAX, 1e-6, 0}, true);
  EXPECT_TRUE(speeds_.Measured().empty());
}

TEST_F(KnownLinksTest, WhatIsWrittenDownGoesBefore) {
  KnownLinks speeds(&clock_, std::make_shared<const LinkTable>(
                                 LinkTable{{{"a", "b"}, 10}, {{"/r1", "/r2"}, 20}}));
  for (const char* to : {"b", "c", "d"}) speeds.RecordProbe("a", {to, 1000, 1, 0}, true);
  ClusterView view;
  view.nodes = {{.node = "a", .rack = "/r1"}, {.node = "c", .rack = "/r2"}};
  speeds.FillIn(&view);
  EXPECT_EQ(Speed(view, "a", "b"), 10);
  EXPECT_EQ(Speed(view, "a", "c"), 20) << "by their racks";
  EXPECT_EQ(Speed(view, "a", "d"), 1000);
  EXPECT_TRUE(HavePairs(view));
}

TEST_F(KnownLinksTest, SeveralLinksShowWhatANodeCanDo) {
  ClusterView view;
  view.nodes = {{.node = "a"}, {.node = "b"}};
  view.default_bytes_per_second = 1000;
  const auto up = [&](const std::string& node) {
    speeds_.FillIn(&view);
    return Links(view).At(node).up();
  };
  speeds_.RecordProbe("a", {"b", 300, 1, 0}, true);
  speeds_.RecordProbe("a", {"c", 7000, 1, 0}, true);
  EXPECT_EQ(up("a"), 1000) << "two receivers may be the slow ones";
  EXPECT_EQ(Speed(view, "a", "c"), 7000) << "measured, whatever the default says";
  speeds_.RecordProbe("a", {"d", 4000, 1, 0}, true);
  EXPECT_EQ(up("a"), 7000);
  EXPECT_EQ(Links(view).At("b").down(), 1000);
  EXPECT_EQ(Speed(view, "a", "b"), 300);
  EXPECT_EQ(Speed(view, "b", "a"), 1000);
}

TEST_F(KnownLinksTest, TwoStreamsShowWhatTheyShare) {
  ClusterView view;
  view.nodes = {{.node = "a", .rack = "/x"},
                {.node = "b", .rack = "/x"},
                {.node = "c", .rack = "/y"},
                {.node = "d", .rack = "/y"}};
  view.default_bytes_per_second = 1000;
  const std::map<std::string, std::string> racks = {
      {"a", "/x"}, {"b", "/x"}, {"c", "/y"}, {"d", "/y"}};
  for (const char* from : {"a", "b"}) {
    for (const char* to : {"c", "d"}) speeds_.RecordProbe(from, {to, 300, 1, 0}, true);
  }
  speeds_.RecordTogether({{"a", "c", 160}, {"b", "c", 150}}, racks);
  speeds_.RecordTogether({{"a", "c", 290}, {"a", "d", 290}}, racks);
  speeds_.FillIn(&view);
  EXPECT_EQ(Links(view).At("c").down(), 310) << "two had no more than one";
  EXPECT_EQ(Links(view).At("a").up(), 1000) << "two had twice as much: the link is faster";
  EXPECT_EQ(Links(view).At("d").down(), 1000) << "one stream shows nothing";
  EXPECT_EQ(Links(view).BetweenRacks("/x", "/y"), 0) << "the streams met at a node";
  EXPECT_EQ(Speed(view, "a", "c"), 300) << "shared streams lower nothing";
  speeds_.RecordTogether({{"a", "c", 150}, {"b", "d", 170}}, racks);
  speeds_.FillIn(&view);
  EXPECT_EQ(Links(view).BetweenRacks("/x", "/y"), 320);
  EXPECT_EQ(Links(view).BetweenRacks("/y", "/x"), 0);
  size_t shared = 0;
  for (const LinkEstimate& estimate : speeds_.Measured()) shared += estimate.shared ? 1 : 0;
  EXPECT_EQ(shared, 2u);
  speeds_.RecordTogether({{"a", "c", 300}, {"b", "d", 280}}, racks);
  speeds_.FillIn(&view);
  EXPECT_EQ(Links(view).BetweenRacks("/x", "/y"), 0) << "what was found last counts";
  speeds_.RecordTogether({{"a", "c", 1}, {"a", "e", 1}}, racks);
  speeds_.FillIn(&view);
  EXPECT_EQ(Links(view).At("a").up(), 1000) << "what the stream to e has alone is not known";
}

TEST_F(KnownLinksTest, ANodesOwnLinksAreAsFastAsItsFastestPair) {
  KnownLinks speeds(&clock_, std::make_shared<const LinkTable>(LinkTable{{{"a", "b"}, 10},
                                                                         {{"a", "c"}, 50},
                                                                         {{"a", "d"}, 20},
                                                                         {{"b", "a"}, 10},
                                                                         {{"b", "c"}, 10},
                                                                         {{"d", "c"}, 40}}));
  NodeSpeeds of = speeds.SpeedsOf({"a", "b", "c", "x"});
  ASSERT_EQ(of.size(), 2u) << "two links, of b, show nothing";
  EXPECT_EQ(of.at("a").up, 1) << "nobody else's is known";
  EXPECT_EQ(of.at("c").down, 1);
  for (const char* from : {"a", "b", "e"}) {
    for (const char* to : {"c", "d", "f"}) {
      speeds.RecordProbe(from, {to, *from == 'b' ? 100u : 200u, 1, 0}, true);
    }
  }
  ClusterView planned;
  speeds.FillIn(&planned);
  of = speeds.SpeedsOf({"a", "b", "e"});
  EXPECT_EQ(of.at("a").up, 0.5) << "as in the file; the median is b's";
  EXPECT_EQ(of.at("b").up, 1);
  EXPECT_EQ(of.at("e").up, 2);
  EXPECT_EQ(of.at("e").down, 1) << "unknown";
  speeds.SetConfigured(nullptr);
  of = speeds.SpeedsOf({"a", "b", "e"});
  EXPECT_EQ(of.at("a").up, 1);
  EXPECT_EQ(of.at("b").up, 0.5);
}

TEST_F(KnownLinksTest, ALargeTableIsCopiedOnceASecond) {
  for (int i = 0; i < 1000; ++i) speeds_.RecordProbe("a", {std::to_string(i), 1000, 1, 0}, true);
  EXPECT_EQ(Measured("a", "999"), 1000);
  speeds_.RecordProbe("a", {"new", 1000, 1, 0}, true);
  EXPECT_EQ(Measured("a", "new"), 0);
  clock_.Advance(milliseconds(1001));
  EXPECT_EQ(Measured("a", "new"), 1000);
}

// Its second answer to one thread, which comes while that thread makes a table, has to be waited
// for.
class ClockThatHolds : public Clock {
 public:
  TimePoint Now() const override {
    if (held_ && ++asked_ == 2) {
      holds_.set_value();
      go_on_.get_future().wait();
    }
    return TimePoint() + seconds(1);
  }
  int64_t UnixMillis() const override { return 0; }
  void HoldThisThread() { held_ = true; }
  void AwaitHold() { holds_.get_future().wait(); }
  void GoOn() { go_on_.set_value(); }

 private:
  static thread_local bool held_;
  mutable std::atomic<int> asked_{0};
  mutable std::promise<void> holds_;
  mutable std::promise<void> go_on_;
};
thread_local bool ClockThatHolds::held_ = false;

// The copy of 250,000 pairs takes a tenth of a second, and was made under the lock of all plans.
TEST(KnownLinks, PlansDoNotWaitWhileATableIsMade) {
  ClockThatHolds clock;
  KnownLinks links(&clock, nullptr);
  links.RecordProbe("a", {"b", 1000, 1, 0}, true);
  ClusterView first;
  links.FillIn(&first);
  links.RecordProbe("a", {"c", 1000, 1, 0}, true);
  std::thread maker([&] {
    clock.HoldThisThread();
    ClusterView view;
    links.FillIn(&view);
  });
  clock.AwaitHold();
  auto planned = std::async(std::launch::async, [&] {
    ClusterView view;
    links.FillIn(&view);
    return links.SpeedsOf({"a"}).size() + view.measured->size();
  });
  const bool came = planned.wait_for(seconds(20)) == std::future_status::ready;
  clock.GoOn();
  maker.join();
  EXPECT_TRUE(came);
  EXPECT_EQ(planned.get(), 1u) << "as of before; one link says nothing of its node";
  ClusterView last;
  links.FillIn(&last);
  EXPECT_EQ(last.measured->size(), 2u);
}

}  // namespace
}  // namespace ecpipe::known_links_test
