// SPDX-License-Identifier: Apache-2.0
#include "rpc/audit_log.h"

#include <google/protobuf/message.h>

#include <set>
#include <utility>

#include "base/process/log_line.h"
#include "base/status.h"
#include "model/plan/repair_plan.h"
#include "rpc/access.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxTargetBytes = 512;

// "/ecpipe.v1.CoordinatorService/BeginRepair" is "BeginRepair".
std::string ShortName(const std::string& call) { return call.substr(call.rfind('/') + 1); }

void Add(const std::string& word, std::string* text) {
  if (word.empty() || text->size() + word.size() > kMaxTargetBytes) return;
  *text += (text->empty() ? "" : " ") + word;
}

// The ids in a request, wherever they are in it: of blocks, nodes, repairs and recoveries.
void AddIds(const Message& message, std::string* text) {
  static const auto* const names =
      new std::set<std::string>{"block_id", "block_ids", "node_id", "hosts", "stripe_id", "path"};
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count && text->size() < kMaxTargetBytes; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        AddIds(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                    : reflection.GetMessage(message, field),
               text);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
                 names->contains(field->name())) {
        Add(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                 : reflection.GetString(message, field),
            text);
      } else if (field->name() == "repair_id" && !field->is_repeated()) {
        Add(RepairIdText(reflection.GetUInt64(message, field)), text);
      } else if (field->name() == "recovery_id" && !field->is_repeated()) {
        Add("recovery " + std::to_string(reflection.GetUInt64(message, field)), text);
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<AuditLog>> AuditLog::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<AuditFile>> file = AuditFile::Open(path);
  if (!file.ok()) return Annotate(file.status(), "audit");
  return std::shared_ptr<AuditLog>(new AuditLog(*std::move(file)));
}

void AuditLog::Write(const std::string& caller, const std::string& from, const std::string& call,
                     const std::string& target, const absl::Status& result) {
  std::string line = LogLine("", "",
                             {{"caller", caller},
                              {"from", from},
                              {"call", ShortName(call)},
                              {"target", target},
                              {"result", result.ok() ? "OK" : StatusText(result)}});
  {
    MutexLock lock(&mutex_);
    const TimePoint now = Clock::System().Now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      lines_ = 0;
    }
    if (++lines_ > kMaxLinesASecond) line.clear();
  }
  line.empty() ? file_->LeaveOut() : file_->Append(std::move(line));
}

// One call.
class AuditLog::Interceptor : public grpc::experimental::Interceptor {
 public:
  Interceptor(std::shared_ptr<AuditLog> audit, grpc::experimental::ServerRpcInfo* call)
      : audit_(std::move(audit)), call_(call) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE)) Take(methods);
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS)) Write(methods);
    methods->Proceed();
  }

 private:
  // The request of a call that has one; a stream's messages are many.
  void Take(grpc::experimental::InterceptorBatchMethods* methods) {
    if (call_->type() != grpc::experimental::ServerRpcInfo::Type::UNARY) return;
    const auto* const lite =
        static_cast<const google::protobuf::MessageLite*>(methods->GetRecvMessage());
    const auto* const message = dynamic_cast<const Message*>(lite);
    if (message != nullptr) AddIds(*message, &target_);
  }

  void Write(grpc::experimental::InterceptorBatchMethods* methods) {
    const grpc::Status sent = methods->GetSendStatus();
    const absl::Status result = StatusFromWire(sent.error_code(), sent.error_message());
    if (result.ok() && !IsAudited(call_->method())) return;
    audit_->Write(CallerText(CallerOf(call_->server_context())), call_->server_context()->peer(),
                  call_->method(), target_, result);
  }

  const std::shared_ptr<AuditLog> audit_;  // shared with other calls
  grpc::experimental::ServerRpcInfo* const call_;
  std::string target_;
};

class AuditLog::Factory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(std::shared_ptr<AuditLog> audit) : audit_(std::move(audit)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    return new Interceptor(audit_, call);  // gRPC owns it
  }

 private:
  const std::shared_ptr<AuditLog> audit_;  // shared with the server
};

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> AuditLog::Watch(
    std::shared_ptr<AuditLog> audit) {
  return std::make_unique<Factory>(std::move(audit));
}

}  // namespace ecpipe
