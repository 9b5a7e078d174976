// SPDX-License-Identifier: Apache-2.0
#include "rpc/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "ecpipe/v1/daemon.grpc.pb.h"
#include "ecpipe/v1/doctor.grpc.pb.h"
#include "ecpipe/v1/helper.grpc.pb.h"

namespace ecpipe::access_test {
namespace {

using ::testing::HasSubstr;

constexpr Role kAllRoles[] = {Role::kCoordinator, Role::kHelper, Role::kRequestor, Role::kOperator};

// The roles that may make a call, in the order of kAllRoles, as letters.
std::string WhoMay(const std::string& call) {
  std::string who;
  for (const Role role : kAllRoles) {
    if (CheckAccess(call, {{role}, "x"}).ok()) who += RoleName(role)[0];
  }
  return who;
}

std::string Coordinator(const std::string& method) {
  return WhoMay("/ecpipe.v1.CoordinatorService/" + method);
}

// Of all our services, "/ecpipe.v1.Service/Method".
std::vector<std::string> CallsOfTheProtocol() {
  std::vector<std::string> calls;
  for (const auto* file :
       {v1::RegisterRequest::descriptor()->file(), v1::StartPartRequest::descriptor()->file(),
        v1::GetConfigRequest::descriptor()->file(), v1::ExamineNodeRequest::descriptor()->file()}) {
    EXPECT_EQ(file->service_count(), 1);
    const auto* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      calls.push_back("/" + service->full_name() + "/" + service->method(i)->name());
    }
  }
  return calls;
}

TEST(Access, EveryCallOfTheProtocolIsSomebodys) {
  for (const std::string& call : CallsOfTheProtocol()) {
    EXPECT_NE(WhoMay(call), "") << call;
    EXPECT_NE(WhoMay(call), "chro") << call << " is for everybody";
  }
}

// One that is renamed leaves its old name in no table.
TEST(Access, TheTableHasEachCallOfTheProtocolAndNoOtherOfOurs) {
  std::vector<std::string> ours;
  for (const std::string& call : KnownCalls()) {
    if (call.rfind("/ecpipe.", 0) == 0) ours.push_back(call);
  }
  EXPECT_THAT(ours, ::testing::UnorderedElementsAreArray(CallsOfTheProtocol()));
}

TEST(Access, AllCallsAreAuditedButThoseThatAreMadeOverAndOver) {
  std::vector<std::string> quiet;
  for (const std::string& call : KnownCalls()) {
    if (!IsAudited(call)) quiet.push_back(call);
  }
  EXPECT_THAT(quiet, ::testing::UnorderedElementsAre(
                         "/ecpipe.v1.CoordinatorService/Heartbeat",
                         "/ecpipe.v1.CoordinatorService/ReportPart",
                         "/ecpipe.v1.CoordinatorService/ReportBlocks",
                         "/ecpipe.v1.CoordinatorService/CheckProgress",
                         "/ecpipe.v1.CoordinatorService/GetRepair",
                         "/ecpipe.v1.CoordinatorService/ListRecoveries",
                         "/ecpipe.v1.HelperService/GetPart", "/grpc.health.v1.Health/Check",
                         "/grpc.health.v1.Health/Watch"));
  EXPECT_TRUE(IsAudited("/ecpipe.v1.New/Call"));
}

TEST(Access, HelpersReportAndNothingElse) {
  for (const char* call : {"Register", "Heartbeat", "ReportPart", "ReportBlocks"}) {
    EXPECT_EQ(Coordinator(call), "h") << call;
  }
  for (const char* call :
       {"BeginRecovery", "ChangeRecovery", "GetNodeLoss", "PutStripes", "ProbeLinks", "GetLimits",
        "SetLimits", "ListNodeBlocks", "CheckBlocks", "RemoveStripes", "ForgetNode", "DrainNode",
        "MaintainNode", "ReadmitNode", "DryRun", "ListExtraCopies", "RemoveExtraCopies"}) {
    EXPECT_EQ(Coordinator(call), "o") << call;
  }
}

TEST(Access, WhatTheClusterLivesByIsOfDaemons) {
  for (const char* call :
       {"CoordinatorService/Register", "CoordinatorService/Heartbeat",
        "CoordinatorService/ReportPart", "HelperService/StartPart", "HelperService/FindBlocks",
        "HelperService/RemoveBlockFiles", "DoctorService/ExamineNode"}) {
    EXPECT_TRUE(IsOfDaemons(std::string("/ecpipe.v1.") + call)) << call;
  }
  for (const char* call :
       {"/ecpipe.v1.CoordinatorService/BeginRepair", "/ecpipe.v1.HelperService/GetHelperStatus",
        "/grpc.health.v1.Health/Check", "/ecpipe.v1.New/Call"}) {
    EXPECT_FALSE(IsOfDaemons(call)) << call;
  }
}

// `ecpipe doctor` knows by this text a daemon that is too old to be examined.
TEST(Access, ACallThatIsNotKnownIsRefusedSo) {
  const absl::Status refused = CheckAccess("/ecpipe.v1.New/Call", {{Role::kOperator}, "x"});
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no role may call"));
}

TEST(Access, OnlyTheCoordinatorHasAHelperDialPorts) {
  EXPECT_EQ(WhoMay("/ecpipe.v1.DoctorService/ExamineNode"), "c");
  EXPECT_EQ(WhoMay("/ecpipe.v1.DoctorService/ExamineCluster"), "o");
}

TEST(Access, RequestorsRepairAndLook) {
  for (const char* call :
       {"BeginRepair", "FinishRepair", "GetRepair", "ExplainRepair", "ListSchemes"}) {
    EXPECT_EQ(Coordinator(call), "ro") << call;
  }
  EXPECT_EQ(Coordinator("GetStatus"), "o");
}

TEST(Access, OnlyTheCoordinatorOrdersHelpers) {
  for (const char* call : {"StartPart", "CancelRepair", "GetPart", "FindBlocks"}) {
    EXPECT_EQ(WhoMay(std::string("/ecpipe.v1.HelperService/") + call), "c") << call;
  }
}

TEST(Access, OnlyOperatorsMayAskWhatAServerOffers) {
  EXPECT_EQ(WhoMay("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"), "o");
  EXPECT_EQ(WhoMay("/grpc.health.v1.Health/Check"), "chro");
}

TEST(Access, WhatIsNotInTheTableIsNobodys) {
  for (const char* call : {"", "/", "/ecpipe.v1.CoordinatorService/", "Register",
                           "/ecpipe.v1.CoordinatorService/register",
                           "/ecpipe.v1.CoordinatorService/Register/", "/x.Y/Z"}) {
    EXPECT_EQ(WhoMay(call), "") << call;
  }
}

TEST(Access, ARefusalNamesCallRolesAndHolder) {
  const absl::Status status =
      CheckAccess("/ecpipe.v1.CoordinatorService/BeginRecovery", {{Role::kHelper}, "node-7"});
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "BeginRecovery needs one of the roles operator; the certificate of 'node-7' has helper"));
}

TEST(Access, SeveralRolesAddUp) {
  const PeerIdentity both{{Role::kHelper, Role::kOperator}, "n"};
  EXPECT_TRUE(CheckAccess("/ecpipe.v1.CoordinatorService/Register", both).ok());
  EXPECT_TRUE(CheckAccess("/ecpipe.v1.CoordinatorService/BeginRecovery", both).ok());
  EXPECT_FALSE(CheckAccess("/ecpipe.v1.HelperService/StartPart", both).ok());
}

}  // namespace
}  // namespace ecpipe::access_test
