// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/helper_client.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/bytes/sha256.h"
#include "base/status.h"
#include "coordinator/cluster/node_table.h"
#include "model/block_id.h"
#include "rpc/channel.h"
#include "rpc/convert/block_file_proto.h"
#include "rpc/convert/part_proto.h"
#include "rpc/convert/progress_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// One call to one helper.
template <typename Request, typename Response>
struct Call {
  grpc::ClientContext context;
  Request request;
  Response response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
};

// Waits for `count` calls that were begun on the queue; each has a deadline, so this ends.
void AwaitAll(grpc::CompletionQueue* queue, size_t count) {
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < count; ++i) queue->Next(&tag, &ok);
  queue->Shutdown();
}

// The same, but when only one is left it is not waited for much longer than for the others. Returns
// that one if it was cancelled.
template <typename Calls>
const void* AwaitAllButStraggler(grpc::CompletionQueue* queue,
                                 std::optional<Duration> straggler_after, Calls* calls) {
  if (!straggler_after || calls->size() < 2) {
    AwaitAll(queue, calls->size());
    return nullptr;
  }
  constexpr int kAsLongAsOthers = 3;
  const Clock& clock = Clock::System();
  const TimePoint begun = clock.Now();
  void* tag = nullptr;
  bool ok = false;
  std::set<const void*> left;
  for (const auto& call : *calls) left.insert(&call);
  while (left.size() > 1 && queue->Next(&tag, &ok)) left.erase(tag);
  const TimePoint others = clock.Now();
  const Duration wait = std::max(*straggler_after, kAsLongAsOthers * (others - begun));
  const std::chrono::system_clock::time_point until =
      std::chrono::system_clock::now() + (begun + wait - others);
  const bool late = queue->AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::TIMEOUT;
  if (late) {
    for (auto& call : *calls) call.context.TryCancel();  // those that have ended do not mind
    queue->Next(&tag, &ok);
  }
  queue->Shutdown();
  return late ? *left.begin() : nullptr;
}

}  // namespace

HelperClient::Stub HelperClient::StubFor(const HelperAddress& helper) {
  MutexLock lock(&mutex_);
  const std::pair key(helper.control_address, tls_ ? helper.node : "");
  if (!stubs_.contains(key) && stubs_.size() >= max_connections_) stubs_.erase(stubs_.begin());
  Stub& stub = stubs_[key];
  if (stub == nullptr) {
    const std::shared_ptr<grpc::Channel> channel =
        MakeChannel(helper.control_address, security_, Role::kHelper, helper.node);
    channel->GetState(/*try_to_connect=*/true);  // ready before the first repair needs it
    stub = v1::HelperService::NewStub(channel);
  }
  return stub;
}

std::vector<absl::StatusOr<HelperGateway::Started>> HelperClient::StartParts(
    const std::vector<Handout>& handouts, Duration timeout,
    std::optional<Duration> straggler_after) {
  std::vector<Call<v1::StartPartRequest, v1::StartPartResponse>> calls(handouts.size());
  std::vector<Stub> stubs;
  grpc::CompletionQueue queue;
  for (size_t i = 0; i < handouts.size(); ++i) {
    *calls[i].request.mutable_part() = PartToProto(handouts[i].part);
    SetTimeout(&calls[i].context, timeout);
    stubs.push_back(StubFor(handouts[i].helper));
    calls[i].reader = stubs[i]->AsyncStartPart(&calls[i].context, calls[i].request, &queue);
    calls[i].reader->Finish(&calls[i].response, &calls[i].status, &calls[i]);
  }
  const void* const straggler = AwaitAllButStraggler(&queue, straggler_after, &calls);
  std::vector<absl::StatusOr<Started>> answers;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].status.ok()) {
      answers.emplace_back(Started{ChecksumFromProto(calls[i].response.checksum())});
    } else if (calls[i].status.error_code() != grpc::StatusCode::CANCELLED) {
      answers.emplace_back(FromGrpc(calls[i].status, "node " + handouts[i].helper.node));
    } else if (&calls[i] == straggler) {
      answers.emplace_back(absl::CancelledError("node " + handouts[i].helper.node +
                                                ": its part was not waited for"));
    } else {  // so end the calls of a server that is shutting down
      answers.emplace_back(absl::UnavailableError("node " + handouts[i].helper.node +
                                                  ": its helper has ended the call"));
    }
  }
  return answers;
}

