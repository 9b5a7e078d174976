// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/block_report_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "rpc/rpc_server.h"

namespace ecpipe::block_report_client_test {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(20);

// A coordinator that has no room for the report, or says that it has it.
class FullCoordinator : public v1::CoordinatorService::Service {
 public:
  grpc::Status ReportBlocks(grpc::ServerContext*,
                            grpc::ServerReader<v1::ReportBlocksRequest>* reader,
                            v1::ReportBlocksResponse*) override {
    v1::ReportBlocksRequest piece;
    int blocks = 0;
    uint64_t after = 0;
    while (reader->Read(&piece)) {
      after = piece.after();
      for (const auto& pool : piece.pools()) blocks += pool.ids_size();
    }
    MutexLock lock(&mutex_);
    came_.push_back({Clock::System().Now(), after, blocks});
    changed_.NotifyAll();
    if (full_) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many blocks"};
    return grpc::Status::OK;
  }

  struct Came {
    TimePoint at;
    uint64_t after = 0;
    int blocks = 0;
  };
  std::vector<Came> Await(size_t reports) {
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
    MutexLock lock(&mutex_);
    while (came_.size() < reports && changed_.WaitUntil(lock, give_up)) {
    }
    return came_;
  }
  void MakeRoom() {
    MutexLock lock(&mutex_);
    full_ = false;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Came> came_ ABSL_GUARDED_BY(mutex_);
  bool full_ ABSL_GUARDED_BY(mutex_) = true;
};

TEST(BlockReportClient, WhatIsRefusedIsSentAgainLaterEachTimeThenOnlyChanges) {
  FullCoordinator coordinator;
  auto server = RpcServer::Start("127.0.0.1:0", RpcSecurity(nullptr), {&coordinator});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto blocks = [](int count) {
    BlockListing listing;
    for (int i = 0; i < count; ++i) listing["BP-1"].push_back({{-1000 + 16 * i, 1, 100}, 0});
    return std::make_shared<const BlockListing>(std::move(listing));
  };
  const auto few = blocks(3);
  const auto more = blocks(4);
  std::atomic<bool> grown{false};
  BlockReportClient::Options options;
  options.coordinator = (*server)->address();
  options.node_id = "n1";
  options.incarnation = 1;
  options.listing = [&] { return grown ? TakenListing{2, more} : TakenListing{1, few}; };
  options.registrations = [] { return uint64_t{1}; };
  options.look_interval = kInterval;
  BlockReportClient client(std::move(options));
  std::vector<FullCoordinator::Came> came = coordinator.Await(5);
  ASSERT_GE(came.size(), 5u);
  EXPECT_GE(came[4].at - came[0].at, kInterval * (1 + 2 + 4 + 8));
  EXPECT_EQ(came[0].blocks, 3);
  coordinator.MakeRoom();
  const size_t before = coordinator.Await(0).size();
  came = coordinator.Await(before + 1);
  EXPECT_EQ(came.back().blocks, 3);
  grown = true;
  came = coordinator.Await(came.size() + 1);
  EXPECT_EQ(came.back().blocks, 1) << "only what has changed";
  EXPECT_NE(came.back().after, 0u);
}

}  // namespace
}  // namespace ecpipe::block_report_client_test
