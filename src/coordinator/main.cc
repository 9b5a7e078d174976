// SPDX-License-Identifier: Apache-2.0
// ecpipe-coordinator: knows stripes and nodes, plans repairs and hands them out.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "common/daemon.h"
#include "common/fault_points.h"
#include "common/log.h"
#include "common/status.h"
#include "common/version.h"
#include "coordinator/coordinator_config.h"
#include "coordinator/server.h"
#include "rpc/rpc_exit.h"

namespace ecpipe {
namespace {

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "ecpipe-coordinator: %s\n", StatusText(status).c_str());
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? 2 : 1;
}

void ReloadLogLevel(const std::string& path) {
  absl::StatusOr<CoordinatorConfig> config = LoadCoordinatorConfig(path);
  const absl::Status status = config.ok() ? SetLogLevel(config->log_level) : config.status();
  Log(LogLevel::kInfo, "log.reloaded", {{"status", StatusText(status)}});
}

int Run(const std::string& config_path, const std::string& ready_path) {
  if (const char* faults = std::getenv("ECPIPE_FAULTS")) {
    if (absl::Status armed = ArmFaultsFromText(faults); !armed.ok()) return Refuse(armed);
  }
  absl::StatusOr<CoordinatorConfig> config = LoadCoordinatorConfig(config_path);
  if (!config.ok()) return Refuse(config.status());
  if (absl::Status level = SetLogLevel(config->log_level); !level.ok()) return Refuse(level);
  absl::StatusOr<std::unique_ptr<CoordinatorServer>> server = CoordinatorServer::Start(*config);
  if (!server.ok()) return Refuse(server.status());
  Log(LogLevel::kInfo, "coordinator.serving", {{"address", (*server)->address()}});
  if (!ready_path.empty()) {
    const absl::Status written = WriteReadyFile(ready_path, {{"listen", (*server)->address()}});
    if (!written.ok()) return Refuse(written);
  }
  while (WaitForDaemonSignal() == SIGHUP) ReloadLogLevel(config_path);
  Log(LogLevel::kInfo, "coordinator.ending");
  return 0;
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::PrepareRpcExit();
  CLI::App app{"The ECPipe coordinator daemon: plans repairs and hands them to the helpers."};
  app.footer(
      "Signals: SIGTERM and SIGINT end it; SIGHUP reloads the log level.\n"
      "Exit codes: 0 ended as asked, 1 could not serve, 2 bad arguments or configuration.");
  app.set_version_flag("--version", std::string("ecpipe-coordinator ") + ecpipe::Version());
  std::string config_path;
  std::string ready_path;
  app.add_option("--config", config_path, "Configuration file (TOML)")->required();
  app.add_option("--ready-file", ready_path,
                 "Write the bound address there, as JSON, once the daemon serves");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  ecpipe::BlockDaemonSignals();
  ecpipe::RaiseFileLimit();
  const int code = ecpipe::Run(config_path, ready_path);
  ecpipe::AwaitRpcExit();
  return code;
}
