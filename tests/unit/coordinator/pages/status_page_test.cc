// SPDX-License-Identifier: Apache-2.0
// The page over a coordinator and helpers that live in memory, on a clock that stands still.
#include "coordinator/pages/status_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "coordinator/pages/page_files.h"
#include "unit/coordinator/fakes.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::status_page_test {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Notes how long each repair's helpers may take, and takes so long where it hangs.
class SlowHelpers : public FakeHelpers {
 public:
  explicit SlowHelpers(FakeClock* clock) : clock_(clock) {}

  std::vector<absl::StatusOr<PartProgress>> AskParts(RepairId repair_id, uint32_t attempt,
                                                     const std::vector<HelperAddress>& helpers,
                                                     Duration timeout,
                                                     std::optional<Duration> straggler) override {
    asked_for.push_back(timeout);
    if (hang) clock_->Advance(timeout);
    return FakeHelpers::AskParts(repair_id, attempt, helpers, timeout, straggler);
  }

  bool hang = false;
  std::vector<Duration> asked_for;

 private:
  FakeClock* const clock_;
};

class StatusPageTest : public testing::Test {
 protected:
  StatusPageTest() { clock_.Advance(seconds(1000)); }
  void SetUp() override {
    limits_ = LimitBook::Open(directory_.File("limits.db")).value();
    page_ = std::make_unique<StatusPage>(StatusPage::View{.repairs = &repairs_,
                                                          .recoveries = &recoveries_,
                                                          .journal = &journal_,
                                                          .limits = limits_.get(),
                                                          .helpers = &helpers_,
                                                          .clock = &clock_,
                                                          .repair_bytes_per_second = 500,
                                                          .max_running = 9});
  }
  void Register() {
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(repairs_.Register(FakeNode("n" + std::to_string(i))).ok());
    }
  }
  // Without sub-blocks and in one path, whose helpers are the survivors.
  RepairId Begin(const std::string& block_id) {
    RepairRequest request;
    request.block_ids = {block_id};
    request.scheme = "rp";
    request.slice_bytes = 100;
    request.requestor = "reader";
    const absl::StatusOr<RepairGrant> grant = repairs_.BeginRepair(request);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return grant.ok() ? grant->repair_id : 0;
  }
  Json Ask() {
    const HttpReply reply = page_->Reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.type, "application/json");
    return Json::parse(reply.body);
  }
  // Each helper of the last handout has sent so much to the next one.
  void SetSent(uint64_t bytes, double network_seconds) {
    MutexLock lock(&helpers_.mutex);
    for (const auto& handout : helpers_.last) {
      PartProgress part{.running = true, .ended = {}, .hops = {}};
      for (const HopSpec& hop : handout.part.hops) {
        HopProgress& progress = part.hops.emplace_back();
        for (const HopOutput& output : hop.outputs) {
          progress.outputs.push_back(
              {.node = output.node, .bytes = bytes, .network_seconds = network_seconds});
        }
      }
      helpers_.answers[handout.helper.node] = part;
    }
  }

  ScratchDirectory directory_;
  MemoryCatalog catalog_{30};
  MemoryJournal journal_;
  FakeClock clock_;
  SlowHelpers helpers_{&clock_};
  HostedNews news_;
  RepairCoordinator repairs_{&catalog_, &journal_, &helpers_, &clock_, {}, &news_};
  RecoveryManager recoveries_{&catalog_, &journal_, &repairs_, &helpers_, &news_, &clock_, {}};
  std::unique_ptr<LimitBook> limits_;
  std::unique_ptr<StatusPage> page_;
};

TEST_F(StatusPageTest, ACoordinatorWithoutNodes) {
  const Json json = Ask();
  EXPECT_EQ(json["state"], "empty");
  EXPECT_EQ(json["unix_ms"], 1'000'000);
  EXPECT_EQ(json["limits"], Json({{"repair_bytes_per_second", 500.0}, {"max_running", 9}}));
  EXPECT_TRUE(helpers_.asked_for.empty());
}

