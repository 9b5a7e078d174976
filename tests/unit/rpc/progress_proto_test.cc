// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/progress_proto.h"

#include <gtest/gtest.h>

#include "model/fault.h"

namespace ecpipe::progress_proto_test {
namespace {

TEST(ProgressProto, OfAPartThatFailedAndIsKept) {
  const PartProgress progress{.running = false,
                              .ended = WithFault(absl::UnavailableError("gone"), "a"),
                              .hops = {},
                              .missing = {{{1, 2, 3}}}};
  const PartProgress back = ProgressFromProto(ProgressToProto(progress));
  EXPECT_FALSE(back.running);
  EXPECT_TRUE(absl::IsUnavailable(back.ended));
  EXPECT_EQ(FaultOf(back.ended), "a");
  ASSERT_TRUE(back.missing);
  EXPECT_EQ(*back.missing, (std::vector<SliceRun>{{1, 2, 3}}));
}

}  // namespace
}  // namespace ecpipe::progress_proto_test
