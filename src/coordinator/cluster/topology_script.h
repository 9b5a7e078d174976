// SPDX-License-Identifier: Apache-2.0
// Racks from an operator's own script, called the way Hadoop calls net.topology.script.file.name:
// hosts as arguments, one rack for each on standard output.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace ecpipe {

// Thread-safe.
class TopologyScript {
 public:
  struct Options {
    // Shorter than a helper waits for the answer to its registration: if the script hangs, only the
    // rack is lost and not the node.
    Duration timeout = std::chrono::milliseconds(1500);
    size_t max_hosts = 20'000;  // that are kept: twice as many as nodes can be registered
  };
  // `path` is run without a shell.
  TopologyScript(std::string path, const Options& options)
      : path_(std::move(path)), options_(options) {}
  explicit TopologyScript(std::string path) : TopologyScript(std::move(path), Options()) {}

  // The rack of a host name or address, such as /hall-1/rack-7. Answers are kept, and errors are
  // not. Blocks while the script runs, at most `timeout`; then the script and its children are
  // killed. UNAVAILABLE: it cannot be run, or ends with an error. DEADLINE_EXCEEDED: the timeout.
  // INVALID_ARGUMENT: it prints something else than one rack, or the host looks like an option.
  absl::StatusOr<std::string> RackOf(const std::string& host);

 private:
  const std::string path_;
  const Options options_;
  Mutex mutex_;
  std::map<std::string, std::string> racks_ ABSL_GUARDED_BY(mutex_);  // by host
};

// The rack in the whole output of a script, without trailing blanks. INVALID_ARGUMENT: the output
// is something else than one rack in printable UTF-8.
absl::StatusOr<std::string> RackOfOutput(std::string text);

}  // namespace ecpipe
