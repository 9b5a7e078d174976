// SPDX-License-Identifier: Apache-2.0
#include "rpc/examine/handshake_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "net/tcp_socket.h"
#include "rpc/rpc_server.h"
#include "unit/net/test_certificates.h"

namespace ecpipe::handshake_check_test {
namespace {

using ::testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(20);

const TestCertificates& Shared() { return TestCertificates::Shared(); }

// A helper's control port, which needs no services here.
std::unique_ptr<RpcServer> Serve(const std::shared_ptr<TlsContext>& tls) {
  return RpcServer::Start("127.0.0.1:0", RpcSecurity(tls), {}).value();
}

v1::HandshakeFacts Check(const RpcServer& server, const std::string& node) {
  const auto tls = Shared().Context("head");
  return CheckHandshake(server.address(), node, tls.get(), kPatience).value();
}

TEST(HandshakeCheck, AHelperOfThisNameIsTaken) {
  const auto server = Serve(Shared().Context("node-2"));
  const v1::HandshakeFacts facts = Check(*server, "node-2");
  EXPECT_EQ(facts.coordinator_refuses() + facts.helper_refuses() + facts.no_handshake(), "");
}

TEST(HandshakeCheck, ACertificateOfAnotherNameIsRefused) {
  const auto server = Serve(Shared().Context("node-2"));
  const v1::HandshakeFacts facts = Check(*server, "node-3");
  EXPECT_THAT(facts.coordinator_refuses(), HasSubstr("names node 'node-2'"));
  EXPECT_EQ(facts.helper_refuses() + facts.no_handshake(), "");
}

TEST(HandshakeCheck, AHelperOfAnotherCaRefuses) {
  const TestCertificates foreign("head=coordinator");
  TlsFiles files = Shared().Files("node-2");
  files.ca = foreign.Path("ca.pem");
  const auto server = Serve(TlsContext::Create(files).value());
  const v1::HandshakeFacts facts = Check(*server, "node-2");
  EXPECT_NE(facts.helper_refuses(), "");
  EXPECT_EQ(facts.coordinator_refuses() + facts.no_handshake(), "");
}

TEST(HandshakeCheck, APeerWithoutTlsHasNoCertificateThatCouldBeRefused) {
  const auto server = Serve(nullptr);
  const v1::HandshakeFacts facts = Check(*server, "node-2");
  EXPECT_THAT(facts.no_handshake(), HasSubstr("wrong version number"));
  EXPECT_EQ(facts.coordinator_refuses() + facts.helper_refuses(), "");
}

TEST(HandshakeCheck, NoAnswerIsNoVerdict) {
  const UniqueFd silent = Listen({"127.0.0.1", 0}).value();
  const std::string address = FormatHostPort(BoundAddress(silent.get()).value());
  const auto tls = Shared().Context("head");
  EXPECT_FALSE(CheckHandshake(address, "node-2", tls.get(), std::chrono::milliseconds(100)));
}

TEST(HandshakeCheck, AmongManyThoseThatFailAreNamed) {
  const auto plain = Serve(nullptr);
  const auto good = Serve(Shared().Context("node-2"));
  const auto tls = Shared().Context("head");
  v1::ExamineClusterResponse response;
  const std::vector<DialTarget> helpers = {{"node-2", "control", good->address()},
                                           {"node-3", "control", plain->address()}};
  CheckHandshakes(helpers, kPatience, [] { return false; }, tls.get(), &response);
  ASSERT_EQ(response.handshakes_size(), 1);
  EXPECT_EQ(response.handshakes(0).node_id(), "node-3");
}

TEST(HandshakeCheck, WhatIsNotTriedIsCounted) {
  const auto plain = Serve(nullptr);
  const auto tls = Shared().Context("head");
  v1::ExamineClusterResponse response;
  const std::vector<DialTarget> helpers(3, {"node-3", "control", plain->address()});
  CheckHandshakes(helpers, kPatience, [] { return true; }, tls.get(), &response);
  EXPECT_EQ(response.handshakes_size(), 0);
  EXPECT_EQ(response.handshakes_unknown(), 3u);
}

}  // namespace
}  // namespace ecpipe::handshake_check_test
