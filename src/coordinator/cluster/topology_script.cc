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
#include <sstream>
#include <utility>

#include "base/bytes/utf8_text.h"
#include "base/guarded.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace ecpipe {
namespace {

constexpr size_t kMaxOutputBytes = 4096;  // for a host

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
                                                      const std::vector<std::string>& arguments) {
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
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
    argv.push_back(nullptr);
    const int error =
        ::posix_spawn(&child->pid_, path.c_str(), &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return child;
    child->pid_ = 0;
    return absl::UnavailableError("run " + path + ": " + ErrnoStatus(error, "").ToString());
  }

  // Of the process and of its group, until Reap.
  pid_t pid() const { return pid_; }

  // All that it prints until it closes its output.
  absl::StatusOr<std::string> ReadAll(size_t most, TimePoint deadline) {
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
      if (text.size() > most) {
        return absl::InvalidArgumentError("the script printed more than " + std::to_string(most) +
                                          " bytes");
      }
    }
  }

  // One that has closed its output and goes on is killed at the deadline.
  void AwaitEnd(TimePoint deadline) {
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    const Duration rest = std::max(deadline - Clock::System().Now(), Duration(0));
    const auto millis = std::chrono::ceil<std::chrono::milliseconds>(rest);
    pollfd polled{process.get(), POLLIN, 0};
    const bool ended = process.valid() && ::poll(&polled, 1, static_cast<int>(millis.count())) == 1;
    if (!ended) ::kill(-pid_, SIGKILL);
  }

  // Once it has ended: its exit code; -1 when a signal ended it.
  int Reap() { return Wait(); }

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

}  // namespace

absl::StatusOr<std::vector<std::string>> RacksOfOutput(const std::string& text, size_t hosts) {
  const auto refuse = [&text] {
    return absl::InvalidArgumentError("the script printed '" + CleanText(text) +
                                      "', which is not one rack such as /rack-1 for each host");
  };
  std::istringstream words(text);
  std::vector<std::string> racks;
  for (std::string rack; words >> rack; racks.push_back(rack)) {
    if (rack.size() < 2 || rack.front() != '/' || !IsCleanText(rack)) return refuse();
  }
  if (racks.size() != hosts) return refuse();
  return racks;
}

TopologyScript::TopologyScript(std::string path, const Options& options)
    : path_(std::move(path)),
      options_(options),
      pause_(options.pause),
      thread_([this] { Run(); }) {}

TopologyScript::~TopologyScript() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (running_ != 0) ::kill(-running_, SIGKILL);
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::StatusOr<std::string> TopologyScript::RackOf(const std::string& host) {
  if (host.empty() || host.front() == '-') {
    return absl::InvalidArgumentError("'" + host + "' is not a host that " + path_ +
                                      " can be asked about");
  }
  const TimePoint deadline = Clock::System().Now() + options_.timeout;
  MutexLock lock(&mutex_);
  if (const auto known = racks_.find(host); known != racks_.end()) return known->second;
  if (!questions_.contains(host) && questions_.size() >= options_.max_hosts) {
    return absl::ResourceExhaustedError(path_ + " has not answered yet for " +
                                        std::to_string(questions_.size()) + " other hosts");
  }
  questions_[host].urgent = true;
  changed_.NotifyAll();
  while (Clock::System().Now() < deadline) {
    changed_.WaitUntil(lock, deadline);
    if (const auto known = racks_.find(host); known != racks_.end()) return known->second;
    const auto question = questions_.find(host);
    if (question == questions_.end()) break;  // its rack has made room already
    if (!question->second.urgent) return Annotate(question->second.failure, path_ + " " + host);
  }
  return absl::DeadlineExceededError(path_ + " " + host + ": the script did not answer in time");
}

std::string TopologyScript::Known(const std::string& host) {
  MutexLock lock(&mutex_);
  const auto known = racks_.find(host);
  return known == racks_.end() ? "" : known->second;
}

void TopologyScript::Run() {
  for (auto hosts = Next(); !hosts.empty(); hosts = Next()) {
    // Without memory for it, they are asked for again.
    (void)Guarded([&] {
      Take(hosts, Ask(hosts));
      return absl::OkStatus();
    });
  }
}

std::vector<std::string> TopologyScript::Next() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    std::vector<std::string> hosts = Choose();
    if (!hosts.empty()) {
      ++processes_;
      return hosts;
    }
    if (questions_.empty()) {
      changed_.Wait(lock);
    } else {
      changed_.WaitUntil(lock, again_at_);
    }
  }
  return {};
}

std::vector<std::string> TopologyScript::Choose() {
  std::vector<std::string> together;
  const bool again = Clock::System().Now() >= again_at_;
  auto first = questions_.end();  // of those to ask for alone
  for (auto at = questions_.begin(); at != questions_.end(); ++at) {
    const Question& question = at->second;
    if (!question.alone && together.size() < kHostsAtOnce) together.push_back(at->first);
    if (!question.alone || !(question.urgent || again)) continue;
    if (first == questions_.end() || question.asked_last < first->second.asked_last) first = at;
  }
  if (together.empty() && first != questions_.end()) return {first->first};
  return together;
}

absl::StatusOr<std::vector<std::string>> TopologyScript::Ask(
    const std::vector<std::string>& hosts) {
  const TimePoint deadline = Clock::System().Now() + options_.run_timeout;
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<Child> child, Child::Start(path_, hosts));
  {
    MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("the coordinator stops");
    running_ = child->pid();
  }
  const absl::StatusOr<std::string> text = child->ReadAll(kMaxOutputBytes * hosts.size(), deadline);
  if (text.ok()) child->AwaitEnd(deadline);
  {
    MutexLock lock(&mutex_);
    running_ = 0;  // from now on the number may be another's
  }
  ECPIPE_RETURN_IF_ERROR(text.status());
  const int exit_code = child->Reap();
  if (exit_code != 0) {
    return absl::UnavailableError(exit_code < 0 ? "the script was ended by a signal"
                                                : "the script ended with exit code " +
                                                      std::to_string(exit_code));
  }
  return RacksOfOutput(*text, hosts.size());
}

void TopologyScript::Take(const std::vector<std::string>& hosts,
                          const absl::StatusOr<std::vector<std::string>>& racks) {
  MutexLock lock(&mutex_);
  if (racks.ok()) {
    pause_ = options_.pause;
    again_at_ = {};
  } else if (hosts.size() == 1) {
    again_at_ = Clock::System().Now() + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (racks.ok()) {
      questions_.erase(hosts[i]);
      // Asked for again if need be.
      if (racks_.size() >= options_.max_hosts) racks_.erase(racks_.begin());
      racks_[hosts[i]] = (*racks)[i];
      continue;
    }
    Question& question = questions_[hosts[i]];
    question.alone = true;
    question.asked_last = processes_;
    question.failure = racks.status();
    if (hosts.size() == 1) question.urgent = false;
  }
  changed_.NotifyAll();
}

}  // namespace ecpipe
