// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/coordinator_metrics.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "unit/coordinator/recovery/recovery_manager_fixture.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::coordinator_metrics_test {
namespace {

class CoordinatorMetricsTest : public RecoveryManagerTest {
 protected:
  void SetUp() override {
    Start();
    limits_ = LimitBook::Open(directory_.File("limits.db")).value();
    AddTo(StripeSources({}), &metrics_);
  }
  void AddTo(StripeSources sources, Metrics* metrics) {
    AddCoordinatorMetrics({.repairs = repairs_.get(),
                           .recoveries = manager_.get(),
                           .limits = limits_.get(),
                           .marks = &marks_,
                           .data_directory = directory_.File(""),
                           .max_running = 9,
                           .sources = std::move(sources)},
                          metrics);
  }
  // Of a metric with its labels; nothing: there is no such line.
  std::optional<double> Value(const std::string& name) {
    const std::string text = metrics_.Text();
    const std::string start = "\n" + name + " ";
    const size_t at = text.find(start);
    if (at == std::string::npos) return std::nullopt;
    const size_t from = at + start.size();
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(text.substr(from, text.find('\n', from) - from), &value)) << name;
    return value;
  }
  double Waiting(WaitKind kind) {
    return Value(std::string("ecpipe_recovery_waiting_blocks{kind=\"") + WaitKindName(kind) + "\"}")
        .value();
  }
  double WithSpare(const std::string& spare) {
    return Value("ecpipe_recovery_blocks_by_spare{spare=\"" + spare + "\"}").value();
  }
  double Ended(const std::string& work, const std::string& cause, const std::string& outcome) {
    return Value("ecpipe_repairs_ended_total{work=\"" + work + "\",cause=\"" + cause +
                 "\",outcome=\"" + outcome + "\"}")
        .value();
  }
  double Unplanned(const std::string& work, const std::string& cause) {
    return Value("ecpipe_repairs_unplanned_total{work=\"" + work + "\",cause=\"" + cause + "\"}")
        .value();
  }
  // Of a requestor's repair that ends well.
  void Repair(RepairRequest request, std::optional<double> first_byte_seconds) {
    request.slice_bytes = 100;
    const auto grant = repairs_->BeginRepair(request);
    ASSERT_TRUE(grant.ok()) << grant.status();
    repairs_->FinishRepair(grant->repair_id, {absl::OkStatus(), 1000, first_byte_seconds});
  }
  double OldestLoss() { return Value("ecpipe_oldest_loss_seconds").value(); }
  void AddDead(const std::string& node, Duration silent) {
    ASSERT_TRUE(repairs_->nodes().AddDead(FakeNode(node), silent).ok());
  }
  // Lost blocks of n0 whose stripe has a block on the node as well.
  double LostBeside(const std::string& node) {
    MutexLock lock(&catalog_.mutex);
    return static_cast<double>(
        std::count_if(catalog_.stripes.begin(), catalog_.stripes.end(), [&](const auto& stripe) {
          const auto has = [&](const std::string& wanted) {
            return std::any_of(stripe.second.blocks.begin(), stripe.second.blocks.end(),
                               [&](const BlockPlace& place) { return place.node == wanted; });
          };
          return has("n0") && has(node);
        }));
  }

  ScratchDirectory directory_;
  std::unique_ptr<LimitBook> limits_;
  MarkKeeper marks_{nullptr, &Clock::System()};
  Metrics metrics_;
};

TEST_F(CoordinatorMetricsTest, TheLimitOfRunningRepairsIsTheOneInEffect) {
  EXPECT_EQ(Value("ecpipe_cluster_running_repairs_limit"), 9) << "as configured";
  ASSERT_TRUE(limits_->Set(LimitsOfCluster{.max_running = 7}).ok());
  EXPECT_EQ(Value("ecpipe_cluster_running_repairs_limit"), 7);
}

