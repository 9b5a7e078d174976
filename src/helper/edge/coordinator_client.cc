// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/coordinator_client.h"

#include <algorithm>

#include "base/bytes/utf8_text.h"
#include "base/process/log.h"
#include "base/status.h"
#include "model/corrupt_block.h"
#include "model/fault.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

constexpr auto kCallTimeout = std::chrono::seconds(2);
constexpr auto kRetryInterval = std::chrono::milliseconds(500);
// Reports wait here while the coordinator is away; the oldest are dropped beyond it.
constexpr size_t kMaxReports = 1024;
constexpr Duration kRecountPause = std::chrono::seconds(1);

}  // namespace

CoordinatorClient::CoordinatorClient(Options options, Idle)
    : options_(std::move(options)),
      stub_(v1::CoordinatorService::NewStub(
          MakeChannel(options_.coordinator, RpcSecurity(options_.tls), Role::kCoordinator))) {}

CoordinatorClient::CoordinatorClient(Options options)
    : CoordinatorClient(std::move(options), Idle()) {
  // Where one cannot be had, the destructor ends those before it.
  heartbeats_ = Thread([this] { SendHeartbeats(); });
  sender_ = Thread([this] { SendReports(); });
  counter_ = Thread([this] { CountBlocks(); });
}

CoordinatorClient::~CoordinatorClient() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (grpc::ClientContext* call : {heartbeat_call_, report_call_}) {
      if (call != nullptr) call->TryCancel();
    }
  }
  heartbeat_turn_.NotifyOne();
  report_turn_.NotifyOne();
  count_turn_.NotifyOne();
  for (Thread* thread : {&heartbeats_, &sender_, &counter_}) {
    if (thread->joinable()) thread->join();
  }
}

void CoordinatorClient::Report(const PartReport& report) {
  {
    MutexLock lock(&mutex_);
    if (reports_.size() == kMaxReports) reports_.pop_front();
    reports_.push_back(report);
  }
  report_turn_.NotifyOne();
}

void CoordinatorClient::HeartbeatNow() {
  {
    MutexLock lock(&mutex_);
    hurry_ = true;
  }
  heartbeat_turn_.NotifyOne();
}

void CoordinatorClient::Leave() {
  {
    MutexLock lock(&mutex_);
    leaving_ = true;
    hurry_ = true;
  }
  heartbeat_turn_.NotifyOne();
  report_turn_.NotifyOne();  // reports no longer wait for a registration
}

void CoordinatorClient::SendHeartbeats() {
  {
    // A small store is counted by then, and its first registration tells of it.
    const TimePoint patience = Clock::System().Now() + kRetryInterval;
    MutexLock lock(&mutex_);
    while (!stopping_ && !counted_ && heartbeat_turn_.WaitUntil(lock, patience)) {
    }
  }
  bool may_register = false;
  do {
    {
      MutexLock lock(&mutex_);
      may_register = !registered_ && !leaving_;
    }
    if (!may_register) {
      Heartbeat();
    } else {
      Register();
    }
    bool registered = false;
    {
      MutexLock lock(&mutex_);
      registered = registered_;
    }
    options_.turned(registered);
  } while (WaitForNextTurn(heartbeat_interval_));
}

bool CoordinatorClient::WaitForNextTurn(Duration interval) {
  MutexLock lock(&mutex_);
  const TimePoint next =
      Clock::System().Now() + (registered_ ? interval : Duration(kRetryInterval));
  while (!stopping_ && !hurry_ && heartbeat_turn_.WaitUntil(lock, next)) {
  }
  hurry_ = false;
  return !stopping_;
}

void CoordinatorClient::CountSoon() {
  {
    MutexLock lock(&mutex_);
    recount_ = true;
  }
  count_turn_.NotifyOne();
}

