// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_status.h"

#include <gtest/gtest.h>

namespace ecpipe::rpc_status_test {
namespace {

TEST(RpcStatus, CodesAndMessagesSurvive) {
  const grpc::Status grpc = ToGrpc(absl::NotFoundError("block b1"));
  EXPECT_EQ(grpc.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(FromGrpc(grpc, "node n1"), absl::NotFoundError("node n1: block b1"));
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus()), "node n1").ok());
  EXPECT_LE(ToGrpc(absl::NotFoundError(std::string(10'000, 'x'))).error_message().size(), 4096u);
  EXPECT_EQ(StatusFromWire(99, "odd").code(), absl::StatusCode::kUnknown);
}

TEST(RpcStatus, OnlyAServerThatIsShuttingDownAnswersCancelled) {
  const grpc::Status ours = ToGrpc(absl::CancelledError("the repair was cancelled"));
  EXPECT_EQ(ours.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ours.error_message(), "the repair was cancelled");
  const absl::Status theirs =
      FromGrpc(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"), "coordinator h:1");
  EXPECT_EQ(theirs.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace ecpipe::rpc_status_test
