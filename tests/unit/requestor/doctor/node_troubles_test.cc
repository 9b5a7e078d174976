// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/node_troubles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::node_troubles_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NodeStatus Healthy() {
  NodeStatus node;
  node.node = "node-1";
  node.state = "live";
  node.control_address = "10.0.0.1:7711";
  node.data_address = "10.0.0.1:7712";
  node.seconds_since_heartbeat = 0.7;
  node.answers = true;
  node.system = "hdfs";
  node.storage_id = "uuid";
  node.reported_blocks = true;
  node.state_in_system = "live";
  return node;
}

TEST(NodeTroubles, AHealthyNodeHasNone) {
  EXPECT_THAT(TroublesOf(Healthy(), true), IsEmpty());
  EXPECT_THAT(TroublesOf(Healthy(), false), IsEmpty());
  NodeStatus plain = Healthy();
  plain.storage_id = "";
  plain.reported_blocks = false;
  EXPECT_THAT(TroublesOf(plain, false), IsEmpty());
}

TEST(NodeTroubles, OneInMaintenanceMayBeAwayAndNothingElse) {
  NodeStatus node = Healthy();
  node.kept_out = "in maintenance";
  node.failed_roots = {"/data"};
  EXPECT_THAT(TroublesOf(node, false), ElementsAre(HasSubstr("/data")));
  node.state = "dead";
  EXPECT_THAT(TroublesOf(node, false), IsEmpty());
}

TEST(NodeTroubles, ASilentNodeHasTheReason) {
  NodeStatus node = Healthy();
  node.answers = false;
  node.answer_error = "UNAVAILABLE: 10.0.0.1:7711: refused";
  EXPECT_THAT(TroublesOf(node, true), ElementsAre(HasSubstr("10.0.0.1:7711: refused"),
                                                  HasSubstr("reaches its ports is not known")));
  node.ports_checked = true;
  EXPECT_THAT(TroublesOf(node, true), ElementsAre(HasSubstr("10.0.0.1:7711: refused"),
                                                  HasSubstr("the coordinator reaches both")));
  node.control_error = "connect to 10.0.0.1:7711: Connection refused";
  node.data_error = "no answer from 10.0.0.1:7712";
  EXPECT_THAT(TroublesOf(node, true),
              ElementsAre(HasSubstr("does not answer this command"),
                          AllOf(HasSubstr("control port 10.0.0.1:7711"), HasSubstr("refused")),
                          AllOf(HasSubstr("data port 10.0.0.1:7712"), HasSubstr("no answer"))));
}

TEST(NodeTroubles, OneThatDrainsIsNotSilent) {
  NodeStatus node = Healthy();
  node.state = "draining";
  node.answers = false;
  node.answer_error = "UNAVAILABLE: 10.0.0.1:7711: refused";
  EXPECT_THAT(TroublesOf(node, true), ElementsAre(HasSubstr("is shutting down")));
}

TEST(NodeTroubles, HeartbeatsAndDirectories) {
  NodeStatus node = Healthy();
  node.seconds_since_heartbeat = 4.2;
  node.failed_roots = {"/data/2: No such file or directory"};
  EXPECT_THAT(TroublesOf(node, true),
              ElementsAre("its last heartbeat is 4.2 s old", HasSubstr("/data/2: No such file")));
  node.state = "dead";
  node.seconds_since_heartbeat = 61;
  EXPECT_THAT(TroublesOf(node, true), ElementsAre(HasSubstr("no heartbeat for 61 s")));
}

TEST(NodeTroubles, WhatHdfsKnowsOfIt) {
  NodeStatus node = Healthy();
  node.reported_blocks = false;
  node.state_in_system = "dead";
  node.silent_in_system_seconds = 640;
  EXPECT_THAT(TroublesOf(node, true), ElementsAre(HasSubstr("has not reported its blocks"),
                                                  HasSubstr("as dead and last heard of it 640 s")));
  node.storage_id = "";
  EXPECT_THAT(TroublesOf(node, true), ElementsAre(HasSubstr("store = \"hdfs\"")));
}

}  // namespace
}  // namespace ecpipe::node_troubles_test
