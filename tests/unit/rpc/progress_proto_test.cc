// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/progress_proto.h"

#include <gtest/gtest.h>

#include "model/fault.h"

namespace ecpipe::progress_proto_test {
namespace {

TEST(ProgressProto, OfAPartThatRuns) {
  const PartProgress progress{
      .running = true,
      .ended = {},
      .hops = {{.lane = 1,
                .hop = 2,
                .waits_for_disk = true,
                .inputs = {{.node = "a", .bytes = 5, .waiting = true, .network_seconds = 0}},
                .outputs = {{.node = "b", .bytes = 6, .waiting = false, .network_seconds = 0.5}}}},
      .missing_bytes = 700};
  const PartProgress back = ProgressFromProto(ProgressToProto(progress));
  EXPECT_TRUE(back.running);
  EXPECT_EQ(back.missing_bytes, 700u);
  EXPECT_FALSE(back.missing);
  ASSERT_EQ(back.hops.size(), 1u);
  const HopProgress& hop = back.hops[0];
  EXPECT_EQ(hop.lane, 1u);
  EXPECT_EQ(hop.hop, 2u);
  EXPECT_TRUE(hop.waits_for_disk);
  ASSERT_EQ(hop.inputs.size(), 1u);
  EXPECT_EQ(hop.inputs[0].node, "a");
  EXPECT_EQ(hop.inputs[0].bytes, 5u);
  EXPECT_TRUE(hop.inputs[0].waiting);
  ASSERT_EQ(hop.outputs.size(), 1u);
  EXPECT_EQ(hop.outputs[0].network_seconds, 0.5);
}

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
