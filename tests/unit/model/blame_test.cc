// SPDX-License-Identifier: Apache-2.0
#include "model/blame.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace ecpipe {
namespace {

TEST(Blame, TheFirstOneStaysThroughAnnotations) {
  absl::Status status = Blame(absl::UnavailableError("gone"), "n1");
  status = Blame(Annotate(status, "receive"), "n2");
  EXPECT_EQ(BlamedBy(status), "n1");
  EXPECT_EQ(status.message(), "receive: gone");
  EXPECT_EQ(BlamedBy(absl::UnavailableError("gone")), "");
  EXPECT_EQ(BlamedBy(Blame(absl::OkStatus(), "n1")), "");
}

TEST(Blame, SelfIsTheSender) {
  const absl::Status self = Blame(absl::DataLossError("damaged"), kBlameSelf);
  EXPECT_EQ(BlamedBy(FromPeer(self, "n3")), "n3");
  EXPECT_EQ(BlamedBy(FromPeer(Blame(absl::DataLossError("x"), "n1"), "n3")), "n1");
  EXPECT_EQ(BlamedBy(FromPeer(absl::DataLossError("x"), "n3")), "");
}

}  // namespace
}  // namespace ecpipe
