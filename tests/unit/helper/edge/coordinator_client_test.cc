// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/coordinator_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "rpc/rpc_server.h"

namespace ecpipe::coordinator_client_test {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);

PartReport ReportOf(RepairId repair) {
  PartReport report;
  report.repair_id = repair;
  return report;
}

// A coordinator that a test can hold up in the middle of a call.
class HeldCoordinator : public v1::CoordinatorService::Service {
 public:
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override {
    MutexLock lock(&mutex_);
    ++registrations_;
    changed_.NotifyAll();
    if (refuses_) return {grpc::StatusCode::ALREADY_EXISTS, "another helper has this node_id"};
    registered_blocks_ = request->inventory().block_count();
    response->set_heartbeat_interval_ms(20);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse*) override {
    MutexLock lock(&mutex_);
    ++heartbeats_;
    blocks_ = request->inventory().block_count();
    counting_ = request->inventory().counting();
    changed_.NotifyAll();
    if (unknown_) return {grpc::StatusCode::NOT_FOUND, "another incarnation"};
    return grpc::Status::OK;
  }
  grpc::Status ReportPart(grpc::ServerContext* context, const v1::ReportPartRequest*,
                          v1::ReportPartResponse*) override {
    const TimePoint give_up = Clock::System().Now() + kPatience;
    MutexLock lock(&mutex_);
    ++reports_begun_;
    changed_.NotifyAll();
    while (holds_reports_ && !context->IsCancelled() && changed_.WaitUntil(lock, give_up)) {
    }
    if (context->IsCancelled()) ++reports_given_up_;
    ++reports_;
    changed_.NotifyAll();
    return grpc::Status::OK;
  }

