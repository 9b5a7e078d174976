// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/topology_script.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace ecpipe {
namespace {

constexpr size_t kMaxOutputBytes = 4096;

// A child process in a group of its own, whose standard output comes through a pipe. Its end is
// waited for in any case.
class Child {
 public:
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    Wait();
  }

  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::string& path,
                                                      const std::string& argument) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
    std::unique_ptr<Child> child(new Child(UniqueFd(ends[0])));
    const UniqueFd write_end(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A daemon's threads block signals; a script must not inherit that.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    char* const arguments[] = {const_cast<char*>(path.c_str()), const_cast<char*>(argument.c_str()),
                               nullptr};
    const int error =
        ::posix_spawn(&child->pid_, path.c_str(), &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return child;
    child->pid_ = 0;
    return absl::UnavailableError("run " + path + ": " + ErrnoStatus(error, "").ToString());
  }

  // All that it prints until it closes its output.
  absl::StatusOr<std::string> ReadAll(TimePoint deadline) {
    std::string text;
    std::array<char, 512> buffer;
    while (true) {
      const Duration rest = deadline - Clock::System().Now();
      if (rest <= Duration(0)) {
        return absl::DeadlineExceededError("the script did not answer in time");
      }
      const auto millis = std::chrono::ceil<std::chrono::milliseconds>(rest);
      pollfd polled{output_.get(), POLLIN, 0};
      if (::poll(&polled, 1, static_cast<int>(millis.count())) <= 0) continue;
      const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return text;
      text.append(buffer.data(), static_cast<size_t>(got));
      if (text.size() > kMaxOutputBytes) {
        return absl::InvalidArgumentError("the script printed more than " +
                                          std::to_string(kMaxOutputBytes) + " bytes");
      }
    }
  }

  // Its exit code; -1 when a signal ended it. One that has closed its output and goes on is killed
  // at the deadline.
  int Finish(TimePoint deadline) {
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    const Duration rest = std::max(deadline - Clock::System().Now(), Duration(0));
    const auto millis = std::chrono::ceil<std::chrono::milliseconds>(rest);
    pollfd polled{process.get(), POLLIN, 0};
    const bool ended = process.valid() && ::poll(&polled, 1, static_cast<int>(millis.count())) == 1;
    if (!ended) ::kill(-pid_, SIGKILL);
    return Wait();
  }

 private:
  explicit Child(UniqueFd output) : output_(std::move(output)) {}

  int Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const UniqueFd output_;
  pid_t pid_ = 0;
};

absl::StatusOr<std::string> Run(const std::string& path, const std::string& host,
                                TimePoint deadline) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<Child> child, Child::Start(path, host));
  ECPIPE_ASSIGN_OR_RETURN(const std::string text, child->ReadAll(deadline));
  const int exit_code = child->Finish(deadline);
  if (exit_code != 0) {
    return absl::UnavailableError(exit_code < 0 ? "the script was ended by a signal"
                                                : "the script ended with exit code " +
                                                      std::to_string(exit_code));
  }
  return RackOfOutput(text);
}

}  // namespace

absl::StatusOr<std::string> RackOfOutput(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  const bool one_rack =
      text.size() > 1 && text.front() == '/' && std::none_of(text.begin(), text.end(), blank);
  if (!one_rack || !IsCleanText(text)) {
    return absl::InvalidArgumentError("the script printed '" + CleanText(text) +
                                      "', which is not one rack such as /rack-1");
  }
  return text;
}

absl::StatusOr<std::string> TopologyScript::RackOf(const std::string& host) {
  if (host.empty() || host.front() == '-') {
    return absl::InvalidArgumentError("'" + host + "' is not a host that " + path_ +
                                      " can be asked about");
  }
  {
    MutexLock lock(&mutex_);
    if (const auto known = racks_.find(host); known != racks_.end()) return known->second;
  }
  absl::StatusOr<std::string> rack = Run(path_, host, Clock::System().Now() + options_.timeout);
  if (!rack.ok()) return Annotate(rack.status(), path_ + " " + host);
  MutexLock lock(&mutex_);
  if (racks_.size() >= options_.max_hosts) racks_.erase(racks_.begin());  // asked again if need be
  racks_[host] = *rack;
  return rack;
}

}  // namespace ecpipe
