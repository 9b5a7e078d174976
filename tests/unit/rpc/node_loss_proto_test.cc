// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/node_loss_proto.h"

#include <gtest/gtest.h>

namespace ecpipe::node_loss_proto_test {
namespace {

TEST(NodeLossProto, ANodeThatIsNoDataNodeHasNone) {
  EXPECT_FALSE(NodeLossFromProto("n1", v1::GetNodeLossResponse()).has_value());
}

TEST(NodeLossProto, MoreClassesThanThisBuildKnowsAreIgnored) {
  v1::GetNodeLossResponse proto;
  proto.set_system("hdfs");
  for (uint64_t i = 1; i <= 5; ++i) proto.add_by_missing(i);
  EXPECT_EQ(NodeLossFromProto("n1", proto)->loss.by_missing, (std::array<uint64_t, 3>{1, 2, 3}));
}

}  // namespace
}  // namespace ecpipe::node_loss_proto_test
