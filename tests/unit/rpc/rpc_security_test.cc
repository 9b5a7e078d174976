// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/access.h"
#include "rpc/channel.h"
#include "rpc/rpc_exit.h"
#include "rpc/rpc_server.h"
#include "unit/net/test_certificates.h"

namespace ecpipe {
namespace {

using ::testing::HasSubstr;

// A helper that takes note of who calls.
class FakeHelper : public v1::HelperService::Service {
 public:
  grpc::Status CancelRepair(grpc::ServerContext* context, const v1::CancelRepairRequest*,
                            v1::CancelRepairResponse*) override {
    const std::optional<PeerIdentity> caller = CallerOf(context);
    MutexLock lock(&mutex_);
    seen_ = caller ? caller->node : "anybody";
    speaks_for_ = CheckSpeaksFor(context, "head");
    operator_ = CheckHasRole(context, Role::kOperator, "this");
    return grpc::Status::OK;
  }

  Mutex mutex_;
  std::string seen_;
  absl::Status speaks_for_;
  absl::Status operator_;
};

class RpcSecurityTest : public testing::Test {
 public:
  static void SetUpTestSuite() { PrepareRpcExit(); }

 protected:
  void Serve(std::shared_ptr<TlsContext> tls) {
    server_ = RpcServer::Start("127.0.0.1:0", RpcSecurity(tls), &helper_).value();
  }

  // CancelRepair, which only coordinators may call.
  grpc::Status CallWith(const std::shared_ptr<TlsContext>& tls, Role server = Role::kHelper) {
    const RpcSecurity security(tls);
    const auto stub = v1::HelperService::NewStub(MakeChannel(server_->address(), security, server));
    grpc::ClientContext context;
    SetTimeout(&context, std::chrono::seconds(20));
    v1::CancelRepairResponse response;
    const grpc::Status status = stub->CancelRepair(&context, v1::CancelRepairRequest(), &response);
    // What the server's thread has noted is there for this one to see.
    MutexLock lock(&helper_.mutex_);
    return status;
  }

  static const TestCertificates& Shared() { return TestCertificates::Shared(); }

  FakeHelper helper_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(RpcSecurityTest, WhoHasTheRoleIsServedAndKnown) {
  Serve(Shared().Context("node-2"));
  const grpc::Status status = CallWith(Shared().Context("head"));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(helper_.seen_, "head");
  EXPECT_TRUE(helper_.speaks_for_.ok());
  EXPECT_TRUE(absl::IsPermissionDenied(helper_.operator_)) << helper_.operator_;
}

TEST_F(RpcSecurityTest, ANodeSpeaksForItselfOnly) {
  Serve(Shared().Context("node-2"));
  ASSERT_TRUE(CallWith(Shared().Context("nobody")).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(helper_.speaks_for_)) << helper_.speaks_for_;
  EXPECT_THAT(std::string(helper_.speaks_for_.message()), HasSubstr("'nobody'"));
}

TEST_F(RpcSecurityTest, WhoHasNotTheRoleIsToldSo) {
  Serve(Shared().Context("node-2"));
  for (const char* name : {"ann", "the-receiver", "the-sender"}) {
    const grpc::Status status = CallWith(Shared().Context(name));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
    EXPECT_THAT(status.error_message(),
                HasSubstr("CancelRepair needs one of the roles coordinator"));
    EXPECT_THAT(status.error_message(), HasSubstr(name));
  }
  EXPECT_EQ(helper_.seen_, "") << "no call came through";
}

TEST_F(RpcSecurityTest, WhoHasNoCertificateOrAnothersIsNotServed) {
  Serve(Shared().Context("node-2"));
  EXPECT_EQ(CallWith(nullptr).error_code(), grpc::StatusCode::UNAVAILABLE);
  const TestCertificates foreign("head=coordinator");
  const auto stranger = TlsContext::Create({Shared().Path("ca.pem"), foreign.Path("head.pem"),
                                            foreign.Path("head.key")})
                            .value();
  EXPECT_EQ(CallWith(stranger).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallWith(foreign.Context("head")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(helper_.seen_, "");
}

TEST_F(RpcSecurityTest, AnExpiredCertificateIsNotServed) {
  const TestCertificates mine("node-2=helper");
  mine.Make("head=coordinator", "--days -1");
  Serve(mine.Context("node-2"));
  EXPECT_EQ(CallWith(mine.Context("head")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(helper_.seen_, "");
}

TEST_F(RpcSecurityTest, AServerOfAnotherRoleIsNotSpokenTo) {
  Serve(Shared().Context("ann"));
  const grpc::Status status = CallWith(Shared().Context("head"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("lacks the role helper; it has operator"));
  EXPECT_EQ(helper_.seen_, "");
}

TEST_F(RpcSecurityTest, WithoutTlsNobodyIsAskedWhoHeIs) {
  Serve(nullptr);
  ASSERT_TRUE(CallWith(nullptr).ok());
  EXPECT_EQ(helper_.seen_, "anybody");
  EXPECT_TRUE(helper_.speaks_for_.ok());
  EXPECT_TRUE(helper_.operator_.ok());
}

TEST_F(RpcSecurityTest, NewFilesAreUsedWithoutARestart) {
  const TestCertificates mine("node-2=helper head=coordinator");
  Serve(mine.Context("node-2"));
  EXPECT_TRUE(CallWith(mine.Context("head")).ok());
  std::filesystem::remove(mine.Path("ca.pem"));
  mine.Make("node-2=helper head=coordinator");
  const auto renewed = mine.Context("head");
  const TimePoint patience = Clock::System().Now() + std::chrono::seconds(20);
  grpc::Status status = CallWith(renewed);
  while (!status.ok() && Clock::System().Now() < patience) status = CallWith(renewed);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(ListenAddress, OffLoopbackNeedsProtectionOrAWord) {
  EXPECT_TRUE(CheckListenAddress("127.0.0.1:1", false).ok());
  EXPECT_TRUE(CheckListenAddress("0.0.0.0:1", true).ok());
  const absl::Status status = CheckListenAddress("0.0.0.0:1", false);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("[tls]"));
}

}  // namespace
}  // namespace ecpipe
