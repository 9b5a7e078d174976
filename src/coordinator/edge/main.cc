// SPDX-License-Identifier: Apache-2.0
// ecpipe-coordinator: knows stripes and nodes, plans repairs and hands them out.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/fault_points.h"
#include "base/process/daemon_main.h"
#include "codec/kernel_check.h"
#include "coordinator/edge/coordinator_config.h"
#include "coordinator/edge/server.h"
#include "coordinator/planning/scheme.h"
#include "model/plan/features.h"
#include "rpc/rpc_exit.h"
#include "rpc/rpc_log.h"

namespace ecpipe {
namespace {

constexpr char kProgram[] = "ecpipe-coordinator";

int Run(const DaemonArguments& arguments) {
  return Serve<CoordinatorServer>(
      kProgram, arguments, LoadCoordinatorConfig,
      [](const CoordinatorConfig&, const CoordinatorServer& server) {
        Log(LogLevel::kInfo, "coordinator.serving", {{"address", server.address()}});
        return Serving{{{"listen", server.address()}, {"web", server.web_address()}},
                       "serves " + server.address()};
      },
      [](const CoordinatorServer&) { Log(LogLevel::kInfo, "coordinator.ending"); });
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::PrepareRpcExit();
  ecpipe::TakeGrpcLog();
  CLI::App app{
      "The ECPipe coordinator daemon. It keeps the catalog of stripes, plans repairs\n"
      "and hands them to the helpers. Run one in a cluster."};
  app.footer(
      "Signals: SIGTERM and SIGINT end it. On SIGHUP it reads its configuration again,\n"
      "takes up log, node_addresses, racks and links, and logs what needs a restart.\n"
      "Exit codes: 0 ended as asked; 1 could not serve; 2 bad arguments or\n"
      "configuration.\n"
      "\n"
      "Example: ecpipe-coordinator --config /etc/ecpipe/coordinator.toml");
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
  ecpipe::DaemonArguments arguments;
  AddDaemonOptions(ecpipe::kProgram, "deploy/coordinator.toml", &arguments, &app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (arguments.check_config) {
    return ecpipe::CheckConfig<ecpipe::CoordinatorServer>(
        ecpipe::kProgram, ecpipe::LoadCoordinatorConfig, arguments.config_path);
  }
  absl::Status begun = ecpipe::ArmFaultsFromText(arguments.faults);
  if (!arguments.features.empty()) begun.Update(ecpipe::ActAsOlder(arguments.features));
  begun.Update(ecpipe::CheckKernel());
  if (!begun.ok()) return ecpipe::Refuse(ecpipe::kProgram, begun);
  ecpipe::PrepareDaemonProcess();
  const int code = ecpipe::Run(arguments);
  ecpipe::AwaitRpcExit();
  return code;
}
