// SPDX-License-Identifier: Apache-2.0
#include "base/fault_points.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <map>
#include <sstream>

#include "base/mutex.h"
#include "base/simulator.h"

namespace ecpipe {
namespace {

std::atomic<bool> any_armed{false};

struct Registry {
  Mutex mutex;
  CondVar disarmed;
  std::map<std::string, Fault> faults ABSL_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;  // never destroyed: threads may outlive main()
  return *registry;
}

absl::Status BadText(const std::string& item) {
  return absl::InvalidArgumentError("fault '" + item +
                                    "' is not of the form name=error|crash|hang[@hits]");
}

absl::Status ArmOne(const std::string& item) {
  const size_t equals = item.find('=');
  if (equals == std::string::npos || equals == 0) return BadText(item);
  std::string action = item.substr(equals + 1);
  Fault fault;
  if (const size_t at = action.find('@'); at != std::string::npos) {
    const char* end = action.data() + action.size();
    const auto [rest, error] = std::from_chars(action.data() + at + 1, end, fault.after_hits);
    if (error != std::errc() || rest != end || fault.after_hits < 0) return BadText(item);
    action.resize(at);
  }
  if (action == "crash") {
    fault.action = Fault::Action::kCrash;
  } else if (action == "hang") {
    fault.action = Fault::Action::kHang;
  } else if (action != "error") {
    return BadText(item);
  }
  ArmFault(item.substr(0, equals), fault);
  return absl::OkStatus();
}

}  // namespace

absl::Status FaultPoint(const char* name) {
  if (!any_armed.load(std::memory_order_relaxed)) return absl::OkStatus();
  if (Simulator* simulator = Simulator::Installed()) return simulator->FaultPoint(name);
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  const auto found = registry.faults.find(name);
  if (found == registry.faults.end()) return absl::OkStatus();
  if (found->second.after_hits-- > 0) return absl::OkStatus();
  found->second.after_hits = 0;
  if (found->second.action == Fault::Action::kCrash) ::kill(::getpid(), SIGKILL);
  if (found->second.action == Fault::Action::kHang) {
    while (registry.faults.contains(name)) registry.disarmed.Wait(lock);
    return absl::OkStatus();
  }
  return absl::InternalError(std::string("fault point ") + name);
}

void ArmFault(const std::string& name, Fault fault) {
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  registry.faults[name] = fault;
  any_armed.store(true, std::memory_order_relaxed);
}

void DisarmAllFaults() {
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  registry.faults.clear();
  any_armed.store(false, std::memory_order_relaxed);
  registry.disarmed.NotifyAll();
}

absl::Status ArmFaultsFromText(const std::string& text) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    if (absl::Status armed = ArmOne(item); !armed.ok()) return armed;
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
