// SPDX-License-Identifier: Apache-2.0
#include "base/process/daemon.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "absl/synchronization/mutex.h"
#include "base/file_io.h"
#include "base/process/service_manager.h"
#include "base/status.h"

namespace ecpipe {
namespace {

sigset_t DaemonSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

void BlockDaemonSignals() {
  const sigset_t signals = DaemonSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void ReturnFreedBuffers() {
#ifdef __GLIBC__
  // What the threshold is at the start anyway; set, it no longer grows.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // best effort: less room for floods is no reason to refuse
}

void SkipLockOrderChecks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

LogSettings ReadLog(Config& config) {
  const auto level = LogLevelNamed(config.String("log.level", "info"));
  if (!level.ok()) config.Reject("log.level", std::string(level.status().message()));
  const auto format = LogFormatNamed(config.String("log.format", "text"));
  if (!format.ok()) config.Reject("log.format", std::string(format.status().message()));
  return {level.value_or(LogLevel::kInfo), format.value_or(LogFormat::kText),
          IsJournal(STDERR_FILENO)};
}

void LogConfig(const ConfigValues& values) {
  std::string text;
  for (const auto& [key, value] : values) text += (text.empty() ? "" : " ") + key + "=" + value;
  Log(LogLevel::kInfo, "config.effective", {{"values", text}});
}

int ReportCheckedConfig(const std::string& program, const std::string& path,
                        const absl::Status& checked) {
  if (checked.ok()) {
    std::printf("%s is valid\n", path.c_str());
    return 0;
  }
  std::fprintf(stderr, "%s: %s\n", program.c_str(), StatusText(checked).c_str());
  return 2;
}

Mend MendOfStart(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? Mend::kEdit : Mend::kTime;
}

int Refuse(const std::string& program, const absl::Status& status, Mend mend) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), StatusText(status).c_str());
  const bool of_text = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return mend == Mend::kEdit && of_text ? 2 : 1;
}

int WaitForDaemonSignal() {
  const sigset_t signals = DaemonSignals();
  int signal = 0;
  while (::sigwait(&signals, &signal) != 0) {
  }
  return signal;
}

absl::Status WriteReadyFile(const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& fields) {
  // The values are addresses that this process has bound: nothing in them needs escaping.
  std::string json = "{";
  for (const auto& [name, value] : fields) {
    json += (json.size() == 1 ? "\"" : ", \"") + name + "\": \"" + value + "\"";
  }
  json += "}\n";
  const auto write = [&]() -> absl::Status {
    // A link under this name is replaced, not followed.
    ECPIPE_ASSIGN_OR_RETURN(AtomicFile file,
                            AtomicFile::Create(path, {.access = AtomicFile::Access::kService}));
    ECPIPE_RETURN_IF_ERROR(
        file.WriteAt(0, {reinterpret_cast<const uint8_t*>(json.data()), json.size()}));
    return file.Commit();
  };
  return Annotate(write(), "write ready file " + path);
}

}  // namespace ecpipe
