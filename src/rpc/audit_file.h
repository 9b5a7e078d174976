// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/thread.h"

namespace ecpipe {

// The audit log's file. A thread of its own appends the lines, so that a disk that hangs, or a pipe
// that nobody reads, holds up no call. The file only grows; where it
// is renamed or removed, a new one is begun within a second, so that logrotate needs no signal. If
// that cannot be opened, the old one goes on. No line is divided between two files. Thread-safe.
class AuditFile {
 public:
  struct Options {
    // A system that calls ten thousand times a second may stand still for a second.
    size_t most_queued_bytes = 4 << 20;
    std::chrono::milliseconds wait_for_open{10'000};
    std::chrono::milliseconds wait_at_end{2000};  // for the lines that are queued
  };

  // UNAVAILABLE: the file cannot be opened now; its disk may be mounted later. DEADLINE_EXCEEDED:
  // the disk does not answer. A pipe that has no reader yet is none of these.
  static absl::StatusOr<std::unique_ptr<AuditFile>> Open(const std::string& path, Options options);
  static absl::StatusOr<std::unique_ptr<AuditFile>> Open(const std::string& path) {
    return Open(path, Options());
  }
  // Logs how many lines are lost because the file did not take them in time.
  ~AuditFile();

  // Queues a line, with its end. It is left out when the queue is full.
  void Append(std::string line);
  // Counts a line that the caller leaves out. The file is told of all of these in a line such as
  // "2026-01-02T03:04:05.678Z left_out=17", at most once a second, when all before is written.
  void LeaveOut();

  uint64_t left_out() const;
  // How often a file that was renamed or removed had no new one that could be opened; each second
  // counts.
  uint64_t reopen_failures() const;

 private:
  class Writer;
  AuditFile(std::shared_ptr<Writer> writer, Thread thread)
      : writer_(std::move(writer)), thread_(std::move(thread)) {}

  const std::shared_ptr<Writer> writer_;  // shared with the thread, which may outlive us
  Thread thread_;
};

}  // namespace ecpipe
