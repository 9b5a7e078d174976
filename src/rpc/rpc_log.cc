// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_log.h"

#include <grpc/support/log.h>

#include <string>
#include <string_view>

#include "base/process/log.h"

namespace ecpipe {
namespace {

void Write(gpr_log_func_args* said) {
  const std::string_view text = said->message;
  // It says so at each TLS connection to an address, for which certificates have no name. Whose
  // certificate it is is checked by its role (rpc_security.h).
  if (text.starts_with("No match found for server name")) return;
  const std::string_view path = said->file;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  Log(said->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug, "rpc.grpc",
      {{"said", std::string(text)}, {"at", std::string(file) + ":" + std::to_string(said->line)}});
}

}  // namespace

void TakeGrpcLog() { gpr_set_log_function(&Write); }

}  // namespace ecpipe
