// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/process/config.h"

namespace ecpipe {

// Where a daemon shows its pages.
struct WebOptions {
  std::string listen;  // "host:port"; empty: no pages
  bool tls = false;    // HTTPS, with the files of [tls]
};
// The section [web].
WebOptions ReadWebOptions(Config& config);
// Finds `tls` without TLS files, or an address that other hosts reach and that nothing protects.
// `insecure`: the operator has allowed that.
ConfigTroubles CheckWebOptions(const WebOptions& options, bool has_tls_files, bool insecure);

}  // namespace ecpipe
