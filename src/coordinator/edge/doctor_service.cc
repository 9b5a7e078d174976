// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/doctor_service.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes/utf8_text.h"
#include "base/clock.h"
#include "base/side_by_side.h"
#include "rpc/channel.h"
#include "rpc/examine/handshake_check.h"
#include "rpc/examine/self_facts.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// Each examined helper dials some dozens of ports at once.
constexpr size_t kHelpersAtOnce = 32;
// Beside the time to dial: a root that hangs takes a helper a second.
constexpr auto kHelperPatience = std::chrono::seconds(4);
// After this no further helper is called, so that 500 which hang end as well.
constexpr auto kAllPatience = std::chrono::seconds(60);
// So long takes a helper that refuses our certificate as well.
constexpr auto kReconnectPatience = std::chrono::seconds(1);
constexpr auto kHandshakePatience = std::chrono::seconds(2);
// Of one helper: far more than one with dozens of roots has to tell.
constexpr size_t kMostBytes = 256 << 10;
// Of all: the command takes 64 MiB.
constexpr size_t kMostBytesOfAll = 48 << 20;
constexpr double kMicro = 1e-6;

int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::vector<NodeRecord> LiveNodes(NodeRegistry* nodes) {
  std::vector<NodeRecord> records;
  for (NodeView& view : nodes->All()) {
    if (view.state == NodeState::kLive) records.push_back(std::move(view.record));
  }
  return records;
}

// One that cannot register, because a certificate does not fit, counts as dead. But what answers at
// a dead node's address may be another node, to which the port was given.
std::vector<NodeRecord> DeadOnesThatMayAnswer(NodeRegistry* nodes) {
  const std::vector<NodeView> all = nodes->All();
  std::set<std::string> taken;
  for (const NodeView& view : all) {
    if (view.state != NodeState::kDead) taken.insert(view.record.control_address);
  }
  std::vector<NodeRecord> records;
  for (const NodeView& view : all) {
    const std::string& address = view.record.control_address;
    if (view.state != NodeState::kDead || address.empty() || taken.contains(address)) continue;
    records.push_back(view.record);
  }
  return records;
}

// The connection failed, so that certificates may be why.
bool MayBeRefused(const v1::ExamineClusterResponse::Node& node) {
  const auto code = static_cast<absl::StatusCode>(node.status_code());
  return code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kUnauthenticated;
}

v1::ExamineNodeRequest RequestOf(const std::vector<NodeRecord>& records, const std::string& self) {
  v1::ExamineNodeRequest request;
  for (const NodeRecord& record : records) {
    if (record.node_id == self) continue;
    v1::ExamineNodeRequest::Peer* const peer = request.add_peers();
    peer->set_node_id(record.node_id);
    peer->set_control_address(record.control_address);
    peer->set_data_address(record.data_address);
  }
  const Duration patience = DialPatience(2 * static_cast<size_t>(request.peers_size()) + 1);
  request.set_dial_ms(static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(patience).count()));
  return request;
}

void SetStatus(const absl::Status& status, v1::ExamineClusterResponse::Node* node) {
  node->set_status_code(static_cast<int>(status.code()));
  node->set_status_message(CleanText(std::string(status.message())));
}

// With TLS an older helper refuses a call that its table of roles does not have before gRPC says
// that there is no such call.
bool IsTooOld(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
         (status.error_code() == grpc::StatusCode::PERMISSION_DENIED &&
          status.error_message().find("no role may call") != std::string::npos);
}

}  // namespace

grpc::Status CoordinatorDoctor::ExamineCluster(grpc::ServerContext* context,
                                               const v1::ExamineClusterRequest*,
                                               v1::ExamineClusterResponse* response) {
  if (busy_.exchange(true)) {
    return ToGrpc(absl::ResourceExhaustedError(
        "somebody else has the cluster examined; that takes a minute at most, then ask again"));
  }
  *response->mutable_data_directory() = RoomOf(data_directory_);
  response->mutable_data_directory()->set_takes_blocks(true);
  ExamineNodes(context, response);
  FillDaemonFacts(tls_.get(), response->mutable_coordinator());
  busy_ = false;
  return grpc::Status::OK;
}

