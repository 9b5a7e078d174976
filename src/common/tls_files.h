// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/config.h"

namespace ecpipe {

// Where a process's TLS identity lies, in PEM. deploy/make-certs.sh makes such files. All three are
// given, or none: then there is no TLS.
struct TlsFiles {
  std::string ca;           // whose certificates are believed; nobody else's are
  std::string certificate;  // its own, with the intermediate ones behind it
  std::string key;          // may be the same file as `certificate`

  bool enabled() const { return !ca.empty(); }
};

// INVALID_ARGUMENT when some are given and others are not.
absl::Status CheckComplete(const TlsFiles& files);

// The section [tls] of a daemon's configuration.
TlsFiles ReadTlsFiles(Config& config);

}  // namespace ecpipe
