// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/ecpipe.h"

#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/process/blocked_signals.h"
#include "base/process/version.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "requestor/client/c_structs.h"
#include "requestor/client/requestor.h"
#include "requestor/client/submitted_call.h"
#include "rpc/rpc_exit.h"

namespace {

using ecpipe::CallThreads;
using ecpipe::RepairReport;
using ecpipe::RepairTarget;
using ecpipe::Requestor;
using ecpipe::SubmittedCall;

// What a client has of gRPC. The process's last one waits for gRPC's threads, which use OpenSSL: it
// may clean up as soon as main() returns. Where others use gRPC as well, its threads are theirs.
class RpcUse {
 public:
  RpcUse() {
    ecpipe::MutexLock lock(&mutex_);
    if (clients_++ == 0) of_others_ = ecpipe::RpcInUse();
  }
  ~RpcUse() {
    ecpipe::MutexLock lock(&mutex_);
    if (--clients_ == 0 && !of_others_) ecpipe::AwaitRpcExit();
  }

 private:
  static inline ecpipe::Mutex mutex_;
  static inline int clients_ ABSL_GUARDED_BY(mutex_) = 0;
  static inline bool of_others_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

struct ecpipe_client {
  RpcUse rpc;
  std::unique_ptr<Requestor> requestor;
  CallThreads submitted{ECPIPE_MOST_SUBMITTED};  // last: its threads use the requestor
};

struct ecpipe_canceller {
  std::stop_source stop;
};

struct ecpipe_call {
  std::shared_ptr<SubmittedCall> submitted;  // shared with the thread that does the work
};

namespace {

// gRPC ends the process where it gets no descriptors as it begins, and OpenSSL does not say why it
// cannot read a file.
absl::Status CheckDescriptorsAreLeft() {
  std::array<ecpipe::UniqueFd, 16> spare;
  for (ecpipe::UniqueFd& fd : spare) {
    fd = ecpipe::UniqueFd(::eventfd(0, EFD_CLOEXEC));
    if (!fd.valid()) {
      return ecpipe::ErrnoStatus(errno, "a client needs some descriptors (ulimit -n)");
    }
  }
  return absl::OkStatus();
}

absl::Status Open(const ecpipe_options* options, ecpipe_client** client) {
  if (client == nullptr) return absl::InvalidArgumentError("client must not be NULL");
  ecpipe::ThrowOnBrokenInvariants();
  ECPIPE_RETURN_IF_ERROR(CheckDescriptorsAreLeft());
  ECPIPE_ASSIGN_OR_RETURN(ecpipe::RequestorOptions wanted, ecpipe::OptionsOf(options));
  const ecpipe::BlockedSignals for_rpc_threads;
  auto opened = std::make_unique<ecpipe_client>();
  ECPIPE_ASSIGN_OR_RETURN(opened->requestor, Requestor::Connect(std::move(wanted)));
  *client = opened.release();
  return absl::OkStatus();
}

// A call as C has put it.
struct Wanted {
  RepairTarget target;
  ecpipe::ByteSink sink;  // of a read
  ecpipe::ProgressFn progress;
  std::stop_token stop;
};
// Does it. Outlives what C has lent.
using Make = std::function<absl::StatusOr<RepairReport>(Requestor*, const Wanted&)>;
// A Make for that target.
using MakeFor = std::function<absl::StatusOr<Make>(const RepairTarget&)>;

absl::StatusOr<Make> Read(const RepairTarget&) {
  return [](Requestor* requestor, const Wanted& wanted) {
    return requestor->Read(wanted.target, wanted.sink, wanted.progress, nullptr, wanted.stop);
  };
}

MakeFor RepairToFiles(const char* const* paths) {
  return [paths](const RepairTarget& target) -> absl::StatusOr<Make> {
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                            ecpipe::PlacesOf(paths, target.block_ids.size(), "path"));
    return [files](Requestor* requestor, const Wanted& wanted) {
      return requestor->RepairToFiles(wanted.target, files, wanted.progress, wanted.stop);
    };
  };
}

MakeFor RepairToNodes(const char* const* nodes) {
  return [nodes](const RepairTarget& target) -> absl::StatusOr<Make> {
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<std::string> hosts,
                            ecpipe::PlacesOf(nodes, target.block_ids.size(), "node"));
    return [hosts](Requestor* requestor, const Wanted& wanted) {
      return requestor->RepairToNodes(wanted.target, hosts, wanted.stop);
    };
  };
}

absl::StatusOr<RepairTarget> TargetFor(const ecpipe_client* client, const ecpipe_target* target) {
  if (client == nullptr) return absl::InvalidArgumentError("client must not be NULL");
  return ecpipe::TargetOf(target);
}

// Makes a call on this thread. `sink`: of a read.
int CallNow(ecpipe_client* client, const ecpipe_target* target, const MakeFor& make_for,
            const ecpipe::ByteSink& sink, const ecpipe_call_options* options,
            ecpipe_report* report, ecpipe_error* error) {
  const absl::Status status = ecpipe::Guarded([&]() -> absl::Status {
    ECPIPE_RETURN_IF_ERROR(ecpipe::CheckOutStructs(report, error));
    ECPIPE_ASSIGN_OR_RETURN(const ecpipe_call_options given, ecpipe::CallOptionsOf(options));
    Wanted wanted;
    ECPIPE_ASSIGN_OR_RETURN(wanted.target, TargetFor(client, target));
    ECPIPE_ASSIGN_OR_RETURN(const Make make, make_for(wanted.target));
    wanted.sink = sink;
    std::stop_source stop;
    if (given.progress != nullptr) {
      wanted.progress = [given, &stop](uint64_t verified, uint64_t total) {
        if (given.progress(verified, total, given.progress_context) != 0) stop.request_stop();
      };
    }
    wanted.stop = stop.get_token();
    const std::stop_callback on_cancel(
        given.canceller == nullptr ? std::stop_token() : given.canceller->stop.get_token(),
        [&stop] { stop.request_stop(); });
    ECPIPE_ASSIGN_OR_RETURN(const RepairReport made, make(client->requestor.get(), wanted));
    ecpipe::Fill(made, report);
    return absl::OkStatus();
  });
  return ecpipe::Tell(status, error);
}

// What a call leaves for ecpipe_call_take.
enum class Brings { kBytes, kNothing };

// Has a thread make the call.
int Submit(ecpipe_client* client, const ecpipe_target* target, const MakeFor& make_for,
           Brings brings, const ecpipe_submit_options* options, ecpipe_call** call,
           ecpipe_error* error) {
  const absl::Status status = ecpipe::Guarded([&]() -> absl::Status {
    ECPIPE_RETURN_IF_ERROR(ecpipe::CheckOutStructs(nullptr, error));
    if (call == nullptr) return absl::InvalidArgumentError("call must not be NULL");
    ECPIPE_ASSIGN_OR_RETURN(const size_t buffer_bytes, ecpipe::BufferBytesOf(options));
    ECPIPE_ASSIGN_OR_RETURN(const RepairTarget wanted, TargetFor(client, target));
    ECPIPE_ASSIGN_OR_RETURN(const Make make, make_for(wanted));
    auto made = std::make_unique<ecpipe_call>();
    ECPIPE_ASSIGN_OR_RETURN(
        made->submitted, SubmittedCall::Create(brings == Brings::kBytes ? buffer_bytes : 0));
    ECPIPE_RETURN_IF_ERROR(client->submitted.Start(
        made->submitted, [requestor = client->requestor.get(), wanted, make](SubmittedCall* own) {
          const auto put = [own](std::span<const uint8_t> bytes) { return own->Put(bytes); };
          const auto show = [own](uint64_t verified, uint64_t total) {
            own->ShowProgress(verified, total);
          };
          return make(requestor, {wanted, put, show, own->stop()});
        }));
    *call = made.release();
    return absl::OkStatus();
  });
  return ecpipe::Tell(status, error);
}

}  // namespace

