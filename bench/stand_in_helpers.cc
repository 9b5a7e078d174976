// SPDX-License-Identifier: Apache-2.0
// Many helpers in one process, as a coordinator sees them: each registers, sends heartbeats, has a
// control port of its own on a loopback address of its own, and reports each part that it was given
// as done after a while. None has blocks or a data port. bench/scale.py measures a coordinator with
// them.
//
//   stand_in_helpers --coordinator=HOST:PORT [--nodes=1000] [--part-ms=200] [--racks=0]
//
// The nodes are node-0, node-1, ..., in turn in rack-0, rack-1, ..., if there are racks. Once all
// have registered it prints its counts as a line of JSON. It obeys lines on standard input, and
// answers each with such a line:
//
//   silence COUNT   the last COUNT nodes that are there fall silent for good, all at once
//   count           what there was so far
//
// It ends at the end of its input.
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/process/daemon.h"
#include "base/thread.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "model/plan/features.h"
#include "rpc/channel.h"
#include "rpc/rpc_security.h"

namespace ecpipe {
namespace {

constexpr int kMostNodes = 50'000;                          // addresses are 127.77.x.y
constexpr Duration kCallTimeout = std::chrono::seconds(2);  // as a helper's
constexpr Duration kRetryInterval = std::chrono::milliseconds(500);

struct Options {
  std::string coordinator;
  int nodes = 1000;
  int racks = 0;                                   // 0: none is known
  Duration part = std::chrono::milliseconds(200);  // how long each part takes
};

// Of all stand-ins together.
struct Counts {
  std::atomic<int> registered = 0;
  std::atomic<uint64_t> heartbeats = 0;  // that were answered
  std::atomic<uint64_t> lost_heartbeats = 0;
  std::atomic<uint64_t> parts = 0;          // that were started
  std::atomic<uint64_t> blocks = 0;         // of these, those that store a block
  std::atomic<int64_t> first_block_ms = 0;  // when the first of them began, Unix time; 0: none has
  std::atomic<uint64_t> reports = 0;        // that were taken
};

// Does work when it is due, on one thread.
class Agenda {
 public:
  void At(TimePoint when, std::function<void()> work) {
    MutexLock lock(&mutex_);
    due_.emplace(when, std::move(work));
    changed_.NotifyOne();
  }

  void Run() {
    while (true) Next()();
  }

 private:
  std::function<void()> Next() {
    MutexLock lock(&mutex_);
    while (due_.empty() || due_.begin()->first > Clock::System().Now()) {
      if (due_.empty()) {
        changed_.Wait(lock);
      } else {
        changed_.WaitUntil(lock, due_.begin()->first);
      }
    }
    return std::move(due_.extract(due_.begin()).mapped());
  }

  Mutex mutex_;
  CondVar changed_;
  std::multimap<TimePoint, std::function<void()>> due_ ABSL_GUARDED_BY(mutex_);
};

// What a call needs until it has ended.
template <typename Request, typename Response>
struct Call {
  grpc::ClientContext context;
  Request request;
  Response response;
};

class StandIn final : public v1::HelperService::CallbackService {
 public:
  StandIn(int number, const Options& options, Agenda* agenda, Counts* counts)
      : id_("node-" + std::to_string(number)),
        host_("127.77." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1)),
        incarnation_(static_cast<uint64_t>(number) + 1),
        rack_(options.racks > 0 ? "rack-" + std::to_string(number % options.racks) : ""),
        part_(options.part),
        stub_(v1::CoordinatorService::NewStub(
            MakeChannel(options.coordinator, RpcSecurity(nullptr), Role::kCoordinator))),
        agenda_(agenda),
        counts_(counts) {}

  bool Listen() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(host_ + ":0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    return server_ != nullptr && port_ != 0;
  }

  void Register() {
    if (silent_) return;
    auto call = std::make_shared<Call<v1::RegisterRequest, v1::RegisterResponse>>();
    v1::NodeInfo* node = call->request.mutable_node();
    node->set_node_id(id_);
    node->set_control_address(host_ + ":" + std::to_string(port_));
    node->set_data_address(host_ + ":" + std::to_string(port_ == 1 ? 2 : 1));  // nobody dials it
    node->set_incarnation(incarnation_);
    node->set_rack(rack_);
    for (const std::string& name : FeatureNames(OwnFeatures())) node->add_features(name);
    SetTimeout(&call->context, kCallTimeout);
    stub_->async()->Register(
        &call->context, &call->request, &call->response, [this, call](const grpc::Status& status) {
          const Duration interval =
              std::chrono::milliseconds(call->response.heartbeat_interval_ms());
          if (status.ok()) ++counts_->registered;
          Again(status.ok() ? interval : kRetryInterval, status.ok());
        });
  }

