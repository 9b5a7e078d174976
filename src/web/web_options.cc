// SPDX-License-Identifier: Apache-2.0
#include "web/web_options.h"

#include "net/tcp_socket.h"

namespace ecpipe {

WebOptions ReadWebOptions(Config& config) {
  WebOptions options;
  options.listen = config.String("web.listen", "");
  options.tls = config.Bool("web.tls", false);
  return options;
}

ConfigTroubles CheckWebOptions(const WebOptions& options, bool has_tls_files, bool insecure) {
  ConfigTroubles troubles;
  if (options.listen.empty()) return troubles;
  if (options.tls && !has_tls_files) {
    troubles.Add("web.tls", absl::InvalidArgumentError("needs the files of [tls]"));
  }
  troubles.Add("web.listen", CheckListenAddress(options.listen, options.tls || insecure));
  return troubles;
}

}  // namespace ecpipe