const char* ecpipe_version(void) { return ecpipe::Version(); }

int ecpipe_open(const ecpipe_options* options, ecpipe_client** client, ecpipe_error* error) {
  const absl::Status status = ecpipe::Guarded([&]() -> absl::Status {
    ECPIPE_RETURN_IF_ERROR(ecpipe::CheckOutStructs(nullptr, error));
    return Open(options, client);
  });
  return ecpipe::Tell(status, error);
}

void ecpipe_cancel(ecpipe_client* client) {
  if (client == nullptr) return;
  client->submitted.CancelAll();
  client->requestor->Cancel();
}

void ecpipe_close(ecpipe_client* client) { delete client; }

int ecpipe_canceller_new(ecpipe_canceller** canceller, ecpipe_error* error) {
  const absl::Status status = ecpipe::Guarded([&]() -> absl::Status {
    ECPIPE_RETURN_IF_ERROR(ecpipe::CheckOutStructs(nullptr, error));
    if (canceller == nullptr) return absl::InvalidArgumentError("canceller must not be NULL");
    *canceller = new ecpipe_canceller;
    return absl::OkStatus();
  });
  return ecpipe::Tell(status, error);
}

void ecpipe_canceller_cancel(ecpipe_canceller* canceller) {
  if (canceller != nullptr) canceller->stop.request_stop();
}

