// SPDX-License-Identifier: Apache-2.0
// What the daemons' main() functions and configurations share: signals, the ready file,
// --check-config.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/config.h"

namespace ecpipe {

// Blocks SIGTERM, SIGINT and SIGHUP for this thread and all that it starts, and ignores SIGPIPE.
// Call it first in main(), before any thread exists.
void BlockDaemonSignals();

// Allows this process as many open files as it may have at all. The usual 1024 are fewer than the
// connections that a data port holds for strangers, and a repair must not fail for want of one.
void RaiseFileLimit();

// Has the allocator return buffers of slices to the system when they are freed. As it is, it comes
// to keep such ones, in as many heaps as it has for threads: a helper after a few hundred repairs
// had 60 MiB and more then, and still grew, where it stays at 30. Call it before any thread exists.
void ReturnFreedBuffers();

// The key log.level. A name that is not a level is kept for Config::Finish().
std::string ReadLogLevel(Config& config);

// How a daemon's main() answers --check-config: "PATH is valid" on standard output, or why not on
// standard error. Returns the exit code: 0, or 2.
int ReportCheckedConfig(const std::string& program, const std::string& path,
                        const absl::Status& checked);

// Waits for the next of the blocked signals and returns it. Main thread only.
int WaitForDaemonSignal();

// Writes {"name": "value", ...} to `path` atomically, once the daemon serves: scripts that start it
// wait for this file and read from it which ports it was given.
absl::Status WriteReadyFile(const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace ecpipe
