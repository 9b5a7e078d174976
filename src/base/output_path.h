// SPDX-License-Identifier: Apache-2.0
// What a path that a user names for an output leads to: a file, which can be replaced, or something
// that can only be written to, such as /dev/null, a FIFO or /dev/stdout.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace ecpipe {

// With a slash at its end; "./" for a name alone.
std::string DirectoryOf(const std::string& path);

struct OutputTarget {
  // Where the links lead: the file that is to be replaced or made, or the device or FIFO.
  std::string path;
  bool is_stream = false;  // no file: it is written to, in order
  // Of this process, where the path means one, such as /dev/stdout; -1: none.
  int own_descriptor = -1;
};

enum class OutputLinks {
  kFollow,        // what a user names
  kOnlyToStream,  // what a daemon keeps: others' links, and those to files, are replaced
};

// Follows links as open() does, also one that leads to no file yet. INVALID_ARGUMENT: it is a
// directory or a socket. PERMISSION_DENIED: links in a circle; a stream that may not be written to;
// or another user's link in a directory that all may write to (proc(5), protected_symlinks).
absl::StatusOr<OutputTarget> FollowOutput(const std::string& path, OutputLinks links);

// Whether who asked for the output no longer wants it; asked when a signal has come.
using StoppedFn = std::function<bool()>;

// Opens a stream for writing. A FIFO without a reader is waited for, as by `cat >fifo`. CANCELLED:
// `stopped` said so (null: never).
absl::StatusOr<UniqueFd> OpenStream(const OutputTarget& target, const StoppedFn& stopped);

// Appends to it. A reader that has left is INTERNAL, and no signal. CANCELLED as above; a part may
// have been written after any error.
absl::Status WriteStream(int fd, std::span<const uint8_t> bytes, const StoppedFn& stopped);

}  // namespace ecpipe