void ecpipe_canceller_free(ecpipe_canceller* canceller) { delete canceller; }

int ecpipe_read(ecpipe_client* client, const ecpipe_target* target, ecpipe_bytes_fn take,
                void* context, const ecpipe_call_options* options, ecpipe_report* report,
                ecpipe_error* error) {
  const auto make_for = [&](const RepairTarget& wanted) -> absl::StatusOr<Make> {
    if (take == nullptr) return absl::InvalidArgumentError("the callback must not be NULL");
    return Read(wanted);
  };
  const auto sink = [&](std::span<const uint8_t> bytes) {
    return take(bytes.data(), bytes.size(), context) == 0
               ? absl::OkStatus()
               : absl::CancelledError("the callback refused the bytes");
  };
  return CallNow(client, target, make_for, sink, options, report, error);
}

int ecpipe_repair_to_files(ecpipe_client* client, const ecpipe_target* target,
                           const char* const* paths, const ecpipe_call_options* options,
                           ecpipe_report* report, ecpipe_error* error) {
  return CallNow(client, target, RepairToFiles(paths), nullptr, options, report, error);
}

int ecpipe_repair_to_nodes(ecpipe_client* client, const ecpipe_target* target,
                           const char* const* nodes, const ecpipe_call_options* options,
                           ecpipe_report* report, ecpipe_error* error) {
  return CallNow(client, target, RepairToNodes(nodes), nullptr, options, report, error);
}

int ecpipe_submit_read(ecpipe_client* client, const ecpipe_target* target,
                       const ecpipe_submit_options* options, ecpipe_call** call,
                       ecpipe_error* error) {
  return Submit(client, target, Read, Brings::kBytes, options, call, error);
}

int ecpipe_submit_repair_to_files(ecpipe_client* client, const ecpipe_target* target,
                                  const char* const* paths, const ecpipe_submit_options* options,
                                  ecpipe_call** call, ecpipe_error* error) {
  return Submit(client, target, RepairToFiles(paths), Brings::kNothing, options, call, error);
}

int ecpipe_submit_repair_to_nodes(ecpipe_client* client, const ecpipe_target* target,
                                  const char* const* nodes, const ecpipe_submit_options* options,
                                  ecpipe_call** call, ecpipe_error* error) {
  return Submit(client, target, RepairToNodes(nodes), Brings::kNothing, options, call, error);
}

int ecpipe_call_descriptor(const ecpipe_call* call) {
  return call == nullptr ? -1 : call->submitted->descriptor();
}

int ecpipe_call_take(ecpipe_call* call, void* buffer, size_t size, size_t* taken,
                     ecpipe_error* error) {
  bool pending = false;
  const absl::Status status = ecpipe::Guarded([&]() -> absl::Status {
    ECPIPE_RETURN_IF_ERROR(ecpipe::CheckOutStructs(nullptr, error));
    if (call == nullptr || buffer == nullptr || size == 0 || taken == nullptr) {
      return absl::InvalidArgumentError("call, buffer, size and taken must not be 0");
    }
    ECPIPE_ASSIGN_OR_RETURN(const std::optional<size_t> count,
                            call->submitted->Take({static_cast<uint8_t*>(buffer), size}));
    pending = !count.has_value();
    *taken = count.value_or(0);
    return absl::OkStatus();
  });
  return pending ? ECPIPE_PENDING : ecpipe::Tell(status, error);
}

int ecpipe_call_result(ecpipe_call* call, ecpipe_report* report, ecpipe_error* error) {
  bool pending = false;
  const absl::Status status = ecpipe::Guarded([&]() -> absl::Status {
    ECPIPE_RETURN_IF_ERROR(ecpipe::CheckOutStructs(report, error));
    if (call == nullptr) return absl::InvalidArgumentError("call must not be NULL");
    const auto result = call->submitted->result();
    pending = !result.has_value();
    if (pending) return absl::OkStatus();
    ECPIPE_RETURN_IF_ERROR(result->status());
    ecpipe::Fill(**result, report);
    return absl::OkStatus();
  });
  return pending ? ECPIPE_PENDING : ecpipe::Tell(status, error);
}

void ecpipe_call_progress(const ecpipe_call* call, uint64_t* verified_bytes,
                          uint64_t* total_bytes) {
  *verified_bytes = *total_bytes = 0;
  if (call != nullptr) call->submitted->GetProgress(verified_bytes, total_bytes);
}

void ecpipe_call_cancel(ecpipe_call* call) {
  if (call != nullptr) call->submitted->Cancel();
}

void ecpipe_call_free(ecpipe_call* call) {
  ecpipe_call_cancel(call);
  delete call;
}
