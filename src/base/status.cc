// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/cord.h"

namespace ecpipe {

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), context + ": " + std::string(status.message()));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    annotated.SetPayload(type, payload);
  });
  return annotated;
}

namespace {

absl::StatusCode CodeForErrno(int errno_value) {
  switch (errno_value) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case ELOOP:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return absl::StatusCode::kResourceExhausted;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRINUSE:
      return absl::StatusCode::kUnavailable;
    case ETIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    case EINVAL:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

constexpr char kOwnShortage[] = "ecpipe/own-shortage";

// Empty: it is none of this process, or of its host.
std::string RemedyOfShortage(int errno_value) {
  switch (errno_value) {
    case EMFILE:
      return "this process is at its own limit of open files: raise that (ulimit -n, LimitNOFILE=)";
    case ENFILE:
      return "this host is at its limit of open files: raise that (sysctl fs.file-max)";
    case ENOMEM:
    case ENOBUFS:
      return "this host, or the control group of this process, is out of memory";
    default:
      return "";
  }
}

}  // namespace

absl::Status ErrnoStatus(int errno_value, const std::string& what) {
  // std::generic_category().message is thread-safe where strerror is not.
  const std::string text = what + ": " + std::generic_category().message(errno_value);
  const std::string remedy = RemedyOfShortage(errno_value);
  if (remedy.empty()) return absl::Status(CodeForErrno(errno_value), text);
  return OwnShortage(absl::Status(CodeForErrno(errno_value), text + "; " + remedy));
}

absl::Status OwnShortage(absl::Status status) {
  if (!status.ok()) status.SetPayload(kOwnShortage, {});
  return status;
}

bool IsOwnShortage(const absl::Status& status) {
  return status.GetPayload(kOwnShortage).has_value();
}

absl::Status AnnotatePeer(const absl::Status& status, const std::string& peer) {
  return IsOwnShortage(status) ? status : Annotate(status, peer);
}

std::string StatusText(const absl::Status& status) {
  if (status.ok()) return "OK";
  return absl::StatusCodeToString(status.code()) + ": " + std::string(status.message());
}

}  // namespace ecpipe