// Its stripes are counted for that, and in a large cluster that takes seconds.
TEST_F(CoordinatorMetricsTest, AStorageSystemIsAskedOnceAScrape) {
  class CountedSource : public StripeSource {
   public:
    std::string system() const override { return "counted"; }
    std::optional<std::string> BlockNamed(const std::string&) const override { return {}; }
    bool HasNode(const std::string&) const override { return false; }
    absl::StatusOr<StripeFacts> FactsOf(const std::string&, const std::string&) override {
      return absl::NotFoundError("none");
    }
    absl::StatusOr<ReportedBlocks::Outcome> Record(BlockReport) override {
      return absl::NotFoundError("none");
    }
    std::optional<SourceStatus> Overview() override {
      ++asked;
      return SourceStatus{.facts = {.groups = 7}, .degraded = 3, .lost = std::nullopt};
    }
    SystemNode NodeOf(const NodeView&) override { return {}; }
    absl::StatusOr<NodeLoss> LossOf(const NodeView&, const std::set<std::string>&) override {
      return absl::NotFoundError("none");
    }

    int asked = 0;
  };
  CountedSource source;
  Metrics metrics;
  AddTo(StripeSources({&source}), &metrics);
  const std::string text = metrics.Text();
  EXPECT_EQ(source.asked, 1);
  EXPECT_NE(text.find("\necpipe_source_stripes{system=\"counted\"} 7"), std::string::npos) << text;
  EXPECT_NE(text.find("\necpipe_source_up{system=\"counted\"} 1"), std::string::npos);
  EXPECT_NE(text.find("\necpipe_source_degraded_stripes{system=\"counted\"} 3"), std::string::npos);
  EXPECT_EQ(text.find("\necpipe_source_lost_stripes{"), std::string::npos) << "not known";
}

TEST_F(CoordinatorMetricsTest, TheRoomForTheStateIsKnown) {
  const double free = Value("ecpipe_data_directory_free_bytes").value();
  EXPECT_GT(free, 0);
  EXPECT_GE(Value("ecpipe_data_directory_bytes").value(), free);
  EXPECT_EQ(Value("ecpipe_journal_failures_total"), 0);
}

TEST_F(CoordinatorMetricsTest, WhatItsClientCancelsHasNotFailed) {
  for (const absl::Status& end : {absl::CancelledError("left"), absl::DataLossError("bad")}) {
    const auto grant =
        repairs_->BeginRepair({.block_ids = {"b0"}, .scheme = "rp", .slice_bytes = 100});
    ASSERT_TRUE(grant.ok()) << grant.status();
    repairs_->FinishRepair(grant->repair_id, {end, 100, 0.1});
  }
  EXPECT_EQ(Ended("read", "degraded_read", "cancelled"), 1);
  EXPECT_EQ(Ended("read", "degraded_read", "failed"), 1);
  EXPECT_EQ(Ended("read", "degraded_read", "done"), 0);
}

TEST_F(CoordinatorMetricsTest, RepairsAreCountedByTheirCause) {
  for (const RepairCause cause : kRepairCauses) {
    const char* const name = RepairCauseName(cause);
    EXPECT_EQ(Ended(WorkOf(cause), name, "done"), 0) << "each is there from the start";
    EXPECT_EQ(Ended(WorkOf(cause), name, "failed"), 0);
    EXPECT_EQ(Ended(WorkOf(cause), name, "cancelled"), 0);
    EXPECT_EQ(Unplanned(WorkOf(cause), name), 0);
  }
  RepairRequest lost{.block_ids = {"b0"}, .scheme = "rp"};
  Repair(lost, std::nullopt);
  lost.cause = RepairCause::kReconstruction;
  Repair(lost, std::nullopt);
  Repair({.block_ids = {"b1"}, .scheme = "direct"}, std::nullopt);
  EXPECT_EQ(Ended("read", "degraded_read", "done"), 1);
  EXPECT_EQ(Ended("read", "reconstruction", "done"), 1);
  EXPECT_EQ(Ended("read", "read", "done"), 1) << "it was there";
  EXPECT_EQ(Value("ecpipe_repair_seconds_count{scheme=\"rp\",work=\"read\","
                  "cause=\"reconstruction\",outcome=\"done\"}"),
            1);
  EXPECT_EQ(Value("ecpipe_repair_bytes_total{scheme=\"rp\",work=\"read\","
                  "cause=\"degraded_read\",outcome=\"done\"}"),
            1000);
  for (const char* node : {"n1", "n2"}) repairs_->nodes().Forget(node);
  EXPECT_FALSE(repairs_->BeginRepair(lost).ok());
  EXPECT_EQ(Unplanned("read", "reconstruction"), 1);
}