TEST_F(StatusPageTest, LimitsOfTheBookComeBeforeThoseOfTheConfiguration) {
  ASSERT_TRUE(limits_->Set({.repair_bytes_per_second = 0, .max_running = 3}).ok());
  EXPECT_EQ(Ask()["limits"], Json({{"repair_bytes_per_second", 0.0}, {"max_running", 3}}));
}

TEST_F(StatusPageTest, AnAnswerIsMadeOnceASecond) {
  Register();
  Begin("b0");
  const std::string first = page_->Reply().body;
  EXPECT_EQ(helpers_.asked_for.size(), 1u);
  clock_.Advance(milliseconds(999));
  EXPECT_EQ(page_->Reply().body, first);
  EXPECT_EQ(helpers_.asked_for.size(), 1u);
  clock_.Advance(milliseconds(1));
  EXPECT_NE(page_->Reply().body, first);
  EXPECT_EQ(helpers_.asked_for.size(), 2u);
}

// Helpers are asked without a lock, or this test would hang.
TEST_F(StatusPageTest, NobodyWaitsForAnAnswerThatIsBeingMade) {
  Register();
  const RepairId id = Begin("b0");
  HttpReply meanwhile;
  helpers_.on_ask = [&] { meanwhile = page_->Reply(); };
  const std::string first = page_->Reply().body;
  EXPECT_EQ(meanwhile.status, 503) << "there was none yet";
  clock_.Advance(seconds(1));
  helpers_.on_ask = [&] {
    meanwhile = page_->Reply();
    repairs_.FinishRepair(id, {absl::OkStatus(), 1000});
  };
  EXPECT_NE(page_->Reply().body, first);
  EXPECT_EQ(meanwhile.status, 200);
  EXPECT_EQ(meanwhile.body, first);
}

TEST_F(StatusPageTest, ARepairIsShownWhileItRunsAndAfterItsEnd) {
  Register();
  const RepairId id = Begin("b0");
  Json json = Ask();
  EXPECT_EQ(json["state"], "repairing");
  EXPECT_EQ(json["nodes"]["live"], 6);
  ASSERT_EQ(json["repairs"]["all"], 1);
  const Json repair = json["repairs"]["shown"][0];
  EXPECT_EQ(repair["repair"], RepairIdText(id).substr(0, 6));
  EXPECT_EQ(repair["blocks"], Json({"b0"}));
  EXPECT_EQ(repair["phase"], "running");
  EXPECT_EQ(repair["bytes"], 1000);
  EXPECT_EQ(repair["done_bytes"], 0);
  EXPECT_EQ(repair["pipeline"]["links"].size(), 4u);
  EXPECT_EQ(json["ended"]["shown"], Json::array());
  repairs_.FinishRepair(id, {absl::OkStatus(), 1000});
  clock_.Advance(seconds(1));
  json = Ask();
  EXPECT_EQ(json["state"], "healthy");
  EXPECT_EQ(json["repairs"]["all"], 0);
  ASSERT_EQ(json["ended"]["shown"].size(), 1u);
  EXPECT_EQ(json["ended"]["shown"][0]["repair"], RepairIdText(id).substr(0, 6));
  EXPECT_EQ(json["ended"]["shown"][0]["state"], "done");
}

TEST_F(StatusPageTest, AJournalThatCannotBeReadIsNamed) {
  journal_.trouble = absl::UnavailableError("the disk is gone");
  const Json json = Ask();
  EXPECT_EQ(json["ended"]["shown"], Json::array());
  EXPECT_NE(json["ended"]["error"].get<std::string>().find("the disk is gone"), std::string::npos);
}