  void FallSilent() {
    silent_ = true;
    server_->Shutdown(std::chrono::system_clock::now());
  }
  bool silent() const { return silent_; }

  grpc::ServerUnaryReactor* StartPart(grpc::CallbackServerContext* context,
                                      const v1::StartPartRequest* request,
                                      v1::StartPartResponse*) override {
    const v1::RepairPart& part = request->part();
    const Key key(part.repair_id(), part.attempt());
    grpc::Status status;
    {
      MutexLock lock(&mutex_);
      if (!parts_.insert({key, true}).second) {
        status = {grpc::StatusCode::ALREADY_EXISTS, "this attempt was started here before"};
      }
    }
    if (status.ok()) {
      ++counts_->parts;
      if (part.stores_size() > 0) {
        int64_t none = 0;
        counts_->first_block_ms.compare_exchange_strong(none, Clock::System().UnixMillis());
        ++counts_->blocks;
      }
      agenda_->At(Clock::System().Now() + part_, [this, key] { EndPart(key); });
    }
    return Answer(context, status);
  }

  grpc::ServerUnaryReactor* CancelRepair(grpc::CallbackServerContext* context,
                                         const v1::CancelRepairRequest* request,
                                         v1::CancelRepairResponse* response) override {
    const uint64_t repair = request->repair_id();
    uint32_t cancelled = 0;
    {
      MutexLock lock(&mutex_);
      auto part = parts_.lower_bound({repair, 0});
      while (part != parts_.end() && part->first <= Key(repair, request->attempt())) {
        part = parts_.erase(part);
        ++cancelled;
      }
    }
    response->set_cancelled_parts(cancelled);
    return Answer(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* GetPart(grpc::CallbackServerContext* context,
                                    const v1::GetPartRequest* request,
                                    v1::PartProgress* response) override {
    grpc::Status status;
    MutexLock lock(&mutex_);
    const auto part = parts_.find({request->repair_id(), request->attempt()});
    if (part == parts_.end()) {
      status = {grpc::StatusCode::NOT_FOUND, "the part does not run here"};
    } else {
      response->set_running(part->second);
    }
    return Answer(context, status);
  }

 private:
  using Key = std::pair<uint64_t, uint32_t>;  // repair and attempt

  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                          const grpc::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  void Again(Duration pause, bool registered) {
    agenda_->At(Clock::System().Now() + pause,
                [this, pause, registered] { registered ? Heartbeat(pause) : Register(); });
  }

  void Heartbeat(Duration interval) {
    if (silent_) return;
    auto call = std::make_shared<Call<v1::HeartbeatRequest, v1::HeartbeatResponse>>();
    call->request.set_node_id(id_);
    call->request.set_incarnation(incarnation_);
    {
      MutexLock lock(&mutex_);
      call->request.set_active_sessions(static_cast<uint32_t>(parts_.size()));
    }
    SetTimeout(&call->context, kCallTimeout);
    stub_->async()->Heartbeat(&call->context, &call->request, &call->response,
                              [this, call, interval](const grpc::Status& status) {
                                ++(status.ok() ? counts_->heartbeats : counts_->lost_heartbeats);
                                const bool unknown =
                                    status.error_code() == grpc::StatusCode::NOT_FOUND;
                                if (unknown) --counts_->registered;
                                Again(unknown ? kRetryInterval : interval, !unknown);
                              });
  }

  void EndPart(const Key& key) {
    {
      MutexLock lock(&mutex_);
      const auto part = parts_.find(key);
      if (part == parts_.end()) return;  // it was cancelled
      part->second = false;
    }
    Report(key);
  }

  void Report(const Key& key) {
    if (silent_) return;
    auto call = std::make_shared<Call<v1::ReportPartRequest, v1::ReportPartResponse>>();
    call->request.set_node_id(id_);
    call->request.set_repair_id(key.first);
    call->request.set_attempt(key.second);
    call->request.set_seconds(Seconds(part_));
    SetTimeout(&call->context, kCallTimeout);
    stub_->async()->ReportPart(&call->context, &call->request, &call->response,
                               [this, call, key](const grpc::Status& status) {
                                 if (!status.ok()) {
                                   agenda_->At(Clock::System().Now() + kRetryInterval,
                                               [this, key] { Report(key); });
                                   return;
                                 }
                                 ++counts_->reports;
                                 MutexLock lock(&mutex_);
                                 parts_.erase(key);
                               });
  }

  const std::string id_;
  const std::string host_;
  const uint64_t incarnation_;
  const std::string rack_;
  const Duration part_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;
  Agenda* const agenda_;
  Counts* const counts_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> silent_ = false;
  Mutex mutex_;
  std::map<Key, bool> parts_
      ABSL_GUARDED_BY(mutex_);  // whether it runs; else it has to be reported
};

void PrintCounts(const Counts& counts) {
  std::printf(
      "{\"registered\": %d, \"heartbeats\": %llu, \"lost_heartbeats\": %llu, \"parts\": %llu, "
      "\"blocks\": %llu, \"first_block_ms\": %lld, \"reports\": %llu}\n",
      counts.registered.load(), static_cast<unsigned long long>(counts.heartbeats),
      static_cast<unsigned long long>(counts.lost_heartbeats),
      static_cast<unsigned long long>(counts.parts), static_cast<unsigned long long>(counts.blocks),
      static_cast<long long>(counts.first_block_ms),
      static_cast<unsigned long long>(counts.reports));
  std::fflush(stdout);
}

void FallSilent(std::vector<std::unique_ptr<StandIn>>* stand_ins, int count) {
  int left = count;
  for (auto each = stand_ins->rbegin(); each != stand_ins->rend() && left > 0; ++each) {
    if ((*each)->silent()) continue;
    (*each)->FallSilent();
    --left;
  }
  std::printf("{\"silenced\": %d}\n", count - left);
  std::fflush(stdout);
}

[[noreturn]] void Run(const Options& options) {
  Agenda agenda;
  Counts counts;
  std::vector<std::unique_ptr<StandIn>> stand_ins;
  for (int i = 0; i < options.nodes; ++i) {
    stand_ins.push_back(std::make_unique<StandIn>(i, options, &agenda, &counts));
    if (stand_ins.back()->Listen()) continue;
    std::fprintf(stderr, "stand_in_helpers: node-%d cannot listen on its loopback address\n", i);
    std::_Exit(1);
  }
  // Spread over a second, as heartbeats of helpers that were started by themselves are.
  const TimePoint now = Clock::System().Now();
  for (int i = 0; i < options.nodes; ++i) {
    StandIn* const stand_in = stand_ins[static_cast<size_t>(i)].get();
    agenda.At(now + std::chrono::seconds(1) * i / options.nodes,
              [stand_in] { stand_in->Register(); });
  }
  std::function<void()> await_all = [&] {
    if (counts.registered == options.nodes) return PrintCounts(counts);
    agenda.At(Clock::System().Now() + std::chrono::milliseconds(50), await_all);
  };
  agenda.At(now, await_all);
  Thread([&agenda] { agenda.Run(); }).detach();
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "count") PrintCounts(counts);
    if (line.starts_with("silence ")) FallSilent(&stand_ins, std::atoi(line.c_str() + 8));
  }
  std::_Exit(0);  // calls are under way
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  bool good = true;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&](const char* name) -> const char* {
      return arg.starts_with(name) ? argv[i] + std::strlen(name) : nullptr;
    };
    if (const char* coordinator = value("--coordinator=")) {
      options.coordinator = coordinator;
    } else if (const char* nodes = value("--nodes=")) {
      options.nodes = std::atoi(nodes);
    } else if (const char* racks = value("--racks=")) {
      options.racks = std::atoi(racks);
    } else if (const char* part = value("--part-ms=")) {
      options.part = std::chrono::milliseconds(std::atoi(part));
    } else {
      good = false;
    }
  }
  if (good && !options.coordinator.empty() && options.nodes >= 1 && options.nodes <= kMostNodes) {
    return options;
  }
  std::fprintf(stderr,
               "Usage: stand_in_helpers --coordinator=HOST:PORT [--nodes=1000] [--part-ms=200] "
               "[--racks=0]\n");
  std::exit(2);
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::RaiseFileLimit();
  ecpipe::SkipLockOrderChecks();
  ecpipe::Run(ecpipe::ParseOptions(argc, argv));
}
