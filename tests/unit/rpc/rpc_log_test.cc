// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_log.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

namespace ecpipe::rpc_log_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RpcLog, WhatGrpcSaysIsAnEvent) {
  TakeGrpcLog();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as gRPC does when it is first used
  testing::internal::CaptureStderr();
  gpr_log(GPR_ERROR, "the %s broke", "socket");
  gpr_log(GPR_ERROR, "No match found for server name: 10.0.0.1.");
  const std::string log = testing::internal::GetCapturedStderr();
  gpr_set_log_function(nullptr);
  EXPECT_THAT(log,
              AllOf(HasSubstr("WARNING rpc.grpc said=\"the socket broke\" at=rpc_log_test.cc:"),
                    Not(HasSubstr("No match"))));
}

}  // namespace
}  // namespace ecpipe::rpc_log_test
