// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/address_rule.h"

#include <gtest/gtest.h>

#include "unit/net/name_server.h"

namespace ecpipe::address_rule_test {
namespace {

NodeRecord Node(const std::string& control, const std::string& data,
                const std::string& redis = "") {
  NodeRecord node;
  node.node_id = "n1";
  node.control_address = control;
  node.data_address = data;
  node.redis_address = redis;
  return node;
}

absl::Status Checked(const AddressRule& rule, const NodeRecord& node, const std::string& peer) {
  return rule.Check(node, peer, Clock::System().Now() + std::chrono::seconds(60));
}

TEST(AddressRule, AnAddressLeadsToWhereTheHelperCallsFrom) {
  const AddressRule rule = AddressRule::Create({}).value();
  const std::string peer = "ipv4:192.0.2.7:4711";
  EXPECT_TRUE(Checked(rule, Node("192.0.2.7:1", "192.0.2.7:2", "192.0.2.7:3"), peer).ok());
  EXPECT_TRUE(
      Checked(rule, Node("192.0.2.7:1", "192.0.2.7:2"), "ipv6:%5B::ffff:192.0.2.7%5D:9").ok());
  for (const NodeRecord& node :
       {Node("192.0.2.8:1", "192.0.2.7:2"), Node("192.0.2.7:1", "192.0.2.8:2"),
        Node("192.0.2.7:1", "192.0.2.7:2", "192.0.2.8:3"), Node("127.0.0.1:1", "192.0.2.7:2"),
        Node("[2001:db8::1]:1", "192.0.2.7:2")}) {
    const absl::Status refused = Checked(rule, node, peer);
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << node.control_address << " " << refused;
    EXPECT_NE(refused.message().find("node_addresses"), std::string::npos);
  }
  const std::string v6 = "ipv6:%5B2001:db8::1%5D:5";
  EXPECT_TRUE(Checked(rule, Node("[2001:db8::1]:1", "[2001:db8::1]:2"), v6).ok());
  EXPECT_FALSE(Checked(rule, Node("[2001:db8::2]:1", "[2001:db8::1]:2"), v6).ok());
}

TEST(AddressRule, AHelperOnTheCoordinatorsHostHasAnyOfItsAddresses) {
  const AddressRule rule = AddressRule::Create({}).value();
  EXPECT_TRUE(Checked(rule, Node("127.0.0.1:1", "127.0.1.1:2"), "ipv4:127.0.0.1:5").ok());
  EXPECT_TRUE(Checked(rule, Node("[::1]:1", "localhost:2"), "ipv4:127.0.0.1:5").ok());
  EXPECT_FALSE(Checked(rule, Node("192.0.2.7:1", "127.0.0.1:2"), "ipv4:127.0.0.1:5").ok());
  EXPECT_FALSE(Checked(rule, Node("127.0.0.1:1", "127.0.0.1:2"), "unix:").ok());
}

TEST(AddressRule, HostsAndNetworksThatAreAllowed) {
  const AddressRule rule =
      AddressRule::Create({"10.1.0.0/17", "2001:db8::/33", "storage-7.invalid"}).value();
  const std::string peer = "ipv4:192.0.2.7:4711";
  EXPECT_TRUE(Checked(rule, Node("10.1.127.255:1", "192.0.2.7:2"), peer).ok());
  EXPECT_FALSE(Checked(rule, Node("10.1.128.0:1", "192.0.2.7:2"), peer).ok());
  EXPECT_TRUE(Checked(rule, Node("[2001:db8:7fff::1]:1", "192.0.2.7:2"), peer).ok());
  EXPECT_FALSE(Checked(rule, Node("[2001:db8:8000::1]:1", "192.0.2.7:2"), peer).ok());
  EXPECT_TRUE(Checked(rule, Node("storage-7.invalid:1", "192.0.2.7:2"), peer).ok());
  EXPECT_FALSE(Checked(rule, Node("storage-8.invalid:1", "192.0.2.7:2"), peer).ok());
}

TEST(AddressRule, AnyAddressOfANameFits) {
  NameServer server;
  server.Knows({"192.0.2.9", "2001:db8::7", "10.1.0.7"});
  HostLookups lookups(server.resolver());
  const AddressRule rule = AddressRule::Create({"10.1.0.0/17"}, &lookups).value();
  EXPECT_TRUE(Checked(rule, Node("name:1", "name:2"), "ipv4:192.0.2.9:4711").ok());
  EXPECT_TRUE(Checked(rule, Node("name:1", "name:2"), "ipv6:%5B2001:db8::7%5D:5").ok());
  EXPECT_TRUE(Checked(rule, Node("name:1", "name:2"), "ipv4:192.0.2.8:4711").ok()) << "10.1.0.7";
  const AddressRule strict = AddressRule::Create({}, &lookups).value();
  EXPECT_TRUE(
      absl::IsPermissionDenied(Checked(strict, Node("name:1", "name:2"), "ipv4:192.0.2.8:4711")));
  EXPECT_TRUE(absl::IsPermissionDenied(
      Checked(strict, Node("nowhere:1", "name:2"), "ipv4:192.0.2.9:4711")));
}

TEST(AddressRule, ANameServerThatCannotSayNowIsAskedAgain) {
  NameServer server;
  server.Knows({"192.0.2.9"});
  HostLookups lookups(server.resolver());
  const AddressRule rule = AddressRule::Create({}, &lookups).value();
  const absl::Status refused = Checked(rule, Node("busy:1", "name:2"), "ipv4:192.0.2.9:4711");
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_NE(refused.message().find("cannot be checked"), std::string::npos);
}

TEST(AddressRule, ANameServerThatHangsHoldsNobodyUp) {
  NameServer server;
  server.Hang(true);
  HostLookups lookups(server.resolver());
  const AddressRule rule = AddressRule::Create({"storage-7"}, &lookups).value();
  const TimePoint passed = Clock::System().Now() - std::chrono::seconds(1);
  const std::string peer = "ipv4:192.0.2.7:4711";
  const absl::Status status = rule.Check(Node("name:1", "192.0.2.7:2"), peer, passed);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("name:1"), std::string::npos) << status;
  EXPECT_TRUE(rule.Check(Node("storage-7:1", "192.0.2.7:2"), peer, passed).ok()) << "asks nobody";
}

TEST(AddressRule, WhatIsNoNetworkIsRefused) {
  for (const std::string text : {"10.0.0.0/33", "10.0.0.0/", "name/8", "::/129", "10.0.0.0/-1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(AddressRule::Create({text}).status())) << text;
  }
}

}  // namespace
}  // namespace ecpipe::address_rule_test