std::vector<absl::StatusOr<PartProgress>> HelperClient::AskParts(
    RepairId repair_id, uint32_t attempt, const std::vector<HelperAddress>& helpers,
    Duration timeout, std::optional<Duration> straggler_after) {
  std::vector<Call<v1::GetPartRequest, v1::PartProgress>> calls(helpers.size());
  std::vector<Stub> stubs;
  grpc::CompletionQueue queue;
  for (size_t i = 0; i < helpers.size(); ++i) {
    calls[i].request.set_repair_id(repair_id);
    calls[i].request.set_attempt(attempt);
    SetTimeout(&calls[i].context, timeout);
    stubs.push_back(StubFor(helpers[i]));
    calls[i].reader = stubs[i]->AsyncGetPart(&calls[i].context, calls[i].request, &queue);
    calls[i].reader->Finish(&calls[i].response, &calls[i].status, &calls[i]);
  }
  const void* const straggler = AwaitAllButStraggler(&queue, straggler_after, &calls);
  std::vector<absl::StatusOr<PartProgress>> answers;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].status.ok()) {
      answers.emplace_back(ProgressFromProto(calls[i].response));
    } else if (&calls[i] == straggler) {
      answers.emplace_back(absl::DeadlineExceededError(
          "node " + helpers[i].node + ": its answer came much later than the others'"));
    } else {
      answers.emplace_back(FromGrpc(calls[i].status, "node " + helpers[i].node));
    }
  }
  return answers;
}

std::vector<absl::Status> HelperClient::CancelRepair(RepairId repair_id, uint32_t attempt,
                                                     const std::vector<HelperAddress>& helpers) {
  return EndParts(repair_id, attempt, helpers, /*keep=*/false);
}

std::vector<absl::Status> HelperClient::EndAttempt(RepairId repair_id, uint32_t attempt,
                                                   const std::vector<HelperAddress>& helpers) {
  return EndParts(repair_id, attempt, helpers, /*keep=*/true);
}

std::vector<absl::Status> HelperClient::EndParts(RepairId repair_id, uint32_t attempt,
                                                 const std::vector<HelperAddress>& helpers,
                                                 bool keep) {
  constexpr auto kTimeout = std::chrono::seconds(1);
  std::vector<Call<v1::CancelRepairRequest, v1::CancelRepairResponse>> calls(helpers.size());
  std::vector<Stub> stubs;
  grpc::CompletionQueue queue;
  for (size_t i = 0; i < helpers.size(); ++i) {
    calls[i].request.set_repair_id(repair_id);
    calls[i].request.set_attempt(attempt);
    calls[i].request.set_keep(keep);
    SetTimeout(&calls[i].context, kTimeout);
    stubs.push_back(StubFor(helpers[i]));
    calls[i].reader = stubs[i]->AsyncCancelRepair(&calls[i].context, calls[i].request, &queue);
    calls[i].reader->Finish(&calls[i].response, &calls[i].status, &calls[i]);
  }
  AwaitAll(&queue, calls.size());
  std::vector<absl::Status> answers;
  for (size_t i = 0; i < calls.size(); ++i) {
    answers.push_back(FromGrpc(calls[i].status, "node " + helpers[i].node));
  }
  return answers;
}

