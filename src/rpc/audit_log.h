// SPDX-License-Identifier: Apache-2.0
// Who called what, and what came of it, in a file of its own.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "rpc/audit_file.h"

namespace ecpipe {

// A line a call:
//   2026-01-02T03:04:05.678Z caller="ann (operator)" from=10.0.0.5:4711 call=BeginRecovery
//   target=node-7 result=OK
// What the file does not take in time is left out and counted (audit_file.h). Thread-safe.
class AuditLog {
 public:
  // Strangers can be refused as often as they like: of what is beyond this only the number is kept.
  static constexpr int kMaxLinesASecond = 1000;

  // As AuditFile::Open.
  static absl::StatusOr<std::shared_ptr<AuditLog>> Open(const std::string& path);

  // Waits for no disk. `from` and `target` may be empty.
  void Write(const std::string& caller, const std::string& from, const std::string& call,
             const std::string& target, const absl::Status& result);

  // Lines that were left out.
  uint64_t left_out() const { return file_->left_out(); }
  // As of AuditFile.
  uint64_t reopen_failures() const { return file_->reopen_failures(); }

  // Makes a server write a line for each call that a handler has answered. Those that are not
  // IsAudited() (access.h) are written only when they fail.
  static std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Watch(
      std::shared_ptr<AuditLog> audit);

 private:
  class Interceptor;
  class Factory;

  explicit AuditLog(std::unique_ptr<AuditFile> file) : file_(std::move(file)) {}

  const std::unique_ptr<AuditFile> file_;
  Mutex mutex_;
  TimePoint second_ ABSL_GUARDED_BY(mutex_){};  // when the current one began
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;       // in it
};

}  // namespace ecpipe
