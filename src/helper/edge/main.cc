// SPDX-License-Identifier: Apache-2.0
// ecpipe-helper: serves the blocks beside a storage node to repairs.
#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/fault_points.h"
#include "base/process/daemon_main.h"
#include "codec/kernel_check.h"
#include "helper/edge/helper_config.h"
#include "helper/edge/server.h"
#include "model/plan/features.h"
#include "rpc/rpc_exit.h"
#include "rpc/rpc_log.h"

namespace ecpipe {
namespace {

constexpr char kProgram[] = "ecpipe-helper";

int Run(const DaemonArguments& arguments) {
  return Serve<HelperServer>(
      kProgram, arguments, LoadHelperConfig,
      [](const HelperConfig& config, const HelperServer& server) {
        Log(LogLevel::kInfo, "helper.serving",
            {{"node", config.node_id},
             {"control", server.control_address()},
             {"data", server.data_address()}});
        return Serving{{{"control", server.control_address()},
                        {"data", server.data_address()},
                        {"endpoint", server.endpoint_address()},
                        {"web", server.web_address()}},
                       ""};
      },
      [](HelperServer& server) {
        Log(LogLevel::kInfo, "helper.draining");
        if (server.Drain()) return;
        // Their threads use what would be destroyed. Blocks that are not stored have no names.
        Log(LogLevel::kWarning, "helper.drain_hangs", {{"reason", "a disk does not answer"}});
        std::_Exit(0);
      });
}

int RunRequestorOnly(const DaemonArguments& arguments) {
  return Serve<RequestorOnlyServer>(
      kProgram, arguments, LoadRequestorOnlyConfig,
      [](const RequestorOnlyConfig&, const RequestorOnlyServer& server) {
        const std::string address = server.endpoint_address();
        Log(LogLevel::kInfo, "requestor.serving", {{"endpoint", address}});
        return Serving{{{"endpoint", address}, {"web", server.web_address()}}, "serves " + address};
      },
      [](const RequestorOnlyServer&) {});
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::PrepareRpcExit();
  ecpipe::TakeGrpcLog();
  CLI::App app{
      "The ECPipe helper daemon. It runs beside a storage node, serves the node's\n"
      "blocks to repairs and stores repaired blocks there."};
  app.footer(
      "Signals: on SIGTERM and SIGINT the helper finishes running repairs, for at most\n"
      "drain_seconds, and ends. On SIGHUP it reads its configuration again, takes up\n"
      "log, repair_mbit, max_sessions and drain_seconds, and logs what needs a restart.\n"
      "Exit codes: 0 ended as asked; 1 could not serve; 2 bad arguments or\n"
      "configuration.\n"
      "\n"
      "Example: ecpipe-helper --config /etc/ecpipe/helper.toml");
  ecpipe::DaemonArguments arguments;
  AddDaemonOptions(ecpipe::kProgram, "deploy/helper.toml", &arguments, &app);
  bool requestor_only = false;
  app.add_flag("--requestor-only", requestor_only,
               "Serve only the requestor endpoint and no blocks,\n"
               "on a host that has none; --config then names a\n"
               "file such as deploy/requestor.toml");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (arguments.check_config) {
    return requestor_only
               ? ecpipe::CheckConfig<ecpipe::RequestorOnlyServer>(
                     ecpipe::kProgram, ecpipe::LoadRequestorOnlyConfig, arguments.config_path)
               : ecpipe::CheckConfig<ecpipe::HelperServer>(
                     ecpipe::kProgram, ecpipe::LoadHelperConfig, arguments.config_path);
  }
  absl::Status begun = ecpipe::ArmFaultsFromText(arguments.faults);
  if (!arguments.features.empty()) begun.Update(ecpipe::ActAsOlder(arguments.features));
  begun.Update(ecpipe::CheckKernel());
  if (!begun.ok()) return ecpipe::Refuse(ecpipe::kProgram, begun);
  ecpipe::PrepareDaemonProcess();
  ecpipe::ReturnFreedBuffers();
  const int code = requestor_only ? ecpipe::RunRequestorOnly(arguments) : ecpipe::Run(arguments);
  ecpipe::AwaitRpcExit();
  return code;
}
