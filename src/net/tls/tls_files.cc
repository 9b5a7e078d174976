// SPDX-License-Identifier: Apache-2.0
#include "net/tls/tls_files.h"

namespace ecpipe {

absl::Status CheckComplete(const TlsFiles& files) {
  const bool none = files.ca.empty() && files.certificate.empty() && files.key.empty();
  const bool all = !files.ca.empty() && !files.certificate.empty() && !files.key.empty();
  if (all || (none && files.crl.empty())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "TLS needs three files: the CA's certificate (ca), this process's certificate (certificate) "
      "and its key (key); give all three, or none to run without TLS");
}

}  // namespace ecpipe
