// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/helper_status_client.h"

#include <chrono>
#include <memory>

#include "base/status.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// A helper that is slow to answer must not hold up the status of the others for long.
constexpr auto kHelperTimeout = std::chrono::seconds(1);

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

// Each call gets a queue of its own, and the slowest decides.
void AskHelpers(const RpcSecurity& security, std::vector<NodeStatus>* nodes) {
  struct Question {
    std::unique_ptr<v1::HelperService::Stub> stub;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    v1::HelperStatus response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::HelperStatus>> reader;
  };
  std::vector<std::unique_ptr<Question>> questions;
  for (const NodeStatus& node : *nodes) {
    auto question = std::make_unique<Question>();
    if (node.state != "dead") {
      question->stub = v1::HelperService::NewStub(
          MakeChannel(node.control_address, security, Role::kHelper, node.node));
      SetTimeout(&question->context, kHelperTimeout);
      question->reader = question->stub->AsyncGetHelperStatus(
          &question->context, v1::GetHelperStatusRequest(), &question->queue);
      question->reader->Finish(&question->response, &question->status, nullptr);
    }
    questions.push_back(std::move(question));
  }
  for (size_t i = 0; i < questions.size(); ++i) {
    Question& question = *questions[i];
    if (question.reader == nullptr) continue;
    void* tag = nullptr;
    bool ok = false;
    question.queue.Next(&tag, &ok);
    (*nodes)[i].answers = ok && question.status.ok();
    if (!(*nodes)[i].answers) {
      (*nodes)[i].answer_error = StatusText(FromGrpc(question.status, (*nodes)[i].control_address));
    }
    if ((*nodes)[i].answers) (*nodes)[i].counters = CountersOf(question.response);
    question.queue.Shutdown();
  }
}

}  // namespace ecpipe
