// SPDX-License-Identifier: Apache-2.0
// ecpipe-coordinator: knows stripes and nodes, plans repairs and hands them out.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/fault_points.h"
#include "base/process/daemon.h"
#include "base/process/log.h"
#include "base/process/service_manager.h"
#include "base/process/version.h"
#include "base/status.h"
#include "codec/kernel_check.h"
#include "coordinator/edge/coordinator_config.h"
#include "coordinator/edge/server.h"
#include "coordinator/planning/scheme.h"
#include "model/plan/features.h"
#include "rpc/rpc_exit.h"

namespace ecpipe {
namespace {

constexpr char kProgram[] = "ecpipe-coordinator";

int Run(const std::string& config_path, const std::string& ready_path) {
  if (absl::Status kernel = CheckKernel(); !kernel.ok()) return Refuse(kProgram, kernel);
  absl::StatusOr<CoordinatorConfig> config = LoadCoordinatorConfig(config_path);
  if (!config.ok()) return Refuse(kProgram, config.status());
  SetLog(config->log);
  absl::StatusOr<std::unique_ptr<CoordinatorServer>> server = CoordinatorServer::Start(*config);
  if (!server.ok()) return Refuse(kProgram, server.status());
  Log(LogLevel::kInfo, "coordinator.serving", {{"address", (*server)->address()}});
  if (!ready_path.empty()) {
    const absl::Status written = WriteReadyFile(
        ready_path, {{"listen", (*server)->address()}, {"web", (*server)->web_address()}});
    if (!written.ok()) return Refuse(kProgram, written);
  }
  ServiceManager::OfThisProcess().Ready("serves " + (*server)->address());
  WaitForDaemonEnd(LoadCoordinatorConfig, config_path);
  Log(LogLevel::kInfo, "coordinator.ending");
  ServiceManager::OfThisProcess().Stopping();
  return 0;
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::PrepareRpcExit();
  CLI::App app{
      "The ECPipe coordinator daemon. It keeps the catalog of stripes, plans repairs\n"
      "and hands them to the helpers. Run one in a cluster."};
  app.footer(
      "Signals: SIGTERM and SIGINT end it. On SIGHUP it reads [log] again.\n"
      "Exit codes: 0 ended as asked; 1 could not serve; 2 bad arguments or\n"
      "configuration.\n"
      "\n"
      "Example: ecpipe-coordinator --config /etc/ecpipe/coordinator.toml");
  app.set_version_flag("--version", std::string("ecpipe-coordinator ") + ecpipe::Version());
  bool json = false;
  app.add_flag("--json", json, "With --schemes: print JSON");
  const auto list_schemes = [&json](int64_t) {
    const std::vector<ecpipe::SchemeInfo> schemes = ecpipe::DescribeSchemes();
    std::fputs((json ? SchemesJson(schemes) : SchemesText(schemes)).c_str(), stdout);
    throw CLI::Success();  // before --config is missed
  };
  app.add_flag_function("--schemes", list_schemes,
                        "List the schemes by which repairs can run, and end.\n"
                        "This needs no configuration");
  std::string config_path;
  std::string ready_path;
  app.add_option("--config", config_path,
                 "Configuration file, such as\n"
                 "deploy/coordinator.toml")
      ->required();
  app.add_option("--ready-file", ready_path,
                 "Write the listening address to this file, as JSON,\n"
                 "once the daemon serves");
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
    return ecpipe::CheckConfig<ecpipe::CoordinatorServer>(
        ecpipe::kProgram, ecpipe::LoadCoordinatorConfig, config_path);
  }
  absl::Status armed = ecpipe::ArmFaultsFromText(faults);
  if (!features.empty()) armed.Update(ecpipe::ActAsOlder(features));
  if (!armed.ok()) return ecpipe::Refuse(ecpipe::kProgram, armed);
  ecpipe::BlockDaemonSignals();
  ecpipe::RaiseFileLimit();
  ecpipe::SkipLockOrderChecks();
  const int code = ecpipe::Run(config_path, ready_path);
  ecpipe::AwaitRpcExit();
  return code;
}
