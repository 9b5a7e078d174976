// SPDX-License-Identifier: Apache-2.0
#include "common/tls_files.h"

namespace ecpipe {

absl::Status CheckComplete(const TlsFiles& files) {
  const bool none = files.ca.empty() && files.certificate.empty() && files.key.empty();
  const bool all = !files.ca.empty() && !files.certificate.empty() && !files.key.empty();
  if (none || all) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "TLS needs all three of the CA's certificate, the own certificate and its key");
}

}  // namespace ecpipe
