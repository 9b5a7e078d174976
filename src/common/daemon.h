// SPDX-License-Identifier: Apache-2.0
// What the daemons' main() functions share: signals and the ready file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

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

// Waits for the next of the blocked signals and returns it. Main thread only.
int WaitForDaemonSignal();

// Writes {"name": "value", ...} to `path` atomically, once the daemon serves: scripts that start it
// wait for this file and read from it which ports it was given.
absl::Status WriteReadyFile(const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace ecpipe
