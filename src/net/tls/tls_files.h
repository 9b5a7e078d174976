// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/process/config.h"

namespace ecpipe {

// The PEM files that make up a process's TLS identity. deploy/make-certs.sh makes such files.
// Either all three are set, or none, which means no TLS.
struct TlsFiles {
  std::string ca;           // the CA: peers must show a certificate that it has signed
  std::string certificate;  // this process's certificate, then any intermediate ones
  std::string key;          // the private key; may be the same file as `certificate`
  std::string crl = {};     // lists of revoked certificates; empty: none

  bool enabled() const { return !ca.empty(); }
};

// INVALID_ARGUMENT when one or two of the three are set.
absl::Status CheckComplete(const TlsFiles& files);

// Changes when one of the files is written or replaced, or gets another mode or owner.
std::string StampOf(const TlsFiles& files);

// INVALID_ARGUMENT when others than the owner and the group may open the key, or the group may
// write it: whoever has the key can be this node.
absl::Status CheckKeyMode(const std::string& path);

// The section [tls] of a daemon's configuration.
TlsFiles ReadTlsFiles(Config& config);

}  // namespace ecpipe
