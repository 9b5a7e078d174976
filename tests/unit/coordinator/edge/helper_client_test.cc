// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/helper_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "rpc/rpc_server.h"

namespace ecpipe::helper_client_test {
namespace {

enum class Answer { kOk, kCancelled, kNone };

// A helper that answers so, or not before its caller has given up.
class FakeHelper : public v1::HelperService::Service {
 public:
  explicit FakeHelper(Answer answer) : answer_(answer) {
    server_ = RpcServer::Start("127.0.0.1:0", RpcSecurity(nullptr), {this}).value();
  }
  grpc::Status StartPart(grpc::ServerContext* context, const v1::StartPartRequest*,
                         v1::StartPartResponse*) override {
    return Answers(*context);
  }
  grpc::Status GetPart(grpc::ServerContext* context, const v1::GetPartRequest*,
                       v1::PartProgress* progress) override {
    progress->set_running(true);
    return Answers(*context);
  }
  HelperGateway::Handout Handout(const std::string& node) const { return {Address(node), {}}; }
  HelperAddress Address(const std::string& node) const { return {node, server_->address()}; }

 private:
  grpc::Status Answers(const grpc::ServerContext& context) const {
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(60);
    while (answer_ == Answer::kNone && !context.IsCancelled() && Clock::System().Now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleep-ok: a peer's progress
    }
    if (answer_ == Answer::kOk) return grpc::Status::OK;
    return {grpc::StatusCode::CANCELLED, "the server is shutting down"};
  }

  const Answer answer_;
  std::unique_ptr<RpcServer> server_;
};

TEST(HelperClient, AHelperThatShutsDownIsNotLate) {
  const FakeHelper good(Answer::kOk);
  const FakeHelper stopping(Answer::kCancelled);
  const FakeHelper slow(Answer::kNone);
  HelperClient client(nullptr);
  const Duration timeout = std::chrono::seconds(30);
  const auto both = client.StartParts({good.Handout("n1"), stopping.Handout("n2")}, timeout,
                                      /*straggler_after=*/timeout);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_TRUE(both[0].ok()) << both[0].status();
  EXPECT_TRUE(absl::IsUnavailable(both[1].status())) << both[1].status();

  const auto all =
      client.StartParts({good.Handout("n1"), stopping.Handout("n2"), slow.Handout("n3")}, timeout,
                        /*straggler_after=*/std::chrono::milliseconds(1));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(absl::IsUnavailable(all[1].status())) << all[1].status();
  EXPECT_TRUE(absl::IsCancelled(all[2].status())) << "it was not waited for: " << all[2].status();
}

TEST(HelperClient, WhoTellsMuchLaterThanTheOthersIsNotWaitedFor) {
  const FakeHelper good(Answer::kOk);
  const FakeHelper slow(Answer::kNone);
  HelperClient client(nullptr);
  const auto answers =
      client.AskParts(1, 0, {slow.Address("n1"), good.Address("n2")}, std::chrono::seconds(30),
                      /*straggler_after=*/std::chrono::milliseconds(1));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers[0].status())) << answers[0].status();
  EXPECT_NE(answers[0].status().message().find("later than the others"), std::string::npos);
  ASSERT_TRUE(answers[1].ok()) << answers[1].status();
  EXPECT_TRUE(answers[1]->running);
}

TEST(HelperClient, ABoundedNumberOfConnectionsIsKept) {
  const FakeHelper good(Answer::kOk);
  const FakeHelper other(Answer::kOk);
  const FakeHelper third(Answer::kOk);
  HelperClient client(nullptr, /*max_connections=*/2);
  const Duration timeout = std::chrono::seconds(30);
  for (int round = 0; round < 2; ++round) {
    for (const FakeHelper* helper : {&good, &other, &third}) {
      const auto started = client.StartParts({helper->Handout("n1")}, timeout, std::nullopt);
      EXPECT_TRUE(started[0].ok()) << started[0].status();
      EXPECT_LE(client.connections(), 2u);
    }
  }
  // All three at once, with a connection that is forgotten while its call is made.
  const auto all = client.StartParts({good.Handout("n1"), other.Handout("n2"), third.Handout("n3")},
                                     timeout, std::nullopt);
  for (const auto& started : all) EXPECT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(client.connections(), 2u);
}

}  // namespace
}  // namespace ecpipe::helper_client_test
