// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/helper_status_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "rpc/rpc_server.h"

namespace ecpipe::helper_status_client_test {
namespace {

constexpr Duration kTooLong = std::chrono::seconds(60);

// A helper that answers after so long, or not before its caller has given up.
class LateHelper : public v1::HelperService::Service {
 public:
  explicit LateHelper(Duration after) : after_(after) {
    server_ = RpcServer::Start("127.0.0.1:0", RpcSecurity(nullptr), {this}).value();
  }
  grpc::Status GetHelperStatus(grpc::ServerContext* context, const v1::GetHelperStatusRequest*,
                               v1::HelperStatus* status) override {
    const TimePoint answer_at = Clock::System().Now() + after_;
    while (Clock::System().Now() < answer_at && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleep-ok: a slow peer
    }
    status->set_parts_done(7);
    return grpc::Status::OK;
  }
  NodeStatus Node() const {
    NodeStatus node;
    node.node = "n";
    node.state = "live";
    node.control_address = server_->address();
    return node;
  }

 private:
  const Duration after_;
  std::unique_ptr<RpcServer> server_;
};

TEST(AskHelpers, OneThatHangsIsNotWaitedForAndNamed) {
  const LateHelper prompt(std::chrono::seconds(0));
  const LateHelper hung(kTooLong);
  std::vector<NodeStatus> nodes = {hung.Node(), prompt.Node(), prompt.Node()};
  AskHelpers(RpcSecurity(nullptr), &nodes);
  EXPECT_FALSE(nodes[0].answers);
  EXPECT_THAT(nodes[0].answer_error, testing::HasSubstr("has not answered in time"));
  EXPECT_TRUE(nodes[1].answers);
  EXPECT_EQ(nodes[1].counters.parts_done, 7u);
}

// On a machine where everything takes its time no helper is called silent.
TEST(AskHelpers, WhereAllAreSlowAllAreWaitedFor) {
  const LateHelper slow(std::chrono::milliseconds(1500));
  const LateHelper slower(std::chrono::milliseconds(1600));
  std::vector<NodeStatus> nodes = {slow.Node(), slower.Node(), slower.Node()};
  AskHelpers(RpcSecurity(nullptr), &nodes);
  for (const NodeStatus& node : nodes) EXPECT_TRUE(node.answers) << node.answer_error;
}

TEST(AskHelpers, ADeadOneIsNotAsked) {
  const LateHelper prompt(std::chrono::seconds(0));
  std::vector<NodeStatus> nodes = {prompt.Node()};
  nodes[0].state = "dead";
  AskHelpers(RpcSecurity(nullptr), &nodes);
  EXPECT_FALSE(nodes[0].answers);
}

}  // namespace
}  // namespace ecpipe::helper_status_client_test
