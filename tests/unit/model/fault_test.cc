// SPDX-License-Identifier: Apache-2.0
#include "model/fault.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace ecpipe::fault_test {
namespace {

TEST(Fault, TheFirstOneStaysThroughAnnotations) {
  absl::Status status = WithFault(absl::UnavailableError("gone"), "n1");
  status = WithFault(Annotate(status, "receive"), "n2");
  EXPECT_EQ(FaultOf(status), "n1");
  EXPECT_EQ(status.message(), "receive: gone");
  EXPECT_EQ(FaultOf(absl::UnavailableError("gone")), "");
  EXPECT_EQ(FaultOf(WithFault(absl::OkStatus(), "n1")), "");
}

TEST(Fault, SelfIsTheSender) {
  const absl::Status self = WithFault(absl::DataLossError("damaged"), kFaultSelf);
  EXPECT_EQ(FaultOf(FromPeer(self, "n3")), "n3");
  EXPECT_EQ(FaultOf(FromPeer(WithFault(absl::DataLossError("x"), "n1"), "n3")), "n1");
  EXPECT_EQ(FaultOf(FromPeer(absl::DataLossError("x"), "n3")), "");
}

}  // namespace
}  // namespace ecpipe::fault_test