std::vector<absl::StatusOr<HelperGateway::FoundBlocks>> HelperClient::FindBlocks(
    const std::vector<BlockQuestion>& questions, Duration timeout) {
  std::vector<Call<v1::FindBlocksRequest, v1::FindBlocksResponse>> calls(questions.size());
  std::vector<Stub> stubs;
  grpc::CompletionQueue queue;
  for (size_t i = 0; i < questions.size(); ++i) {
    for (const std::string& id : questions[i].block_ids) calls[i].request.add_block_ids(id);
    calls[i].request.set_node_id(questions[i].helper.node);
    SetTimeout(&calls[i].context, timeout);
    stubs.push_back(StubFor(questions[i].helper));
    calls[i].reader = stubs[i]->AsyncFindBlocks(&calls[i].context, calls[i].request, &queue);
    calls[i].reader->Finish(&calls[i].response, &calls[i].status, &calls[i]);
  }
  AwaitAll(&queue, calls.size());
  std::vector<absl::StatusOr<FoundBlocks>> answers;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].status.ok()) {
      answers.emplace_back(FromGrpc(calls[i].status, "node " + questions[i].helper.node));
      continue;
    }
    FoundBlocks found;
    for (const auto& block : calls[i].response.blocks()) {
      // A helper that answers for more than it was asked gains nothing by it.
      if (found.size() == questions[i].block_ids.size()) break;
      const auto code = static_cast<absl::StatusCode>(block.status_code());
      if (code == absl::StatusCode::kOk) {
        const bool is_sha256 = IsSha256Hex(block.sha256());
        found.emplace_back(FoundBlock{block.bytes(), is_sha256 ? block.sha256() : ""});
      } else {
        found.emplace_back(absl::Status(code, block.status_message()));
      }
    }
    answers.emplace_back(std::move(found));
  }
  return answers;
}

absl::StatusOr<WholeBlock> HelperClient::CheckBlock(const HelperAddress& helper,
                                                    const std::string& block_id,
                                                    const std::stop_token& stop) {
  // 6 GB off a disk that gives 10 MB/s, as one that fails may.
  constexpr auto kTimeout = std::chrono::minutes(10);
  grpc::ClientContext context;
  SetTimeout(&context, kTimeout);
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  v1::CheckBlockRequest request;
  request.set_block_id(block_id);
  v1::CheckBlockResponse response;
  const grpc::Status status = StubFor(helper)->CheckBlock(&context, request, &response);
  if (!status.ok()) return FromGrpc(status, "node " + helper.node);
  return WholeBlock{response.bytes(), response.sha256(), response.has_checksums()};
}

absl::StatusOr<BlockFileGateway::Files> HelperClient::ListBlockFiles(const HelperAddress& helper,
                                                                     const std::string& after) {
  // The helper answers within five seconds.
  constexpr auto kTimeout = std::chrono::seconds(8);
  grpc::ClientContext context;
  SetTimeout(&context, kTimeout);
  v1::ListBlockFilesRequest request;
  request.set_node_id(helper.node);
  request.set_after(after);
  v1::ListBlockFilesResponse response;
  const grpc::Status status = StubFor(helper)->ListBlockFiles(&context, request, &response);
  if (!status.ok()) return FromGrpc(status, "node " + helper.node);
  Files listed;
  for (const v1::BlockFile& file : response.files()) {
    listed.files.push_back(BlockFileFromProto(file));
    // An id that is none cannot be looked for, and a list that goes back would not end.
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(file.block_id()));
    if (file.block_id() <= after) {
      return absl::InternalError("node " + helper.node + " lists its blocks in another order");
    }
  }
  listed.more = response.more();
  return listed;
}

absl::StatusOr<std::vector<absl::Status>> HelperClient::RemoveBlockFiles(
    const HelperAddress& helper, const std::vector<BlockFile>& files) {
  constexpr auto kTimeout = std::chrono::seconds(5);  // the helper begins no removal after one
  grpc::ClientContext context;
  SetTimeout(&context, kTimeout);
  v1::RemoveBlockFilesRequest request;
  request.set_node_id(helper.node);
  for (const BlockFile& file : files) *request.add_files() = BlockFileToProto(file);
  v1::RemoveBlockFilesResponse response;
  const grpc::Status status = StubFor(helper)->RemoveBlockFiles(&context, request, &response);
  if (!status.ok()) return FromGrpc(status, "node " + helper.node);
  std::vector<absl::Status> removals;
  for (const auto& removal : response.removals()) {
    removals.emplace_back(static_cast<absl::StatusCode>(removal.status_code()),
                          removal.status_message());
  }
  return removals;
}

size_t HelperClient::connections() {
  MutexLock lock(&mutex_);
  return stubs_.size();
}

void HelperClient::ForgetConnection(const std::string& control_address) {
  {
    MutexLock lock(&mutex_);
    std::erase_if(stubs_, [&](const auto& entry) { return entry.first.first == control_address; });
  }
  // With TLS nobody says here which node it is: the first call connects.
  if (!tls_) StubFor({.node = "", .control_address = control_address});
}

}  // namespace ecpipe
