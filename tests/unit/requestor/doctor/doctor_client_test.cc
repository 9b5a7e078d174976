// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/doctor_client.h"

#include <gtest/gtest.h>

#include "ecpipe/v1/doctor.grpc.pb.h"
#include "rpc/rpc_server.h"

namespace ecpipe::doctor_client_test {
namespace {

// A coordinator with one helper that tells of everything far too much.
class FakeDoctor : public v1::DoctorService::Service {
  grpc::Status ExamineCluster(grpc::ServerContext*, const v1::ExamineClusterRequest*,
                              v1::ExamineClusterResponse* response) override {
    v1::NodeExamination* const node = response->add_nodes()->mutable_examination();
    v1::TlsFacts* const tls = node->mutable_daemon()->mutable_tls();
    v1::FormatFacts* const format = node->add_roots()->mutable_format();
    for (int i = 0; i < 1000; ++i) {
      const std::string text = std::to_string(i);
      tls->add_chain(text);
      tls->add_trusted(text);
      tls->add_lists()->set_issuer(text);
      format->add_unreadable()->set_name(text);
      format->add_foreign()->set_name(text);
    }
    return grpc::Status::OK;
  }
};

TEST(DoctorClient, NoMoreIsTakenThanASoundDaemonHas) {
  FakeDoctor service;
  const auto server = RpcServer::Start("127.0.0.1:0", RpcSecurity(nullptr), {&service}).value();
  const Examination examination = ExamineCluster(server->address(), nullptr).value();
  ASSERT_EQ(examination.nodes.size(), 1u);
  const TlsFacts& tls = examination.nodes[0].daemon.tls.value();
  EXPECT_EQ(tls.chain.size(), TlsFacts::kMostChain);
  EXPECT_EQ(tls.chain.front(), "0");
  EXPECT_EQ(tls.trusted.size(), TlsFacts::kMostTrusted);
  EXPECT_EQ(tls.trusted_count, 1000u) << "so that the rest is not checked";
  EXPECT_EQ(tls.lists.size(), TlsFacts::kMostLists);
  const FormatFacts& format = examination.nodes[0].roots.at(0).format.value();
  EXPECT_EQ(format.unreadable.size(), FormatFacts::kMostNamed);
  EXPECT_EQ(format.foreign.size(), FormatFacts::kMostNamed);
}

}  // namespace
}  // namespace ecpipe::doctor_client_test