  void HoldReports(bool hold) {
    MutexLock lock(&mutex_);
    holds_reports_ = hold;
    changed_.NotifyAll();
  }
  void Refuse() {
    MutexLock lock(&mutex_);
    refuses_ = true;
  }
  void Forget(bool forget) {
    MutexLock lock(&mutex_);
    unknown_ = forget;
  }
  struct Seen {
    int registrations, heartbeats, reports_begun, reports_given_up, reports;
    uint64_t registered_blocks, blocks;
    bool counting;
  };
  Seen seen() {
    MutexLock lock(&mutex_);
    return {registrations_, heartbeats_,        reports_begun_, reports_given_up_,
            reports_,       registered_blocks_, blocks_,        counting_};
  }
  // False after a while in vain.
  template <typename Condition>
  bool Await(Condition condition) {
    const TimePoint give_up = Clock::System().Now() + kPatience;
    while (!condition(seen())) {
      MutexLock lock(&mutex_);
      if (!changed_.WaitUntil(lock, give_up)) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int registrations_ = 0;
  int heartbeats_ = 0;
  int reports_begun_ = 0;
  int reports_given_up_ = 0;
  int reports_ = 0;
  uint64_t registered_blocks_ = 0;
  uint64_t blocks_ = 0;
  bool counting_ = false;
  bool holds_reports_ = false;
  bool unknown_ = false;
  bool refuses_ = false;
};

class CoordinatorClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = RpcServer::Start("127.0.0.1:0", RpcSecurity(nullptr), {&coordinator_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // As a rule each heartbeat could bring other counts.
  CoordinatorClient::Options Options() {
    CoordinatorClient::Options options;
    options.coordinator = server_->address();
    options.node.set_node_id("n1");
    options.pulse = [] { return CoordinatorClient::Pulse{}; };
    options.take_limits = [](const v1::HelperLimits&) {};
    options.registered = [] {};
    options.turned = [](bool) {};
    options.inventory = [] { return StoreInventory{7, 700, {}}; };
    return options;
  }

  HeldCoordinator coordinator_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(CoordinatorClientTest, HeartbeatsGoOnWhileReportsAreHeldUp) {
  coordinator_.HoldReports(true);
  CoordinatorClient client(Options());
  for (RepairId repair = 1; repair <= 50; ++repair) client.Report(ReportOf(repair));
  ASSERT_TRUE(coordinator_.Await([](const auto& seen) { return seen.reports_begun == 1; }));
  const int before = coordinator_.seen().heartbeats;
  ASSERT_TRUE(coordinator_.Await([&](const auto& seen) { return seen.heartbeats >= before + 10; }));
  // All that during the first report, which its sender has not given up yet.
  EXPECT_EQ(coordinator_.seen().reports_given_up, 0);
  EXPECT_EQ(coordinator_.seen().reports_begun, 1);
  EXPECT_EQ(coordinator_.seen().registrations, 1);
  coordinator_.HoldReports(false);
  EXPECT_TRUE(coordinator_.Await([](const auto& seen) { return seen.reports == 50; }));
  EXPECT_EQ(coordinator_.seen().registrations, 1) << "a slow report is no reason to register";
}

TEST_F(CoordinatorClientTest, HeartbeatsDoNotWaitForACountOfBlocks) {
  Mutex mutex;
  CondVar changed;
  bool counts = false;
  CoordinatorClient::Options options = Options();
  options.inventory = [&] {
    const TimePoint give_up = Clock::System().Now() + kPatience;
    MutexLock lock(&mutex);
    while (!counts && changed.WaitUntil(lock, give_up)) {
    }
    return StoreInventory{7, 700, {}};
  };
  std::optional<CoordinatorClient> client(std::move(options));
  EXPECT_TRUE(coordinator_.Await([](const auto& seen) { return seen.heartbeats >= 5; }));
  EXPECT_EQ(coordinator_.seen().blocks, 0u);
  {
    MutexLock lock(&mutex);
    counts = true;
  }
  changed.NotifyAll();
  EXPECT_TRUE(coordinator_.Await([](const auto& seen) { return seen.blocks == 7; }));
}

TEST_F(CoordinatorClientTest, TheLoopTurnsWhetherTheCoordinatorAnswersOrNot) {
  std::atomic<int> strange{0}, known{0};
  CoordinatorClient::Options options = Options();
  options.coordinator = "127.0.0.1:1";  // nobody
  options.turned = [&](bool registered) { ++(registered ? known : strange); };
  const auto await = [](const std::atomic<int>& turns) {
    const TimePoint give_up = Clock::System().Now() + kPatience;
    while (turns < 2 && Clock::System().Now() < give_up) std::this_thread::yield();
    return turns >= 2;
  };
  {
    CoordinatorClient client(options);
    EXPECT_TRUE(await(strange));
    EXPECT_EQ(known, 0);
  }
  options.coordinator = server_->address();
  strange = 0;
  CoordinatorClient client(options);
  EXPECT_TRUE(await(known));
  EXPECT_EQ(strange, 0) << "the first turn has registered";
}

TEST_F(CoordinatorClientTest, CountsAreTakenAgainAndAgain) {
  std::atomic<uint64_t> blocks{1};
  CoordinatorClient::Options options = Options();
  options.inventory = [&] { return StoreInventory{blocks++, 0, {}}; };
  options.inventory_interval = std::chrono::milliseconds(10);
  CoordinatorClient client(std::move(options));
  EXPECT_TRUE(coordinator_.Await([](const auto& seen) { return seen.blocks >= 5; }));
  EXPECT_GE(coordinator_.seen().registered_blocks, 1u) << "the first count came in time";
}

TEST_F(CoordinatorClientTest, ABlockThatWasStoredIsCountedSoon) {
  std::atomic<uint64_t> blocks{7};
  CoordinatorClient::Options options = Options();
  options.inventory = [&] { return StoreInventory{blocks, 0, {}}; };
  options.inventory_interval = std::chrono::hours(1);
  CoordinatorClient client(std::move(options));
  ASSERT_TRUE(coordinator_.Await([](const auto& seen) { return seen.blocks == 7; }));
  blocks = 8;
  client.CountSoon();
  EXPECT_TRUE(coordinator_.Await([](const auto& seen) { return seen.blocks == 8; }));
}

TEST_F(CoordinatorClientTest, WhatWasNotCountedYetIsNoZero) {
  std::atomic<bool> counted{false};
  CoordinatorClient::Options options = Options();
  options.inventory = [&] { return StoreInventory{counted ? uint64_t{7} : 0, 0, {}, !counted}; };
  options.inventory_interval = std::chrono::hours(1);
  CoordinatorClient client(std::move(options));
  ASSERT_TRUE(coordinator_.Await([](const auto& seen) { return seen.counting; }));
  counted = true;
  EXPECT_TRUE(
      coordinator_.Await([](const auto& seen) { return seen.blocks == 7 && !seen.counting; }));
}

TEST_F(CoordinatorClientTest, OneThatIsForgottenRegistersAgainUnlessItDrains) {
  CoordinatorClient client(Options());
  ASSERT_TRUE(coordinator_.Await([](const auto& seen) { return seen.heartbeats >= 1; }));
  coordinator_.Forget(true);
  ASSERT_TRUE(coordinator_.Await([](const auto& seen) { return seen.registrations >= 2; }));
  coordinator_.Forget(false);
  client.Leave();
  // Its successor has taken its name. What became of its parts is told all the same.
  ASSERT_TRUE(coordinator_.Await([was = coordinator_.seen().heartbeats](const auto& seen) {
    return seen.heartbeats > was + 2;
  }));
  const int registrations = coordinator_.seen().registrations;
  coordinator_.Forget(true);
  client.Report(ReportOf(1));
  EXPECT_TRUE(coordinator_.Await([was = coordinator_.seen().heartbeats](const auto& seen) {
    return seen.heartbeats > was + 5 && seen.reports == 1;
  }));
  EXPECT_EQ(coordinator_.seen().registrations, registrations);
}

TEST_F(CoordinatorClientTest, OneThatDrainsBeforeItIsRegisteredDoesNotTakeItsSuccessorsName) {
  coordinator_.Refuse();
  CoordinatorClient client(Options());
  ASSERT_TRUE(coordinator_.Await([](const auto& seen) { return seen.registrations >= 2; }));
  client.Leave();
  // A registration may have been under way.
  ASSERT_TRUE(coordinator_.Await([](const auto& seen) { return seen.heartbeats >= 1; }));
  const int registrations = coordinator_.seen().registrations;
  client.Report(ReportOf(1));
  EXPECT_TRUE(coordinator_.Await(
      [](const auto& seen) { return seen.heartbeats >= 3 && seen.reports == 1; }));
  EXPECT_EQ(coordinator_.seen().registrations, registrations);
}

}  // namespace
}  // namespace ecpipe::coordinator_client_test
