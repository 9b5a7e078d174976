// SPDX-License-Identifier: Apache-2.0
#include "helper/coordinator_client.h"

#include <algorithm>

#include "common/blame.h"
#include "common/corrupt_block.h"
#include "common/log.h"
#include "common/status.h"
#include "common/utf8_text.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

constexpr auto kCallTimeout = std::chrono::seconds(2);
constexpr auto kRetryInterval = std::chrono::milliseconds(500);
// Reports wait here while the coordinator is away; the oldest are dropped beyond it.
constexpr size_t kMaxReports = 1024;

}  // namespace

CoordinatorClient::CoordinatorClient(Options options)
    : options_(std::move(options)),
      stub_(v1::CoordinatorService::NewStub(
          MakeChannel(options_.coordinator, RpcSecurity(options_.tls), Role::kCoordinator))),
      thread_([this] { Run(); }) {}

CoordinatorClient::~CoordinatorClient() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  turn_.NotifyAll();
  thread_.join();
}

void CoordinatorClient::Report(const PartReport& report) {
  {
    MutexLock lock(&mutex_);
    if (reports_.size() == kMaxReports) reports_.pop_front();
    reports_.push_back(report);
  }
  turn_.NotifyAll();
}

void CoordinatorClient::Hurry() {
  {
    MutexLock lock(&mutex_);
    hurry_ = true;
  }
  turn_.NotifyAll();
}

void CoordinatorClient::Run() {
  do {
    if (!registered_) {
      Register();
    } else {
      Heartbeat();
    }
    if (registered_) SendReports();
  } while (WaitForNextTurn(registered_ ? heartbeat_interval_ : Duration(kRetryInterval)));
}

// False when it is time to stop. Reports are sent while waiting for the next heartbeat.
bool CoordinatorClient::WaitForNextTurn(Duration interval) {
  const TimePoint next = Clock::System().Now() + interval;
  while (true) {
    bool send_reports = false;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && !hurry_ && !(registered_ && !reports_.empty())) {
        if (!turn_.WaitUntil(lock, next)) break;
      }
      if (stopping_) return false;
      if (hurry_ || Clock::System().Now() >= next) {
        hurry_ = false;
        return true;
      }
      send_reports = registered_ && !reports_.empty();
    }
    if (send_reports) SendReports();
    if (!registered_) return true;
  }
}

namespace {

// Makes a call that the owner's destructor can cancel.
class CancellableCall {
 public:
  CancellableCall(Mutex* mutex, grpc::ClientContext** slot) : mutex_(mutex), slot_(slot) {
    SetTimeout(&context_, kCallTimeout);
    MutexLock lock(mutex_);
    *slot_ = &context_;
  }
  ~CancellableCall() {
    MutexLock lock(mutex_);
    *slot_ = nullptr;
  }
  grpc::ClientContext* context() { return &context_; }

 private:
  grpc::ClientContext context_;
  Mutex* const mutex_;
  grpc::ClientContext** const slot_;
};

}  // namespace

v1::Inventory CoordinatorClient::Inventory() {
  const TimePoint now = Clock::System().Now();
  if (now >= inventory_due_) {
    inventory_ = options_.inventory();
    inventory_due_ = now + options_.inventory_interval;
  }
  v1::Inventory inventory;
  inventory.set_block_count(inventory_.block_count);
  inventory.set_block_bytes(inventory_.block_bytes);
  return inventory;
}

void CoordinatorClient::Register() {
  v1::RegisterRequest request;
  *request.mutable_node() = options_.node;
  *request.mutable_inventory() = Inventory();
  v1::RegisterResponse response;
  CancellableCall call(&mutex_, &call_);
  const absl::Status status =
      FromGrpc(stub_->Register(call.context(), request, &response), "coordinator");
  NoteOutcome(status);
  if (!status.ok()) return;
  registered_ = true;
  options_.registered();
  heartbeat_interval_ =
      std::chrono::milliseconds(std::clamp(response.heartbeat_interval_ms(), 10u, 60'000u));
  options_.take_limits(response.limits());
  Log(LogLevel::kInfo, "coordinator.registered", {{"coordinator", options_.coordinator}});
}

void CoordinatorClient::Heartbeat() {
  const Pulse pulse = options_.pulse();
  v1::HeartbeatRequest request;
  request.set_node_id(options_.node.node_id());
  request.set_incarnation(options_.node.incarnation());
  request.set_active_sessions(pulse.active_sessions);
  request.set_draining(pulse.draining);
  request.set_repair_bytes_per_second(pulse.repair_bytes_per_second);
  request.set_max_sessions(pulse.max_sessions);
  *request.mutable_inventory() = Inventory();
  v1::HeartbeatResponse response;
  CancellableCall call(&mutex_, &call_);
  const absl::Status status =
      FromGrpc(stub_->Heartbeat(call.context(), request, &response), "coordinator");
  NoteOutcome(status);
  if (status.ok()) options_.take_limits(response.limits());
  if (absl::IsNotFound(status)) {
    registered_ = false;
    Hurry();
  }
}

void CoordinatorClient::SendReports() {
  while (true) {
    PartReport report;
    {
      MutexLock lock(&mutex_);
      if (stopping_ || reports_.empty()) return;
      report = reports_.front();
      reports_.pop_front();
    }
    v1::ReportPartRequest request;
    request.set_node_id(options_.node.node_id());
    request.set_repair_id(report.repair_id);
    request.set_attempt(report.attempt);
    request.set_status_code(static_cast<int>(report.status.code()));
    // One that is no UTF-8 would be refused each time, and hold up all reports behind it.
    request.set_status_message(CleanText(std::string(report.status.message())));
    request.set_blamed_node(BlamedBy(report.status));
    request.set_bytes_sent(report.traffic.bytes_sent);
    request.set_bytes_received(report.traffic.bytes_received);
    request.set_seconds(Seconds(report.elapsed));
    request.set_corrupt_block_id(CorruptBlockOf(report.status));
    for (const LinkTiming& timing : report.links) {
      v1::LinkTiming* link = request.add_links();
      link->set_to_node(timing.to);
      link->set_bytes(timing.bytes);
      link->set_seconds(timing.seconds);
      link->set_network_seconds(timing.network_seconds);
    }
    v1::ReportPartResponse response;
    CancellableCall call(&mutex_, &call_);
    const absl::Status status =
        FromGrpc(stub_->ReportPart(call.context(), request, &response), "coordinator");
    if (status.ok()) continue;
    // Try again with the next heartbeat, behind a registration if need be.
    NoteOutcome(status);
    registered_ = false;
    MutexLock lock(&mutex_);
    if (reports_.size() < kMaxReports) reports_.push_front(report);
    return;
  }
}

// The calls under way are cancelled then.
bool CoordinatorClient::Stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void CoordinatorClient::NoteOutcome(const absl::Status& status) {
  const bool reachable = status.ok() || absl::IsNotFound(status);
  if (reachable == reachable_ || Stopping()) return;
  reachable_ = reachable;
  if (reachable) {
    Log(LogLevel::kInfo, "coordinator.reachable", {{"coordinator", options_.coordinator}});
  } else {
    Log(LogLevel::kWarning, "coordinator.unreachable",
        {{"coordinator", options_.coordinator}, {"status", StatusText(status)}});
  }
}

}  // namespace ecpipe