TEST_F(CoordinatorMetricsTest, RecoveriesAreCausesByTheirKind) {
  ASSERT_TRUE(RunToEnd(Begin(Request())));
  const double lost = Ended("recovery", "node_loss", "done");
  EXPECT_GT(lost, 0);
  RecoveryRequest drain = Request();
  drain.node = "n1";
  drain.kind = RecoveryKind::kMove;
  ASSERT_TRUE(RunToEnd(Begin(drain)));
  EXPECT_GT(Ended("recovery", "drain", "done"), 0);
  EXPECT_EQ(Ended("recovery", "node_loss", "done"), lost);
  EXPECT_EQ(Ended("store", "command", "done"), 0);
}

// The journal has no causes.
TEST_F(CoordinatorMetricsTest, AdoptedRepairsHaveTheirCauses) {
  RecoveryRequest drain = Request();
  drain.node = "n1";
  drain.kind = RecoveryKind::kMove;
  const RecoveryId id = Begin(drain);
  ASSERT_FALSE(WaitForNewHosts(1).empty());
  RepairRequest stored{.block_ids = {"b12"}, .scheme = "rp", .hosts = {"spare"}};
  ASSERT_TRUE(repairs_->BeginRepair(stored).ok());
  ASSERT_TRUE(manager_->Pause(id).ok());
  Start();
  repairs_->CancelHosted(id);
  repairs_->CancelHosted(0);
  std::set<RepairCause> causes;
  for (const auto& [kind, seconds] : repairs_->counts().seconds) causes.insert(kind.cause);
  EXPECT_EQ(causes, (std::set<RepairCause>{RepairCause::kDrain, RepairCause::kCommand}));
}

TEST_F(CoordinatorMetricsTest, TheTimeToTheFirstByteIsWhatTheRequestorSays) {
  const RepairRequest lost{.block_ids = {"b0"}, .scheme = "rp"};
  Repair(lost, 0.02);
  Repair(lost, 2);
  Repair(lost, std::nullopt);
  const auto bucket = [&](const std::string& le) {
    return Value(
        "ecpipe_repair_first_byte_seconds_bucket{scheme=\"rp\",cause=\"degraded_read\",le=\"" + le +
        "\"}");
  };
  EXPECT_EQ(bucket("0.01"), 0);
  EXPECT_EQ(bucket("0.03"), 1);
  EXPECT_EQ(bucket("+Inf"), 2) << "who does not say is not counted";
}

TEST_F(CoordinatorMetricsTest, BlocksThatWaitAreCountedByWhatTheyWaitFor) {
  for (int kind = 0; kind <= static_cast<int>(WaitKind::kFailed); ++kind) {
    EXPECT_EQ(Waiting(static_cast<WaitKind>(kind)), 0) << "each is there from the start";
  }
  RecoveryRequest request = Request({"spare"});
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  ASSERT_EQ(WaitForNewHosts(1).size(), 1u);
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  const auto waiting = static_cast<double>(View(id).waiting_blocks);
  EXPECT_GT(waiting, 0);
  EXPECT_EQ(Waiting(WaitKind::kStreams), waiting);
  ASSERT_TRUE(manager_->Pause(id).ok());
  EXPECT_EQ(Waiting(WaitKind::kStreams), 0);
  EXPECT_EQ(Waiting(WaitKind::kPaused), waiting);
  EXPECT_EQ(Value("ecpipe_recovery_blocks{state=\"waiting\"}"), waiting);
}

