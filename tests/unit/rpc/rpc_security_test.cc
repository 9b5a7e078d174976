// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/access.h"
#include "rpc/audit_log.h"
#include "rpc/channel.h"
#include "rpc/rpc_exit.h"
#include "rpc/rpc_server.h"
#include "unit/net/test_certificates.h"

namespace ecpipe::rpc_security_test {
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
    storage_ = CheckSpeaksForStorage(context, "UUID-1");
    operator_ = CheckHasRole(context, Role::kOperator, "this");
    return grpc::Status::OK;
  }

  grpc::Status GetPart(grpc::ServerContext*, const v1::GetPartRequest*,
                       v1::PartProgress*) override {
    return grpc::Status::OK;
  }

  Mutex mutex_;
  std::string seen_;
  absl::Status speaks_for_;
  absl::Status storage_;
  absl::Status operator_;
};

class RpcSecurityTest : public testing::Test {
 public:
  static void SetUpTestSuite() { PrepareRpcExit(); }

 protected:
  void Serve(std::shared_ptr<TlsContext> tls) {
    server_ = RpcServer::Start("127.0.0.1:0", RpcSecurity(tls), {&helper_}).value();
  }

  // CancelRepair, which only coordinators may call.
  grpc::Status CallWith(const std::shared_ptr<TlsContext>& tls, Role server = Role::kHelper,
                        const std::string& node = "") {
    const RpcSecurity security(tls);
    const auto stub =
        v1::HelperService::NewStub(MakeChannel(server_->address(), security, server, node));
    grpc::ClientContext context;
    SetTimeout(&context, std::chrono::seconds(20));
    v1::CancelRepairRequest request;
    request.set_repair_id(0xabc);
    v1::CancelRepairResponse response;
    const grpc::Status status = stub->CancelRepair(&context, request, &response);
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

TEST_F(RpcSecurityTest, AStorageIdIsOfTheCertificateThatNamesIt) {
  const TestCertificates mine(
      "node-2=helper head=coordinator,storage:UUID-2,storage:UUID-1 "
      "other=coordinator,storage:UUID-2 none=coordinator");
  Serve(mine.Context("node-2"));
  for (const char* name : {"head", "none"}) {
    ASSERT_TRUE(CallWith(mine.Context(name)).ok());
    EXPECT_TRUE(helper_.storage_.ok()) << name << helper_.storage_;
  }
  ASSERT_TRUE(CallWith(mine.Context("other")).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(helper_.storage_)) << helper_.storage_;
  EXPECT_THAT(std::string(helper_.storage_.message()), HasSubstr("UUID-1"));
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

TEST_F(RpcSecurityTest, ARevokedCertificateIsNotServedNorSpokenTo) {
  const TestCertificates mine("node-2=helper head=coordinator old=coordinator");
  mine.Revoke("old");
  TlsFiles files = mine.Files("node-2");
  files.crl = mine.Path("crl.pem");
  Serve(TlsContext::Create(files).value());
  EXPECT_TRUE(CallWith(mine.Context("head")).ok());
  const grpc::Status refused = CallWith(mine.Context("old"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED) << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("the certificate of 'old' is revoked"));
  mine.Revoke("node-2");
  files = mine.Files("head");
  files.crl = mine.Path("crl.pem");
  EXPECT_EQ(CallWith(TlsContext::Create(files).value()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RpcSecurityTest, AServerOfAnotherNodeIsNotSpokenTo) {
  Serve(Shared().Context("node-2"));
  EXPECT_TRUE(CallWith(Shared().Context("head"), Role::kHelper, "node-2").ok());
  EXPECT_EQ(CallWith(Shared().Context("head"), Role::kHelper, "node-3").error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// A helper that answers operators only when it is told to.
class SlowHelper : public FakeHelper {
 public:
  grpc::Status GetHelperStatus(grpc::ServerContext*, const v1::GetHelperStatusRequest*,
                               v1::HelperStatus*) override {
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
    MutexLock lock(&mutex_);
    ++asked_;
    changed_.NotifyAll();
    while (!answering_ && changed_.WaitUntil(lock, give_up)) {
    }
    return grpc::Status::OK;
  }
  void AwaitAsked(int calls) {
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
    MutexLock lock(&mutex_);
    while (asked_ < calls && changed_.WaitUntil(lock, give_up)) {
    }
    EXPECT_EQ(asked_, calls);
  }
  void Answer() {
    MutexLock lock(&mutex_);
    answering_ = true;
    changed_.NotifyAll();
  }

 private:
  CondVar changed_;
  int asked_ = 0;
  bool answering_ = false;
};

TEST_F(RpcSecurityTest, OthersThanDaemonsLeaveThreadsForThem) {
  SlowHelper helper;
  const TestCertificates mine("node-2=helper head=coordinator ann=operator");
  server_ = RpcServer::Start("127.0.0.1:0", RpcSecurity(mine.Context("node-2")), {&helper},
                             {.max_calls_of_others = 2})
                .value();
  const RpcSecurity ann(mine.Context("ann"));
  const auto stub = v1::HelperService::NewStub(MakeChannel(server_->address(), ann, Role::kHelper));
  const auto ask = [&stub] {
    grpc::ClientContext context;
    SetTimeout(&context, std::chrono::seconds(20));
    v1::HelperStatus response;
    return stub->GetHelperStatus(&context, v1::GetHelperStatusRequest(), &response);
  };
  std::vector<grpc::Status> statuses(2);
  std::vector<std::thread> callers;
  for (grpc::Status& status : statuses) callers.emplace_back([&] { status = ask(); });
  helper.AwaitAsked(2);
  for (int i = 0; i < 3; ++i) {
    const grpc::Status third = ask();
    EXPECT_EQ(third.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << third.error_message();
    EXPECT_TRUE(CallWith(mine.Context("head")).ok()) << "the coordinator is served all the same";
  }
  helper.Answer();
  for (std::thread& caller : callers) caller.join();
  for (const grpc::Status& status : statuses) EXPECT_TRUE(status.ok()) << status.error_message();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ask().ok()) << "each of these has made room";
  server_.reset();  // it uses the helper
}

TEST_F(RpcSecurityTest, EachCallIsInTheAuditLogAndSoAreRefusals) {
  const auto ask = [this](const char* who) {  // what a coordinator asks over and over
    const RpcSecurity security(Shared().Context(who));
    grpc::ClientContext context;
    SetTimeout(&context, std::chrono::seconds(20));
    v1::PartProgress response;
    return v1::HelperService::NewStub(MakeChannel(server_->address(), security, Role::kHelper))
        ->GetPart(&context, v1::GetPartRequest(), &response);
  };
  const std::string path = testing::TempDir() + "ecpipe-audit-" + std::to_string(::getpid());
  std::filesystem::remove(path);
  std::shared_ptr<AuditLog> audit = AuditLog::Open(path).value();
  server_ =
      RpcServer::Start("127.0.0.1:0", RpcSecurity(Shared().Context("node-2"), audit), {&helper_})
          .value();
  ASSERT_TRUE(CallWith(Shared().Context("head")).ok());
  EXPECT_FALSE(CallWith(Shared().Context("ann")).ok());
  EXPECT_TRUE(ask("head").ok());
  EXPECT_FALSE(ask("ann").ok());
  std::filesystem::rename(path, path + ".1");
  ASSERT_TRUE(CallWith(Shared().Context("nobody")).ok());
  audit->Write("x (helper)", "", "/a/Call", "two\nlines", absl::OkStatus());
  server_.reset();
  audit.reset();  // writes what is queued
  const auto lines = [](const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  const std::string all = lines(path + ".1") + (std::filesystem::exists(path) ? lines(path) : "");
  EXPECT_THAT(all, HasSubstr("caller=\"head (coordinator)\" from=ipv4:127.0.0.1:"));
  EXPECT_THAT(all, HasSubstr("call=CancelRepair target=0000000000000abc result=OK\n"));
  EXPECT_THAT(all, HasSubstr("caller=\"ann (operator)\" from=\"\" call=CancelRepair target=\"\" "
                             "result=\"PERMISSION_DENIED"));
  EXPECT_THAT(all, HasSubstr("call=GetPart target=\"\" result=\"PERMISSION_DENIED"));
  EXPECT_THAT(all, HasSubstr("caller=\"nobody (coordinator)\""));
  EXPECT_THAT(all, HasSubstr("target=\"two?lines\" result=OK\n"));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5);
  for (const std::string& file : {path, path + ".1"}) std::filesystem::remove(file);
}

TEST_F(RpcSecurityTest, CallsDoNotWaitForAnAuditLogThatNobodyReads) {
  const std::string path = testing::TempDir() + "ecpipe-audit-pipe-" + std::to_string(::getpid());
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  server_ = RpcServer::Start("127.0.0.1:0",
                             RpcSecurity(Shared().Context("node-2"), AuditLog::Open(path).value()),
                             {&helper_})
                .value();
  EXPECT_TRUE(CallWith(Shared().Context("head")).ok());
  server_.reset();
  std::filesystem::remove(path);
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
}  // namespace ecpipe::rpc_security_test
