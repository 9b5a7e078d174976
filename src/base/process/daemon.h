// SPDX-License-Identifier: Apache-2.0
// What the daemons' main() functions and configurations share: signals, the ready file,
// --check-config.
#pragma once

#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/process/config.h"
#include "base/process/log.h"

namespace ecpipe {

// Blocks SIGTERM, SIGINT and SIGHUP for this thread and all that it starts, and ignores SIGPIPE.
// Call it first in main(), before any thread exists.
void BlockDaemonSignals();

// Raises the soft limit of open files to the hard limit. The usual 1024 are fewer than the
// connections that strangers may hold open at a data port, and a repair must not fail for lack of
// a descriptor.
void RaiseFileLimit();

// Makes the allocator return freed slice buffers to the system. By default it keeps them, in one
// heap for each thread: a helper had over 60 MiB after a few hundred repairs and still grew; with
// this setting it stays at 30 MiB. Call it before any thread exists.
void ReturnFreedBuffers();

// Turns off the search for lock cycles in Abseil's mutexes, which gRPC uses. Debian's build does it
// at every lock, under a lock of its own, and aborts where it finds one; a release has it off.
void SkipLockOrderChecks();

// The section [log]. A name that is no level or no format is kept for Config::Finish().
LogSettings ReadLog(Config& config);

// Logs by which values the daemon runs, in one line.
void LogConfig(const ConfigValues& values);

// How a daemon's main() answers --check-config: "PATH is valid" on standard output, or all that is
// wrong on standard error, a line each. Returns the exit code: 0, or 2.
int ReportCheckedConfig(const std::string& program, const std::string& path,
                        const absl::Status& checked);
template <typename Server, typename Load>
int CheckConfig(const std::string& program, const Load& load, const std::string& path) {
  return ReportCheckedConfig(program, path, load(path, Server::Check).status());
}

// What mends the reason why a program does not serve.
enum class Mend {
  kEdit,  // of its arguments or its configuration, and nothing else
  kTime,  // a disk is mounted, a user becomes known, a file comes, a port is given up
};
// Of an error of a server that starts, with a configuration that was found to be right: by then
// only INVALID_ARGUMENT is about a value.
Mend MendOfStart(const absl::Status& status);

// Says on standard error why the program does not serve. Returns the exit code: 2 for what only an
// edit mends, after which systemd does not start it again; otherwise 1.
int Refuse(const std::string& program, const absl::Status& status, Mend mend = Mend::kEdit);

// Waits for the next of the blocked signals and returns it. Main thread only.
int WaitForDaemonSignal();

// Writes {"name": "value", ...} to `path` atomically, once the daemon serves: scripts that start it
// wait for this file and read from it which ports it was given.
absl::Status WriteReadyFile(const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace ecpipe
