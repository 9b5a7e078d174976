// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/node_loss_proto.h"

#include <gtest/gtest.h>

namespace ecpipe::node_loss_proto_test {
namespace {

TEST(NodeLossProto, ALossComesOverTheWireWhole) {
  NodeLoss sample;
  sample.node = "n1";
  sample.system = "qfs";
  sample.state = "dead";
  sample.silent_seconds = 12.5;
  sample.state_in_system = "live";
  sample.helper_state = "draining";
  sample.helper_silent_seconds = 3;
  sample.loss = {{10, 1000}, {1, 100}, {2, 200}, {7, 700}, {4, 2, 1}, 5, 6, 3};
  sample.report_age_seconds = 8;
  sample.unreported_nodes = 9;
  sample.facts = {true, 2.5, 11, "no answer", "Safe mode is ON."};
  v1::GetNodeLossResponse proto;
  NodeLossToProto(sample, &proto);
  const std::optional<NodeLoss> got = NodeLossFromProto("n1", proto);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->node, "n1");
  EXPECT_EQ(got->system, "qfs");
  EXPECT_EQ(got->state, "dead");
  EXPECT_EQ(got->silent_seconds, 12.5);
  EXPECT_EQ(got->state_in_system, "live");
  EXPECT_EQ(got->helper_state, "draining");
  EXPECT_EQ(got->helper_silent_seconds, 3);
  EXPECT_EQ(got->loss, sample.loss);
  EXPECT_EQ(got->report_age_seconds, 8);
  EXPECT_EQ(got->unreported_nodes, 9u);
  EXPECT_EQ(got->facts, sample.facts);
}

TEST(NodeLossProto, ANodeThatIsNoDataNodeHasNone) {
  EXPECT_FALSE(NodeLossFromProto("n1", v1::GetNodeLossResponse()).has_value());
}

TEST(NodeLossProto, MoreClassesThanThisBuildKnowsAreIgnored) {
  v1::GetNodeLossResponse proto;
  proto.set_system("hdfs");
  for (uint64_t i = 1; i <= 5; ++i) proto.add_by_missing(i);
  EXPECT_EQ(NodeLossFromProto("n1", proto)->loss.by_missing, (std::array<uint64_t, 3>{1, 2, 3}));
}

TEST(NodeLossProto, NoAnswerOfTheNameNodeHasNoAge) {
  EXPECT_EQ(SourceFactsFromProto(SourceFactsToProto({})), SourceFacts{});
}

}  // namespace
}  // namespace ecpipe::node_loss_proto_test
