// SPDX-License-Identifier: Apache-2.0
#include "base/secret_file.h"

#include <sys/stat.h>

#include <cstdint>
#include <span>

#include "base/file_io.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr uint64_t kMostBytes = 4096;

absl::StatusOr<std::string> Read(const std::string& path) {
  ECPIPE_RETURN_IF_ERROR(CheckSecretMode(path));
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd file, OpenForReading(path));
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(file.get()));
  if (bytes > kMostBytes) {
    return absl::InvalidArgumentError("it has more than " + std::to_string(kMostBytes) + " bytes");
  }
  std::string secret(bytes, '\0');
  ECPIPE_RETURN_IF_ERROR(
      ReadFully(file.get(), 0, std::span(reinterpret_cast<uint8_t*>(secret.data()), bytes)));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) return absl::InvalidArgumentError("it is empty");
  return secret;
}

}  // namespace

absl::Status CheckSecretMode(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return absl::OkStatus();
  if ((info.st_mode & (S_IRWXO | S_IWGRP)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "others than its owner and group may open it, or its group may write it; chmod 640 or 600");
}

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  absl::StatusOr<std::string> secret = Read(path);
  if (!secret.ok()) return Annotate(secret.status(), "cannot use the secret in " + path);
  return secret;
}

absl::Status CheckSecret(const std::string& path) {
  return path.empty() ? absl::OkStatus() : ReadSecret(path).status();
}

}  // namespace ecpipe