TEST_F(StatusPageTest, RatesAndProgress) {
  Register();
  const RepairId id = Begin("b0");
  clock_.Advance(seconds(2));
  SetSent(400, 1.8);
  ASSERT_TRUE(repairs_.CheckProgress(id, 0, 800, false).ok());
  Json repair = Ask()["repairs"]["shown"][0];
  EXPECT_EQ(repair["done_bytes"], 200);
  EXPECT_DOUBLE_EQ(repair["bytes_per_second"], 100);
  EXPECT_DOUBLE_EQ(repair["eta_seconds"], 8);
  EXPECT_DOUBLE_EQ(repair["heard_seconds_ago"], 0);
  for (const Json& link : repair["pipeline"]["links"]) {
    EXPECT_DOUBLE_EQ(link["bytes_per_second"], 200);
    EXPECT_DOUBLE_EQ(link["network_share"], 0.9);
  }
  EXPECT_EQ(repair["pipeline"]["held_back_by"]["kind"], "link");
  clock_.Advance(seconds(1));
  SetSent(1000, 1.8);
  const Json json = Ask();
  repair = json["repairs"]["shown"][0];
  EXPECT_DOUBLE_EQ(repair["pipeline"]["links"][0]["bytes_per_second"], 600)
      << "since the last look";
  EXPECT_EQ(repair["pipeline"]["held_back_by"], nullptr);
  double sent = 0;
  for (const Json& node : json["nodes"]["racks"][0]["nodes"]) {
    sent += node["send_bytes_per_second"].get<double>();
  }
  EXPECT_DOUBLE_EQ(sent, 4 * 600);
}

TEST_F(StatusPageTest, AHelperThatDoesNotAnswerHasNoRate) {
  Register();
  Begin("b0");
  clock_.Advance(seconds(2));
  SetSent(400, 1.8);
  const std::string silent = helpers_.last[0].helper.node;
  helpers_.silent = {silent};
  int told = 0;
  const Json json = Ask();
  for (const Json& link : json["repairs"]["shown"][0]["pipeline"]["links"]) {
    EXPECT_EQ(link["bytes_per_second"].is_null(), link["from"] == silent);
    told += link["bytes_per_second"].is_null() ? 0 : 1;
  }
  EXPECT_EQ(told, 3);
}

TEST_F(StatusPageTest, ANodeThatIsKnownToBeSilentIsNotAsked) {
  Register();
  Begin("b0");
  const std::string silent = helpers_.last[0].helper.node;
  repairs_.nodes().NoAnswer(silent, "no answer");
  Ask();
  EXPECT_FALSE(helpers_.asked.contains(silent));
  EXPECT_EQ(helpers_.asked.size(), 3u);
}

TEST_F(StatusPageTest, HelpersThatHangTakeALimitedTime) {
  Register();
  for (int i = 0; i < 30; ++i) Begin("b" + std::to_string(6 * i));
  helpers_.hang = true;
  const TimePoint begin = clock_.Now();
  const Json json = Ask();
  EXPECT_EQ(clock_.Now() - begin, StatusPage::kAsking);
  EXPECT_EQ(helpers_.asked_for,
            (std::vector<Duration>{milliseconds(300), milliseconds(300), milliseconds(200)}));
  EXPECT_EQ(json["repairs"]["all"], 30);
  EXPECT_EQ(json["repairs"]["more"], 6);
  EXPECT_EQ(json["repairs"]["shown"].size(), 24u);
}

TEST_F(StatusPageTest, BesideTheJsonIsThePageThatShowsIt) {
  const HttpServer::Pages pages = page_->Pages();
  EXPECT_EQ(Json::parse(pages.at("/status.json")().body)["state"], "empty");
  const HttpReply index = pages.at("/")();
  EXPECT_EQ(index.type, "text/html; charset=utf-8");
  EXPECT_EQ(index.body.find("<script>"), std::string::npos) << "the policy would not let it run";
  // What it and its scripts name is here, and nothing else is.
  std::string all;
  for (const auto& [path, page] : pages) {
    if (path != "/status.json") all += page().body;
  }
  for (const auto& [path, page] : pages) {
    if (!path.starts_with("/page/")) continue;
    const std::string name = path.substr(6);
    EXPECT_TRUE(all.find("\"page/" + name) != std::string::npos ||
                all.find("'./" + name) != std::string::npos)
        << path;
    EXPECT_NE(page().type, HttpReply().type) << path;
    EXPECT_EQ(page().content_policy, index.content_policy) << path;
  }
}

TEST(PageFilesTest, ABrowserRunsScriptsOfThisServerAlone) {
  const std::string policy = PageFiles().at("/")().content_policy;
  for (const char* rule : {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"}) {
    EXPECT_NE(policy.find(rule), std::string::npos) << rule;
  }
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(policy.find("http"), std::string::npos);
}

}  // namespace
}  // namespace ecpipe::status_page_test
