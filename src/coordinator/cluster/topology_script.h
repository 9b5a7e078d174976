// SPDX-License-Identifier: Apache-2.0
// Racks from an operator's own script, called the way Hadoop calls net.topology.script.file.name:
// hosts as arguments, one rack for each on standard output.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace ecpipe {

// Asks the script, one process at a time, for all hosts together that wait for an answer. Where
// that fails, one of them may spoil it for the others, or the script takes only one: from then on
// each is asked for alone, again and again until the script answers. Thread-safe.
class TopologyScript {
 public:
  // As many as Hadoop gives its scripts, unless it is told otherwise.
  static constexpr size_t kHostsAtOnce = 100;
  static constexpr Duration kLongestPause = std::chrono::minutes(1);

  struct Options {
    // How long a caller waits. Shorter than a helper waits for the answer to its registration: if
    // the script hangs, only the rack is late and not the node.
    Duration timeout = std::chrono::milliseconds(1500);
    // How long a process may run: for many hosts it may have to ask a name server for each.
    Duration run_timeout = std::chrono::seconds(10);
    // Before the script is asked again for a host after a failure. Doubles with each.
    Duration pause = std::chrono::milliseconds(250);
    // Whose racks are kept, and that may wait for theirs: twice as many as nodes can be registered.
    size_t max_hosts = 20'000;
  };
  // `path` is run without a shell.
  TopologyScript(std::string path, const Options& options);
  explicit TopologyScript(std::string path) : TopologyScript(std::move(path), Options()) {}
  ~TopologyScript();  // kills the script, if it runs

  // The rack of a host name or address, such as /hall-1/rack-7. Answers are kept. After an error
  // the script is asked again without a caller, unless INVALID_ARGUMENT says that the host looks
  // like an option. UNAVAILABLE: it cannot be run, or ends with an error. DEADLINE_EXCEEDED: there
  // is no answer within `timeout`; processes that run for too long are killed, with their children.
  // INVALID_ARGUMENT: it prints something else than one rack. RESOURCE_EXHAUSTED: too many hosts
  // wait already.
  absl::StatusOr<std::string> RackOf(const std::string& host);
  // The same if it is known; empty: it is not. Waits for nothing.
  std::string Known(const std::string& host);

 private:
  // A host whose rack is not known.
  struct Question {
    bool urgent = true;       // somebody has asked since it was last asked for alone
    bool alone = false;       // asking for it has failed
    uint64_t asked_last = 0;  // the number of the process
    absl::Status failure;
  };

  void Run();
  // Waits until there are hosts to ask for; none: it stops.
  std::vector<std::string> Next();
  std::vector<std::string> Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<std::string>> Ask(const std::vector<std::string>& hosts);
  void Take(const std::vector<std::string>& hosts,
            const absl::StatusOr<std::vector<std::string>>& racks);

  const std::string path_;
  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string> racks_ ABSL_GUARDED_BY(mutex_);   // by host
  std::map<std::string, Question> questions_ ABSL_GUARDED_BY(mutex_);  // too
  uint64_t processes_ ABSL_GUARDED_BY(mutex_) = 0;
  pid_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: none
  // Those that nobody has asked anew are not asked for before.
  TimePoint again_at_ ABSL_GUARDED_BY(mutex_){};
  Duration pause_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

// The racks in the whole output of a script, one for each of so many hosts, apart by blanks.
// INVALID_ARGUMENT: the output is something else, or no printable UTF-8.
absl::StatusOr<std::vector<std::string>> RacksOfOutput(const std::string& text, size_t hosts);

}  // namespace ecpipe
