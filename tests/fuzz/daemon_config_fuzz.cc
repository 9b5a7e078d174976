// SPDX-License-Identifier: Apache-2.0
// The configuration files of both daemons: refused, or within what the sample files promise.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/check.h"
#include "coordinator/edge/coordinator_config.h"
#include "helper/edge/helper_config.h"
#include "model/block_id.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

// A file in memory: the loaders take a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("config", MFD_CLOEXEC)) { ECPIPE_CHECK(fd_ >= 0); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  void Store(const uint8_t* data, size_t size) {
    ECPIPE_CHECK(::ftruncate(fd_, 0) == 0);
    ECPIPE_CHECK(::pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size));
  }

 private:
  const int fd_;
};

bool Between(Duration value, Duration most) { return value > Duration(0) && value <= most; }

void CheckCoordinator(const CoordinatorConfig& config) {
  const RepairCoordinator::Options& repairs = config.repairs;
  ECPIPE_CHECK(!config.data_directory.empty());
  ECPIPE_CHECK(Between(repairs.handout_timeout, std::chrono::minutes(1)));
  ECPIPE_CHECK(Between(repairs.dead_after, std::chrono::hours(1)));
  ECPIPE_CHECK(Between(repairs.abandon_after, std::chrono::hours(24)));
  ECPIPE_CHECK(repairs.max_running >= 1 && repairs.max_running <= 1'000'000);
  ECPIPE_CHECK(repairs.planner.default_slice_bytes >= 1);
  ECPIPE_CHECK(repairs.planner.default_slice_bytes <= kMaxSliceBytes);
  ECPIPE_CHECK(repairs.planner.link_bytes_per_second > 0);
  const RecoveryQueue::Options& queue = config.recoveries.queue;
  ECPIPE_CHECK(Between(queue.first_pause, std::chrono::hours(24)));
  ECPIPE_CHECK(Between(queue.longest_pause, std::chrono::hours(24)));
  ECPIPE_CHECK(queue.max_attempts >= 1 && config.recoveries.streams_per_node >= 1);
  ECPIPE_CHECK(config.probes.max_bytes >= config.probes.min_bytes);
  ECPIPE_CHECK(config.probes.max_bytes_per_second > 0);
}

void CheckHelper(const HelperConfig& config) {
  ECPIPE_CHECK(ValidateBlockId(config.node_id).ok() && !config.roots.empty());
  ECPIPE_CHECK(ParseHostPort(config.coordinator).ok());
  const SessionManager::Options& sessions = config.sessions;
  ECPIPE_CHECK(sessions.max_sessions >= 1 && sessions.max_sessions <= 4096);
  ECPIPE_CHECK(sessions.part.ring_bytes >= 4096);
  ECPIPE_CHECK(Between(sessions.part.stall_timeout, std::chrono::hours(1)));
  ECPIPE_CHECK(Between(config.drain_patience, std::chrono::hours(1)));
}

bool Refused(const absl::Status& status) {
  // A topology file that is named and is not there keeps the error of the file system.
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsPermissionDenied(status) || absl::IsInternal(status);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ecpipe::MemoryFile file;
  file.Store(data, size);
  if (const auto coordinator = ecpipe::LoadCoordinatorConfig(file.path()); coordinator.ok()) {
    ecpipe::CheckCoordinator(*coordinator);
  } else {
    ECPIPE_CHECK(ecpipe::Refused(coordinator.status()));
  }
  if (const auto helper = ecpipe::LoadHelperConfig(file.path()); helper.ok()) {
    ecpipe::CheckHelper(*helper);
    // What `ecpipe config` prints is a configuration, and the same one.
    const std::string shown = ecpipe::ConfigText(helper->values);
    file.Store(reinterpret_cast<const uint8_t*>(shown.data()), shown.size());
    const auto again = ecpipe::LoadHelperConfig(file.path());
    ECPIPE_CHECK(again.ok() && again->values == helper->values);
  } else {
    ECPIPE_CHECK(absl::IsInvalidArgument(helper.status()));
  }
  return 0;
}