void CoordinatorClient::CountBlocks() {
  constexpr int kRestTimes = 9;  // as long as a count has taken
  while (true) {
    const TimePoint begun = Clock::System().Now();
    {
      MutexLock lock(&mutex_);
      recount_ = false;  // what is stored from now on the count may miss
    }
    StoreInventory taken = options_.inventory();
    const TimePoint ended = Clock::System().Now();
    const TimePoint soon = ended + std::max<Duration>(kRecountPause, kRestTimes * (ended - begun));
    const TimePoint next = ended + options_.inventory_interval;
    {
      MutexLock lock(&mutex_);
      recount_ |= taken.counting;
      inventory_ = std::move(taken);
      counted_ = true;
    }
    heartbeat_turn_.NotifyOne();
    MutexLock lock(&mutex_);
    while (!stopping_ && count_turn_.WaitUntil(lock, recount_ ? std::min(soon, next) : next)) {
    }
    if (stopping_) return;
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
  MutexLock lock(&mutex_);
  v1::Inventory inventory;
  inventory.set_counting(!counted_ || inventory_.counting);
  inventory.set_block_count(inventory_.block_count);
  inventory.set_block_bytes(inventory_.block_bytes);
  for (const std::string& root : inventory_.failed_roots) inventory.add_failed_roots(root);
  if (inventory_.free_bytes) inventory.set_free_bytes(*inventory_.free_bytes);
  if (inventory_.disk_bytes) inventory.set_disk_bytes(*inventory_.disk_bytes);
  return inventory;
}

void CoordinatorClient::Register() {
  v1::RegisterRequest request;
  *request.mutable_node() = options_.node;
  *request.mutable_inventory() = Inventory();
  v1::RegisterResponse response;
  CancellableCall call(&mutex_, &heartbeat_call_);
  const absl::Status status =
      FromGrpc(stub_->Register(call.context(), request, &response), "coordinator");
  NoteOutcome(status);
  if (!status.ok()) return;
  {
    MutexLock lock(&mutex_);
    registered_ = true;
  }
  report_turn_.NotifyOne();  // reports wait for it
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
  CancellableCall call(&mutex_, &heartbeat_call_);
  const absl::Status status =
      FromGrpc(stub_->Heartbeat(call.context(), request, &response), "coordinator");
  NoteOutcome(status);
  if (status.ok()) options_.take_limits(response.limits());
  if (!absl::IsNotFound(status)) return;
  MutexLock lock(&mutex_);
  if (leaving_) return;
  registered_ = false;
  hurry_ = true;
}

void CoordinatorClient::SendReports() {
  while (true) {
    PartReport report;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && (reports_.empty() || !(registered_ || leaving_))) {
        report_turn_.Wait(lock);
      }
      if (stopping_) return;
      report = reports_.front();
      reports_.pop_front();
    }
    const absl::Status sent = Send(report);
    if (sent.ok()) continue;
    NoteOutcome(sent);
    // A coordinator that is only slow has not forgotten this node. One that was away may have: it
    // must know the node before it hears what became of its parts.
    const TimePoint next = Clock::System().Now() + kRetryInterval;
    MutexLock lock(&mutex_);
    if (reports_.size() < kMaxReports) reports_.push_front(report);
    if (!absl::IsDeadlineExceeded(sent) && !leaving_) {
      registered_ = false;
      hurry_ = true;
      heartbeat_turn_.NotifyOne();
    }
    while (!stopping_ && report_turn_.WaitUntil(lock, next)) {
    }
  }
}

absl::Status CoordinatorClient::Send(const PartReport& report) {
  v1::ReportPartRequest request;
  request.set_node_id(options_.node.node_id());
  request.set_repair_id(report.repair_id);
  request.set_attempt(report.attempt);
  request.set_status_code(static_cast<int>(report.status.code()));
  // One that is no UTF-8 would be refused each time, and hold up all reports behind it.
  request.set_status_message(CleanText(std::string(report.status.message())));
  request.set_fault_node(FaultOf(report.status));
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
  CancellableCall call(&mutex_, &report_call_);
  return FromGrpc(stub_->ReportPart(call.context(), request, &response), "coordinator");
}

void CoordinatorClient::NoteOutcome(const absl::Status& status) {
  const bool silent = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  const Contact contact = status.ok() || absl::IsNotFound(status) ? Contact::kGood
                          : silent                                ? Contact::kSilent
                                                                  : Contact::kRefused;
  {
    MutexLock lock(&mutex_);
    if (contact == contact_ || stopping_) return;
    contact_ = contact;
  }
  if (contact == Contact::kGood) {
    Log(LogLevel::kInfo, "coordinator.reachable", {{"coordinator", options_.coordinator}});
  } else {
    Log(LogLevel::kWarning, silent ? "coordinator.unreachable" : "coordinator.refused",
        {{"coordinator", options_.coordinator}, {"status", StatusText(status)}});
  }
}

}  // namespace ecpipe
