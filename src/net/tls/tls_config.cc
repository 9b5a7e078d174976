// SPDX-License-Identifier: Apache-2.0
// Apart from tls_files.cc, so that libecpipe needs no TOML parser.
#include "net/tls/tls_files.h"

namespace ecpipe {

TlsFiles ReadTlsFiles(Config& config) {
  TlsFiles files{config.String("tls.ca", ""), config.String("tls.certificate", ""),
                 config.String("tls.key", ""), config.String("tls.crl", "")};
  if (absl::Status complete = CheckComplete(files); !complete.ok()) {
    config.Reject("tls", std::string(complete.message()));
  }
  return files;
}

}  // namespace ecpipe
