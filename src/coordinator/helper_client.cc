// SPDX-License-Identifier: Apache-2.0
#include "coordinator/helper_client.h"

#include <chrono>

#include "rpc/channel.h"
#include "rpc/part_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// One call of a handout; it lives until its callback has run.
struct StartCall {
  grpc::ClientContext context;
  v1::StartPartRequest request;
  v1::StartPartResponse response;
  absl::Status status;
};

class Latch {
 public:
  explicit Latch(size_t count) : left_(count) {}
  void CountDown() {
    // Under the lock: the waiter destroys this latch as soon as it can have it.
    MutexLock lock(&mutex_);
    if (--left_ == 0) done_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (left_ > 0) done_.Wait(lock);
  }

 private:
  Mutex mutex_;
  CondVar done_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

HelperClient::Stub HelperClient::StubFor(const std::string& control_address) {
  MutexLock lock(&mutex_);
  Stub& stub = stubs_[control_address];
  if (stub == nullptr) {
    const std::shared_ptr<grpc::Channel> channel = MakeChannel(control_address);
    channel->GetState(/*try_to_connect=*/true);  // ready before the first repair needs it
    stub = v1::HelperService::NewStub(channel);
  }
  return stub;
}

std::vector<absl::Status> HelperClient::StartParts(const std::vector<Handout>& handouts,
                                                   Duration timeout) {
  std::vector<StartCall> calls(handouts.size());
  std::vector<Stub> stubs;
  Latch latch(handouts.size());
  for (size_t i = 0; i < handouts.size(); ++i) {
    StartCall& call = calls[i];
    const HelperAddress& helper = handouts[i].helper;
    *call.request.mutable_part() = PartToProto(handouts[i].part);
    SetTimeout(&call.context, timeout);
    stubs.push_back(StubFor(helper.control_address));
    stubs.back()->async()->StartPart(
        &call.context, &call.request, &call.response,
        [&call, &latch, peer = "node " + helper.node](const grpc::Status& status) {
          call.status = FromGrpc(status, peer);
          latch.CountDown();
        });
  }
  latch.Wait();
  std::vector<absl::Status> statuses;
  for (const StartCall& call : calls) statuses.push_back(call.status);
  return statuses;
}

void HelperClient::CancelRepair(RepairId repair_id, uint32_t attempt,
                                const std::vector<HelperAddress>& helpers) {
  struct CancelCall {
    grpc::ClientContext context;
    v1::CancelRepairRequest request;
    v1::CancelRepairResponse response;
    Stub stub;
  };
  constexpr auto kTimeout = std::chrono::seconds(2);
  for (const HelperAddress& helper : helpers) {
    auto call = std::make_shared<CancelCall>();  // shared with its own callback, which ends it
    call->request.set_repair_id(repair_id);
    call->request.set_attempt(attempt);
    call->stub = StubFor(helper.control_address);
    SetTimeout(&call->context, kTimeout);
    call->stub->async()->CancelRepair(&call->context, &call->request, &call->response,
                                      [call](const grpc::Status&) {});
  }
}

void HelperClient::ForgetConnection(const std::string& control_address) {
  {
    MutexLock lock(&mutex_);
    stubs_.erase(control_address);
  }
  StubFor(control_address);
}

}  // namespace ecpipe
