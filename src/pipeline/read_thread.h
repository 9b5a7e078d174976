// SPDX-License-Identifier: Apache-2.0
// The thread that waits for disks, one for all blocks that a part reads: a part of many lanes reads
// as many times, all from the same disks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "base/thread.h"

namespace ecpipe {

class ReadThread {
 public:
  // What there is to read. Its methods are called by the thread, but for those of its owner.
  class Job {
   public:
    virtual ~Job() = default;
    // The slice that could be read next; nothing: there is none at the moment. Does not wait.
    virtual std::optional<uint32_t> Next() = 0;
    // Reads it. May hang.
    virtual void Read() = 0;
  };

  ReadThread();
  // Waits only a short time for a running read: when a disk hangs the thread ends with the disk's
  // answer, and its job lives until then.
  ~ReadThread();
  ReadThread(const ReadThread&) = delete;
  ReadThread& operator=(const ReadThread&) = delete;

  // Starts the thread with the first one. The lowest slice of all jobs is read first.
  // RESOURCE_EXHAUSTED: the system has no thread; the job was not added.
  absl::Status Add(std::shared_ptr<Job> job);
  // A read of it that is running goes on; no further one begins.
  void Remove(const Job* job);
  // Some job has more to read.
  void Wake();

 private:
  struct State;

  const std::shared_ptr<State> state_;  // shared with the thread
  Thread thread_;
};

}  // namespace ecpipe