void CoordinatorDoctor::ExamineNodes(grpc::ServerContext* context,
                                     v1::ExamineClusterResponse* response) {
  const TimePoint end = Clock::System().Now() + kAllPatience;
  // Others have given up their ports, or will soon.
  const std::vector<NodeRecord> records = LiveNodes(nodes_);
  std::vector<DialTarget> targets;
  for (const NodeRecord& record : records) {
    targets.push_back({record.node_id, "control", record.control_address});
    targets.push_back({record.node_id, "data", record.data_address});
  }
  DialAll(targets, Clock::System().Now() + DialPatience(targets.size()), response->mutable_dials());
  std::set<std::string> unreached;
  for (const v1::DialFacts::Failure& failure : response->dials().failures()) {
    if (failure.port() == "control") unreached.insert(failure.node_id());
  }
  std::vector<v1::ExamineClusterResponse::Node*> nodes;
  for (const NodeRecord& record : records) {
    nodes.push_back(response->add_nodes());
    nodes.back()->set_node_id(record.node_id);
  }
  const size_t most_bytes =
      std::min(kMostBytes, kMostBytesOfAll / std::max<size_t>(records.size(), 1));
  SideBySide(records.size(), kHelpersAtOnce, [&](size_t i) {
    if (context->IsCancelled()) return;
    if (unreached.contains(records[i].node_id)) {
      SetStatus(absl::CancelledError("the coordinator does not reach its control port"), nodes[i]);
    } else if (Clock::System().Now() >= end) {
      SetStatus(absl::CancelledError("other helpers took all of the time"), nodes[i]);
    } else {
      ExamineOne(records[i], RequestOf(records, records[i].node_id), most_bytes, nodes[i]);
    }
  });
  if (tls_ == nullptr) return;
  std::vector<DialTarget> unheard;
  for (const NodeRecord& record : DeadOnesThatMayAnswer(nodes_)) {
    unheard.push_back({record.node_id, "control", record.control_address});
  }
  for (size_t i = 0; i < records.size(); ++i) {
    if (!MayBeRefused(*nodes[i])) continue;
    unheard.push_back({records[i].node_id, "control", records[i].control_address});
  }
  const auto stop = [&] { return context->IsCancelled() || Clock::System().Now() >= end; };
  CheckHandshakes(unheard, kHandshakePatience, stop, tls_.get(), response);
}

void CoordinatorDoctor::ExamineOne(const NodeRecord& record, const v1::ExamineNodeRequest& request,
                                   size_t most_bytes, v1::ExamineClusterResponse::Node* node) {
  const std::shared_ptr<grpc::Channel> channel =
      MakeChannel(record.control_address, security_, Role::kHelper, record.node_id);
  const auto stub = v1::DoctorService::NewStub(channel);
  const TimePoint end =
      Clock::System().Now() + std::chrono::milliseconds(request.dial_ms()) + kHelperPatience;
  TimePoint begun;  // of the latest call: by it the clock is measured
  const auto call = [&] {
    grpc::ClientContext context;
    begun = Clock::System().Now();
    SetTimeout(&context, end - begun);
    return stub->ExamineNode(&context, request, node->mutable_examination());
  };
  grpc::Status status = call();
  // gRPC 1.51 at times takes a connection that is under way for one that failed: it looks at errno
  // too late (mended by its pull request 35064).
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      channel->WaitForConnected(std::chrono::system_clock::now() + kReconnectPatience)) {
    const grpc::Status again = call();
    if (again.ok() || IsTooOld(again)) status = again;
  }
  const int64_t now = NowMicros();
  const double took = std::chrono::duration<double>(Clock::System().Now() - begun).count();
  if (IsTooOld(status)) {
    SetStatus(absl::UnimplementedError("its helper is too old to be examined"), node);
    return;
  }
  SetStatus(FromGrpc(status, record.control_address), node);
  if (!status.ok()) return;
  if (const size_t bytes = node->examination().ByteSizeLong(); bytes > most_bytes) {
    node->clear_examination();
    SetStatus(absl::ResourceExhaustedError("its answer has " + std::to_string(bytes) +
                                           " bytes, and " + std::to_string(most_bytes) +
                                           " are taken at most; look at its log"),
              node);
    return;
  }
  // The helper read its clock when its own work was done; what is left of the time went to the
  // connection and to both ways, and in which of these is not known.
  const v1::NodeExamination& examined = node->examination();
  const double unknown = std::max(0.0, took - kMicro * static_cast<double>(examined.took_micros()));
  const double ahead = kMicro * static_cast<double>(examined.daemon().unix_micros() - now);
  node->set_clock_ahead_seconds(ahead + unknown / 2);
  node->set_clock_uncertainty_seconds(unknown / 2);
}

}  // namespace ecpipe
