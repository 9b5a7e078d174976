// SPDX-License-Identifier: Apache-2.0
// What main() of each daemon does: its command line, and its life from the configuration to the
// signal that ends it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "base/guarded.h"
#include "base/process/daemon.h"
#include "base/process/log.h"
#include "base/process/running_config.h"
#include "base/process/service_manager.h"
#include "base/process/version.h"
#include "base/status.h"

namespace ecpipe {

struct DaemonArguments {
  std::string config_path;
  std::string ready_path;  // empty: no such file
  bool check_config = false;
  std::string faults;    // for ArmFaultsFromText
  std::string features;  // for ActAsOlder; empty: this version's
};

// Adds what all daemons take. `App`: CLI::App, whose header only main files include. `arguments`
// must outlive the parse.
template <typename App>
void AddDaemonOptions(const std::string& program, const std::string& example_config,
                      DaemonArguments* arguments, App* app) {
  app->set_version_flag("--version", program + " " + Version());
  app->add_option("--config", arguments->config_path,
                  "Configuration file, such as\n" + example_config)
      ->required();
  app->add_option("--ready-file", arguments->ready_path,
                  "Write the listening addresses to this file, as\n"
                  "JSON, once the daemon serves");
  app->add_flag("--check-config", arguments->check_config,
                "Say whether the configuration is valid, or all that\n"
                "is wrong and where, and end. This does not look at\n"
                "directories of blocks or data, or at other hosts");
  app->add_option("--test-faults", arguments->faults,
                  "For tests only: fail on purpose at named points, as\n"
                  "NAME=error|crash|hang[@HITS],...");
  app->add_option("--test-features", arguments->features)->group("");
}

// Call it in main() before any thread exists.
inline void PrepareDaemonProcess() {
  BlockDaemonSignals();
  RaiseFileLimit();
  SkipLockOrderChecks();
}

// What a server tells once it serves.
struct Serving {
  std::vector<std::pair<std::string, std::string>> ready_fields;  // of the ready file
  std::string ready_status;  // for the service manager; empty: the server tells it when it is ready
};

// Takes up what the configuration file has now, as far as a running server can, and logs by name
// what it cannot take up.
template <typename Server, typename Load>
void ReloadConfig(const Load& load, const std::string& path, Server* server) {
  const auto config = load(path, /*check=*/nullptr);  // what it has of TLS is in use, and stays
  if (!config.ok()) {
    Log(LogLevel::kError, "config.reload_failed",
        {{"status", StatusText(config.status())}, {"hint", "nothing has changed; mend the file"}});
    return;
  }
  SetLog(config->log);
  const RunningConfig::Changes changes = server->Reload(*config);
  Log(LogLevel::kInfo, "config.reloaded", {{"taken", absl::StrJoin(changes.taken, " ")}});
  for (const std::string& key : changes.need_restart) {
    Log(LogLevel::kWarning, "config.needs_restart",
        {{"key", key}, {"hint", "the old value holds until the daemon is restarted"}});
  }
}

// What mends a configuration that `load` refuses with the server's own checks.
template <typename Server, typename Load>
Mend MendOfConfig(const Load& load, const std::string& path) {
  const auto text = load(path, /*check=*/nullptr);
  return text.ok() && Server::Check(*text).MayMend() ? Mend::kTime : Mend::kEdit;
}

// Serves until it is told to end; returns the exit code. `serving`: called once with the
// configuration and the server. `ending`: called before the server is destroyed.
template <typename Server, typename Load, typename OnServing, typename OnEnding>
int Serve(const std::string& program, const DaemonArguments& arguments, const Load& load,
          const OnServing& serving, const OnEnding& ending) {
  const auto config = load(arguments.config_path, Server::Check);
  if (!config.ok()) {
    return Refuse(program, config.status(), MendOfConfig<Server>(load, arguments.config_path));
  }
  SetLog(config->log);
  LogConfig(config->values);
  // A thread that the system does not have now, or memory, is what time may mend.
  const auto server = Guarded([&] { return Server::Start(*config); });
  if (!server.ok()) return Refuse(program, server.status(), MendOfStart(server.status()));
  const Serving says = serving(*config, **server);
  if (!arguments.ready_path.empty()) {
    const absl::Status written = WriteReadyFile(arguments.ready_path, says.ready_fields);
    if (!written.ok()) return Refuse(program, written, Mend::kTime);
  }
  if (!says.ready_status.empty()) ServiceManager::OfThisProcess().Ready(says.ready_status);
  while (WaitForDaemonSignal() == SIGHUP) {
    ReloadConfig(load, arguments.config_path, server->get());
  }
  ServiceManager::OfThisProcess().Stopping();
  ending(**server);
  return 0;
}

}  // namespace ecpipe