TEST_F(CoordinatorMetricsTest, BlocksWhoseRepairFailedAreCountedByTheReason) {
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down = {"spare"};
  }
  Begin(Request({"spare"}));
  // At any one moment all blocks may be tried again.
  EXPECT_TRUE(WaitFor([&] { return Waiting(WaitKind::kHelper) > 0; }));
  EXPECT_EQ(Waiting(WaitKind::kSurvivors), 0);
}

TEST_F(CoordinatorMetricsTest, BlocksAreCountedByTheSurvivorsThatTheyHaveToSpare) {
  RecoveryRequest request = Request({"spare"});
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  ASSERT_EQ(WaitForNewHosts(1).size(), 1u);
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  const auto lost = static_cast<double>(View(id).record.blocks);
  EXPECT_EQ(WithSpare("1"), lost) << "five survivors, four needed, also while it runs";
  ASSERT_TRUE(manager_->Pause(id).ok());
  repairs_->nodes().Forget("n1");
  EXPECT_EQ(WithSpare("0"), LostBeside("n1"));
  EXPECT_EQ(WithSpare("1"), lost - LostBeside("n1"));
  ASSERT_TRUE(manager_->Cancel(id).ok());
  for (const char* spare : {"too_few", "0", "1", "2", "more"}) EXPECT_EQ(WithSpare(spare), 0);
}

TEST_F(CoordinatorMetricsTest, ADrainsBlocksAreNotLost) {
  Register("n0");
  RecoveryRequest drain = Request();
  drain.kind = RecoveryKind::kMove;
  const RecoveryId id = Begin(drain);
  ASSERT_TRUE(WaitFor([&] { return View(id).waiting_blocks + View(id).running_blocks > 0; }));
  EXPECT_EQ(WithSpare("1"), 0);
  EXPECT_EQ(OldestLoss(), 0);
}

TEST_F(CoordinatorMetricsTest, TheOldestLossIsADeadNodeUntilItIsRecoveredOrAway) {
  using std::chrono::hours;
  EXPECT_EQ(OldestLoss(), 0);
  AddDead("recovered", hours(9));
  AddDead("away", hours(5));
  EXPECT_GE(OldestLoss(), 9 * 3600);
  RecoveryRequest request = Request();
  request.node = "recovered";
  const RecoveryId id = Begin(request);
  ASSERT_TRUE(WaitFor([&] { return View(id).record.state == RecoveryState::kDone; }));
  EXPECT_GE(OldestLoss(), 5 * 3600);
  EXPECT_LT(OldestLoss(), 6 * 3600);
  ASSERT_TRUE(manager_->Maintain("away", 60).ok());
  EXPECT_EQ(OldestLoss(), 0);
}

TEST_F(CoordinatorMetricsTest, ARecoveryAndACorruptBlockAreLosses) {
  const int64_t now = Clock::System().UnixMillis();
  repairs_->corrupt().Add(
      {"b1", "n1", "somebody says so", now - 60'000'000, /*suspect=*/true, "", 0});
  repairs_->corrupt().Add({"b2", "n2", "when is not known", 0, /*suspect=*/false, "", 0});
  EXPECT_EQ(OldestLoss(), 0);
  const RecoveryId id = Begin(Request());  // of a node that has never registered
  EXPECT_TRUE(WaitFor([&] { return OldestLoss() > 0; }));
  EXPECT_LT(OldestLoss(), 3000);
  repairs_->corrupt().Add({"b3", "n3", "flipped", now - 7'000'000, /*suspect=*/false, "", 0});
  EXPECT_GE(OldestLoss(), 7000);
  repairs_->corrupt().Forget("b3");
  ASSERT_TRUE(manager_->Cancel(id).ok());
  EXPECT_EQ(OldestLoss(), 0);
}

}  // namespace
}  // namespace ecpipe::coordinator_metrics_test
