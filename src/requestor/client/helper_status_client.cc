// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/helper_status_client.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/status.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// A helper that is slow to answer must not hold up the status of the others for long. On a machine
// so busy that all are slow, each is waited for as long as that takes: a second was less than
// connecting to 12 helpers took on two cores with 200 other programs.
constexpr Duration kStragglerPatience = std::chrono::seconds(1);
constexpr int kAsLongAsHalf = 3;  // times the time in which half of them answered
constexpr Duration kLongestWait = std::chrono::seconds(6);

struct Question {
  explicit Question(NodeStatus* the_node) : node(the_node) {}

  NodeStatus* const node;
  std::unique_ptr<v1::HelperService::Stub> stub;
  grpc::ClientContext context;
  v1::HelperStatus response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::HelperStatus>> reader;
  bool given_up = false;
};

// Each call has a deadline, so this ends.
void AwaitAnswers(grpc::CompletionQueue* queue, std::vector<std::unique_ptr<Question>>* questions) {
  const Clock& clock = Clock::System();
  const TimePoint begun = clock.Now();
  TimePoint until = begun + kLongestWait;
  std::set<void*> open;
  for (const auto& question : *questions) open.insert(question.get());
  const auto next = [&](TimePoint by) {
    void* tag = nullptr;
    bool ok = false;
    const auto event =
        queue->AsyncNext(&tag, &ok, std::chrono::system_clock::now() + (by - clock.Now()));
    return event == grpc::CompletionQueue::GOT_EVENT ? static_cast<Question*>(tag) : nullptr;
  };
  size_t answers = 0;
  while (!open.empty()) {
    Question* const question = next(until);
    if (question == nullptr) break;
    open.erase(question);
    if (!question->status.ok() || ++answers != (questions->size() + 1) / 2) continue;
    until = begun + std::clamp<Duration>(kAsLongAsHalf * (clock.Now() - begun), kStragglerPatience,
                                         kLongestWait);
  }
  for (const auto& question : *questions) {
    if (!open.contains(question.get())) continue;
    question->given_up = true;
    question->context.TryCancel();
  }
  void* tag = nullptr;
  bool ok = false;
  while (!open.empty() && queue->Next(&tag, &ok)) open.erase(tag);
  queue->Shutdown();
}

HelperCounters CountersOf(const v1::HelperStatus& proto) {
  return {.active_sessions = proto.active_sessions(),
          .buffer_bytes = proto.buffer_bytes(),
          .data_bytes_sent = proto.data_bytes_sent(),
          .data_bytes_received = proto.data_bytes_received(),
          .block_bytes_read = proto.block_bytes_read(),
          .parts_done = proto.parts_done(),
          .parts_failed = proto.parts_failed(),
          .cpu_seconds = proto.cpu_seconds(),
          .peak_resident_bytes = proto.peak_resident_bytes(),
          .version = proto.version()};
}

}  // namespace

void AskHelpers(const RpcSecurity& security, std::vector<NodeStatus>* nodes) {
  std::vector<std::unique_ptr<Question>> questions;
  grpc::CompletionQueue queue;
  for (NodeStatus& node : *nodes) {
    if (node.state == "dead") continue;
    Question& question = *questions.emplace_back(std::make_unique<Question>(&node));
    question.stub = v1::HelperService::NewStub(
        MakeChannel(node.control_address, security, Role::kHelper, node.node));
    SetTimeout(&question.context, kLongestWait);
    question.reader = question.stub->AsyncGetHelperStatus(&question.context,
                                                          v1::GetHelperStatusRequest(), &queue);
    question.reader->Finish(&question.response, &question.status, &question);
  }
  AwaitAnswers(&queue, &questions);
  for (const auto& question : questions) {
    NodeStatus& node = *question->node;
    node.answers = question->status.ok();
    if (node.answers) {
      node.counters = CountersOf(question->response);
    } else if (question->given_up) {
      node.answer_error = node.control_address + ": it has not answered in time";
    } else {
      node.answer_error = StatusText(FromGrpc(question->status, node.control_address));
    }
  }
}

}  // namespace ecpipe
