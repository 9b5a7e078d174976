// SPDX-License-Identifier: Apache-2.0
// ecpipe-helper: serves the blocks beside a storage node to repairs.
#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/fault_points.h"
#include "base/process/daemon.h"
#include "base/process/log.h"
#include "base/process/service_manager.h"
#include "base/process/version.h"
#include "base/status.h"
#include "codec/kernel_check.h"
#include "helper/edge/helper_config.h"
#include "helper/edge/server.h"
#include "model/plan/features.h"
#include "rpc/rpc_exit.h"

namespace ecpipe {
namespace {

constexpr char kProgram[] = "ecpipe-helper";

int Run(const std::string& config_path, const std::string& ready_path) {
  if (absl::Status kernel = CheckKernel(); !kernel.ok()) return Refuse(kProgram, kernel);
  absl::StatusOr<HelperConfig> config = LoadHelperConfig(config_path);
  if (!config.ok()) return Refuse(kProgram, config.status());
  SetLog(config->log);
  absl::StatusOr<std::unique_ptr<HelperServer>> server = HelperServer::Start(*config);
  if (!server.ok()) return Refuse(kProgram, server.status());
  Log(LogLevel::kInfo, "helper.serving",
      {{"node", config->node_id},
       {"control", (*server)->control_address()},
       {"data", (*server)->data_address()}});
  if (!ready_path.empty()) {
    const absl::Status written =
        WriteReadyFile(ready_path, {{"control", (*server)->control_address()},
                                    {"data", (*server)->data_address()},
                                    {"endpoint", (*server)->endpoint_address()},
                                    {"web", (*server)->web_address()}});
    if (!written.ok()) return Refuse(kProgram, written);
  }
  WaitForDaemonEnd(LoadHelperConfig, config_path);
  Log(LogLevel::kInfo, "helper.draining");
  ServiceManager::OfThisProcess().Stopping();
  if (!(*server)->Drain()) {
    // Their threads use what would be destroyed. Blocks that are not stored have no names.
    Log(LogLevel::kWarning, "helper.drain_hangs", {{"reason", "a disk does not answer"}});
    std::_Exit(0);
  }
  return 0;
}

int RunRequestorOnly(const std::string& config_path, const std::string& ready_path) {
  if (absl::Status kernel = CheckKernel(); !kernel.ok()) return Refuse(kProgram, kernel);
  absl::StatusOr<RequestorOnlyConfig> config = LoadRequestorOnlyConfig(config_path);
  if (!config.ok()) return Refuse(kProgram, config.status());
  SetLog(config->log);
  const auto server = RequestorOnlyServer::Start(*config);
  if (!server.ok()) return Refuse(kProgram, server.status());
  Log(LogLevel::kInfo, "requestor.serving", {{"endpoint", (*server)->endpoint_address()}});
  if (!ready_path.empty()) {
    const absl::Status written = WriteReadyFile(
        ready_path,
        {{"endpoint", (*server)->endpoint_address()}, {"web", (*server)->web_address()}});
    if (!written.ok()) return Refuse(kProgram, written);
  }
  ServiceManager::OfThisProcess().Ready("serves " + (*server)->endpoint_address());
  WaitForDaemonEnd(LoadRequestorOnlyConfig, config_path);
  ServiceManager::OfThisProcess().Stopping();
  return 0;
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::PrepareRpcExit();
  CLI::App app{
      "The ECPipe helper daemon. It runs beside a storage node, serves the node's\n"
      "blocks to repairs and stores repaired blocks there."};
  app.footer(
      "Signals: on SIGTERM and SIGINT the helper finishes running repairs, for at most\n"
      "drain_seconds, and ends. On SIGHUP it reads [log] again.\n"
      "Exit codes: 0 ended as asked; 1 could not serve; 2 bad arguments or\n"
      "configuration.\n"
      "\n"
      "Example: ecpipe-helper --config /etc/ecpipe/helper.toml");
  app.set_version_flag("--version", std::string("ecpipe-helper ") + ecpipe::Version());
  std::string config_path;
  std::string ready_path;
  bool requestor_only = false;
  app.add_option("--config", config_path, "Configuration file, such as deploy/helper.toml")
      ->required();
  app.add_option("--ready-file", ready_path,
                 "Write the listening addresses to this file, as\n"
                 "JSON, once the daemon serves");
  app.add_flag("--requestor-only", requestor_only,
               "Serve only the requestor endpoint and no blocks,\n"
               "on a host that has none; --config then names a\n"
               "file such as deploy/requestor.toml");
  bool check_config = false;
  app.add_flag("--check-config", check_config,
               "Say whether the configuration is valid, or what is\n"
               "wrong and where, and end. This does not look at\n"
               "directories of blocks or data, or at other hosts");
  std::string faults;
  app.add_option("--test-faults", faults,
                 "For tests only: fail on purpose at named points, as\n"
                 "NAME=error|crash|hang[@HITS],...");
  std::string features;
  app.add_option("--test-features", features)->group("");  // see ActAsOlder
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (check_config) {
    return requestor_only ? ecpipe::CheckConfig<ecpipe::RequestorOnlyServer>(
                                ecpipe::kProgram, ecpipe::LoadRequestorOnlyConfig, config_path)
                          : ecpipe::CheckConfig<ecpipe::HelperServer>(
                                ecpipe::kProgram, ecpipe::LoadHelperConfig, config_path);
  }
  absl::Status armed = ecpipe::ArmFaultsFromText(faults);
  if (!features.empty()) armed.Update(ecpipe::ActAsOlder(features));
  if (!armed.ok()) return ecpipe::Refuse(ecpipe::kProgram, armed);
  ecpipe::BlockDaemonSignals();
  ecpipe::RaiseFileLimit();
  ecpipe::SkipLockOrderChecks();
  ecpipe::ReturnFreedBuffers();
  const int code = requestor_only ? ecpipe::RunRequestorOnly(config_path, ready_path)
                                  : ecpipe::Run(config_path, ready_path);
  ecpipe::AwaitRpcExit();
  return code;
}
