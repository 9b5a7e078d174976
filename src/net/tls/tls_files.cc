// SPDX-License-Identifier: Apache-2.0
#include "net/tls/tls_files.h"

#include <sys/stat.h>

#include <cstdint>

#include "base/secret_file.h"
#include "base/status.h"

namespace ecpipe {

absl::Status CheckComplete(const TlsFiles& files) {
  const bool none = files.ca.empty() && files.certificate.empty() && files.key.empty();
  const bool all = !files.ca.empty() && !files.certificate.empty() && !files.key.empty();
  if (all || (none && files.crl.empty())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "TLS needs three files: the CA's certificate (ca), this process's certificate (certificate) "
      "and its key (key); give all three, or none to run without TLS");
}

std::string StampOf(const TlsFiles& files) {
  std::string stamp;
  for (const std::string& path : {files.ca, files.certificate, files.key, files.crl}) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) info = {};
    for (const int64_t part : {static_cast<int64_t>(info.st_ino), int64_t{info.st_size},
                               int64_t{info.st_mtim.tv_sec}, int64_t{info.st_mtim.tv_nsec},
                               int64_t{info.st_ctim.tv_sec}, int64_t{info.st_ctim.tv_nsec}}) {
      stamp += std::to_string(part) + " ";
    }
  }
  return stamp;
}

absl::Status CheckKeyMode(const std::string& path) {
  return Annotate(CheckSecretMode(path), "TLS: cannot use the key file " + path);
}

}  // namespace ecpipe
