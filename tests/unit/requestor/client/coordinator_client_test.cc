// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/coordinator_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "rpc/convert/scheme_proto.h"
#include "rpc/rpc_server.h"

namespace ecpipe::coordinator_client_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SchemeInfo kScheme{"rp", "repairs", "a path", "1 + (k-1)/s", "§3.2", 64, {"links"}};

class ListingCoordinator : public v1::CoordinatorService::Service {
 public:
  grpc::Status ListSchemes(grpc::ServerContext*, const v1::ListSchemesRequest*,
                           v1::ListSchemesResponse* response) override {
    SchemesToProto({kScheme}, response);
    return grpc::Status::OK;
  }
};

absl::StatusOr<std::vector<SchemeInfo>> SchemesOf(grpc::Service* coordinator) {
  const auto server = RpcServer::Start("127.0.0.1:0", RpcSecurity(nullptr), {coordinator}).value();
  return MakeCoordinatorClient(server->address(), std::chrono::seconds(20), nullptr)
      .value()
      ->Schemes();
}

TEST(CoordinatorClient, ListsSchemes) {
  ListingCoordinator coordinator;
  const auto schemes = SchemesOf(&coordinator);
  ASSERT_TRUE(schemes.ok()) << schemes.status();
  EXPECT_THAT(*schemes, ElementsAre(kScheme));
}

// An older coordinator answers UNIMPLEMENTED to a call that it does not have, as gRPC's own class
// does to calls that are not overridden.
TEST(CoordinatorClient, SaysThatAnOldCoordinatorCannotListSchemes) {
  v1::CoordinatorService::Service old;
  const absl::Status status = SchemesOf(&old).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is older than this command"));
}

}  // namespace
}  // namespace ecpipe::coordinator_client_test
