// SPDX-License-Identifier: Apache-2.0
#include "web/web_options.h"

#include "base/status.h"
#include "net/tcp_socket.h"

namespace ecpipe {

WebOptions ReadWebOptions(Config& config) {
  WebOptions options;
  options.listen = config.String("web.listen", "");
  options.tls = config.Bool("web.tls", false);
  return options;
}

absl::Status CheckWebOptions(const WebOptions& options, bool has_tls_files, bool insecure) {
  if (options.listen.empty()) return absl::OkStatus();
  if (options.tls && !has_tls_files) {
    return absl::InvalidArgumentError("web.tls: needs the files of [tls]");
  }
  return Annotate(CheckListenAddress(options.listen, options.tls || insecure), "web.listen");
}

}  // namespace ecpipe
