// SPDX-License-Identifier: Apache-2.0
// Fallible functions return absl::Status or absl::StatusOr. These helpers add context on the way
// up, so that the caller reads "forward slice 12 to node-7: Connection reset by peer".
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

// Returns `status` with "context: " before its message; OK stays OK. Code and payloads
// are kept.
[[nodiscard]] absl::Status Annotate(const absl::Status& status, const std::string& context);

// Builds a status from an errno value: "<what>: <strerror>". The code follows the errno
// (ENOENT → NOT_FOUND, EACCES → PERMISSION_DENIED, ENOSPC → RESOURCE_EXHAUSTED,
// ECONNREFUSED/ECONNRESET/EPIPE → UNAVAILABLE, anything else → INTERNAL).
[[nodiscard]] absl::Status ErrnoStatus(int errno_value, const std::string& what);

// Marks what this process itself lacks: descriptors, memory, threads, an answer of its resolver.
// Whoever it was about to talk to is not at fault. ErrnoStatus marks EMFILE, ENFILE, ENOMEM and
// ENOBUFS. The mark does not leave the process.
[[nodiscard]] absl::Status OwnShortage(absl::Status status);
bool IsOwnShortage(const absl::Status& status);
// As Annotate, with who the other end is; nothing is added to what this process itself lacks.
[[nodiscard]] absl::Status AnnotatePeer(const absl::Status& status, const std::string& peer);

// "NOT_FOUND: no such block", for logs and terminals.
[[nodiscard]] std::string StatusText(const absl::Status& status);

}  // namespace ecpipe

#define ECPIPE_CONCAT_INNER_(a, b) a##b
#define ECPIPE_CONCAT_(a, b) ECPIPE_CONCAT_INNER_(a, b)

#define ECPIPE_RETURN_IF_ERROR(expression)                    \
  do {                                                        \
    if (absl::Status ecpipe_status = (expression); !ecpipe_status.ok()) return ecpipe_status; \
  } while (false)

#define ECPIPE_ASSIGN_OR_RETURN(declaration, expression) \
  ECPIPE_ASSIGN_OR_RETURN_IMPL_(ECPIPE_CONCAT_(ecpipe_result_, __LINE__), declaration, expression)
#define ECPIPE_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) return std::move(result).status();                 \
  declaration = *std::move(result)
