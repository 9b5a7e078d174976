// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/doctor_service.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/rpc_server.h"
#include "unit/net/test_certificates.h"

namespace ecpipe::doctor_service_test {
namespace {

// A helper whose clock is ahead by so much.
class FakeDoctor : public v1::DoctorService::Service {
 public:
  explicit FakeDoctor(std::chrono::seconds ahead, std::string store = "plain")
      : ahead_(ahead), store_(std::move(store)) {}
  grpc::Status ExamineNode(grpc::ServerContext*, const v1::ExamineNodeRequest* request,
                           v1::NodeExamination* response) override {
    {
      MutexLock lock(&mutex_);
      request_ = *request;
    }
    response->set_store(store_);
    const auto now = std::chrono::system_clock::now().time_since_epoch() + ahead_;
    response->mutable_daemon()->set_unix_micros(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
    return grpc::Status::OK;
  }
  v1::ExamineNodeRequest request() {
    MutexLock lock(&mutex_);
    return request_;
  }

 private:
  const std::chrono::seconds ahead_;
  const std::string store_;
  Mutex mutex_;
  v1::ExamineNodeRequest request_ ABSL_GUARDED_BY(mutex_);
};

class Doctor : public ::testing::Test {
 protected:
  std::unique_ptr<RpcServer> Serve(grpc::Service* service,
                                   const std::shared_ptr<TlsContext>& tls = nullptr) {
    return RpcServer::Start("127.0.0.1:0", RpcSecurity(tls), {service}).value();
  }
  void AddNode(const std::string& name, const std::string& control_address,
               const std::string& data_address) {
    NodeRecord record;
    record.node_id = name;
    record.control_address = control_address;
    record.data_address = data_address;
    record.incarnation = 1;
    const absl::Status registered = nodes_.Register(record);
    ASSERT_TRUE(registered.ok()) << registered;
  }
  // Its data port takes connections.
  void AddNode(const std::string& name, const std::string& control_address) {
    data_ports_.push_back(Listen({"127.0.0.1", 0}).value());
    AddNode(name, control_address, FormatHostPort(BoundAddress(data_ports_.back().get()).value()));
  }
  v1::ExamineClusterResponse Examine(const std::shared_ptr<TlsContext>& tls = nullptr) {
    CoordinatorDoctor doctor(&nodes_, tls, "/");
    const auto server = Serve(&doctor);
    const auto stub = v1::DoctorService::NewStub(
        grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ExamineClusterResponse response;
    const grpc::Status status =
        stub->ExamineCluster(&context, v1::ExamineClusterRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  std::vector<UniqueFd> data_ports_;
  NodeRegistry nodes_{&Clock::System(), std::chrono::minutes(10), RackTable(), ""};
};

TEST_F(Doctor, AHelperIsTheOthersPeerAndItsClockIsMeasured) {
  FakeDoctor good(std::chrono::seconds(0));
  FakeDoctor ahead(std::chrono::seconds(1000));
  const auto first = Serve(&good);
  const auto second = Serve(&ahead);
  AddNode("a", first->address());
  AddNode("b", second->address());
  const v1::ExamineClusterResponse said = Examine();
  ASSERT_EQ(said.nodes_size(), 2);
  EXPECT_EQ(said.dials().dialled(), 4u);
  EXPECT_EQ(said.dials().failed(), 0u);
  ASSERT_EQ(good.request().peers_size(), 1);
  EXPECT_EQ(good.request().peers(0).node_id(), "b");
  for (const auto& node : said.nodes()) {
    EXPECT_EQ(node.status_code(), 0) << node.status_message();
    const double ahead_by = node.node_id() == "b" ? 1000 : 0;
    EXPECT_GE(node.clock_ahead_seconds() + node.clock_uncertainty_seconds(), ahead_by - 0.001);
    EXPECT_LE(node.clock_ahead_seconds() - node.clock_uncertainty_seconds(), ahead_by + 0.001);
  }
  EXPECT_GT(said.data_directory().total_bytes(), 0u);
}

TEST_F(Doctor, AHelperWithoutTheCallIsTooOld) {
  v1::HelperService::Service old;
  const auto server = Serve(&old);
  AddNode("a", server->address());
  const v1::ExamineClusterResponse said = Examine();
  ASSERT_EQ(said.nodes_size(), 1);
  EXPECT_EQ(said.nodes(0).status_code(), static_cast<int>(absl::StatusCode::kUnimplemented))
      << said.nodes(0).status_message();
}

TEST_F(Doctor, AConnectionThatBreaksIsNoFinding) {
  FakeDoctor good(std::chrono::seconds(0));
  UniqueFd listener = Listen({"127.0.0.1", 0}).value();
  const std::string address = FormatHostPort(BoundAddress(listener.get()).value());
  AddNode("a", address);
  std::unique_ptr<RpcServer> server;
  // Takes the connection by which the port is tried, and that of the call, and closes both.
  Thread helper([&] {
    for (int i = 0; i < 2; ++i) {
      pollfd polled{listener.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&polled, 1, 10'000), 1);
      UniqueFd closed(::accept(listener.get(), nullptr, nullptr));
    }
    listener.reset();
    server = RpcServer::Start(address, RpcSecurity(nullptr), {&good}).value();
  });
  const v1::ExamineClusterResponse said = Examine();
  helper.join();
  ASSERT_EQ(said.nodes_size(), 1);
  EXPECT_EQ(said.nodes(0).status_code(), 0) << said.nodes(0).status_message();
}

TEST_F(Doctor, AHelperThatIsNotReachedIsNotCalled) {
  AddNode("a", "127.0.0.1:1", "127.0.0.1:2");  // where nobody listens
  const v1::ExamineClusterResponse said = Examine();
  ASSERT_EQ(said.nodes_size(), 1);
  EXPECT_EQ(said.nodes(0).status_code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_EQ(said.dials().failed(), 2u);
}

TEST_F(Doctor, AnAnswerThatIsFarTooLargeIsNotPassedOn) {
  FakeDoctor good(std::chrono::seconds(0));
  FakeDoctor large(std::chrono::seconds(0), std::string(1 << 20, 'x'));
  const auto first = Serve(&good);
  const auto second = Serve(&large);
  AddNode("a", first->address());
  AddNode("b", second->address());
  const v1::ExamineClusterResponse said = Examine();
  ASSERT_EQ(said.nodes_size(), 2);
  for (const auto& node : said.nodes()) {
    EXPECT_EQ(node.has_examination(), node.node_id() == "a");
    EXPECT_EQ(node.status_code(),
              static_cast<int>(node.node_id() == "a" ? absl::StatusCode::kOk
                                                     : absl::StatusCode::kResourceExhausted));
  }
}

TEST_F(Doctor, ADeadNodeWhoseAddressAnotherHasTakenIsNotAsked) {
  const TestCertificates& shared = TestCertificates::Shared();
  FakeDoctor good(std::chrono::seconds(0));
  const auto server = Serve(&good, shared.Context("node-2"));
  NodeRecord dead;
  dead.node_id = "before";
  dead.control_address = server->address();
  dead.data_address = "127.0.0.1:1";
  ASSERT_TRUE(nodes_.AddDead(dead, std::chrono::hours(1)).ok());
  v1::ExamineClusterResponse alone;
  const TimePoint patience = Clock::System().Now() + std::chrono::seconds(20);
  while (alone.handshakes_size() == 0 && Clock::System().Now() < patience) {
    alone = Examine(shared.Context("head"));  // a busy host may not answer in time
  }
  ASSERT_EQ(alone.handshakes_size(), 1);
  EXPECT_NE(alone.handshakes(0).coordinator_refuses(), "");
  AddNode("node-2", server->address());
  const v1::ExamineClusterResponse said = Examine(shared.Context("head"));
  ASSERT_EQ(said.nodes_size(), 1);
  EXPECT_EQ(said.nodes(0).status_code(), 0) << said.nodes(0).status_message();
  EXPECT_EQ(said.handshakes_size(), 0) << said.handshakes(0).coordinator_refuses();
}

}  // namespace
}  // namespace ecpipe::doctor_service_test
