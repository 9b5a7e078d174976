// SPDX-License-Identifier: Apache-2.0
// One thread, a virtual clock and a seed: runs what production runs on threads as fibres, and
// everything else as events. All that happens, happens in the order of virtual time; what is due at
// one time is ordered by the seed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/simulator.h"
#include "sim/fibre.h"
#include "sim/random.h"

namespace ecpipe::sim {

// A process of the simulated cluster, from one start to its crash. After a crash its fibres go on
// to their end, so that nothing leaks; but whatever would take effect outside asks `alive` first.
struct Process {
  std::string name;
  bool alive = true;
  int fibres = 0;  // that have not ended
};

// What a simulated descriptor stands for.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // As pollfd.revents.
  virtual short Revents(int fd, short events) = 0;
};

class Scheduler : public Simulator {
 public:
  // Installs itself as the process's simulator until it is destroyed.
  explicit Scheduler(uint64_t seed);
  ~Scheduler() override;

  Random& random() { return random_; }
  // Runs the earliest event; false when there is none.
  bool Step();
  // A number for everything that has happened so far: replaying a seed gives the same again.
  uint64_t fingerprint() const { return fingerprint_; }
  uint64_t steps() const { return steps_; }
  // That have not ended.
  size_t fibres() const { return tasks_.size(); }

  void After(Duration delay, std::function<void()> action);
  uint64_t Spawn(std::shared_ptr<Process> process, std::function<void()> body);

  // From within a fibre. Block() returns false when the deadline passed before a Wake().
  bool Block(std::optional<TimePoint> deadline);
  void Sleep(Duration duration) { Block(Now() + duration); }
  uint64_t current_fibre() const;
  const std::shared_ptr<Process>& current_process() const;
  // A fibre that is gone, or not blocked, is left alone.
  void Wake(uint64_t fibre);

  // A new descriptor, polled by asking `pollable`, until Unwatch.
  int Watch(Pollable* pollable);
  void Unwatch(int fd);
  // `fd` may have become ready.
  void Signalled(int fd) override;

  // Every event of the world goes through here: into the fingerprint, and to the listener.
  void Trace(const std::string& text);
  void SetTrace(std::function<void(TimePoint, const std::string&)> listener) {
    trace_ = std::move(listener);
  }
  void SetFaultPoint(std::function<absl::Status(Process*, const char*)> fault_point) {
    fault_point_ = std::move(fault_point);
  }

  TimePoint Now() override { return now_; }
  void FillRandom(std::span<uint8_t> out) override { random_.Fill(out); }
  absl::Status FaultPoint(const char* name) override;
  int Poll(std::span<pollfd> fds, Duration timeout) override;
  bool Wait(const void* condition, std::unique_lock<std::mutex>& lock,
            std::optional<TimePoint> deadline) override;
  void Notify(const void* condition) override;
  uint64_t StartThread(std::function<void()> body) override;
  void JoinThread(uint64_t thread) override;

 private:
  struct Task {
    uint64_t id = 0;
    std::shared_ptr<Process> process;  // shared by its fibres
    std::unique_ptr<Fibre> fibre;
    uint64_t waits = 0;  // so far: tells a timer of an earlier wait from this one's
    bool blocked = false;
    bool woken = false;
    std::vector<uint64_t> joiners;
  };
  using Key = std::tuple<TimePoint, uint64_t, uint64_t>;  // when, by the seed, and in order

  void Push(TimePoint when, std::function<void()> action);
  void ResumeIfWaiting(uint64_t fibre, uint64_t wait);
  void Run(Task* task);
  void Mix(uint64_t value);
  int ReadyNow(std::span<pollfd> fds);
  template <typename Waiters, typename Of>
  void WakeAll(const Waiters& waiters, Of key);

  Random random_;
  TimePoint now_;
  uint64_t last_number_ = 0;
  uint64_t steps_ = 0;
  uint64_t fingerprint_ = 0xcbf29ce484222325;
  std::map<Key, std::function<void()>> events_;
  std::map<uint64_t, Task> tasks_;
  Task* current_ = nullptr;
  std::multimap<const void*, uint64_t> condition_waiters_;  // fibres; never walked across keys
  std::multimap<int, uint64_t> fd_waiters_;
  std::map<int, Pollable*> pollables_;
  int last_fd_ = 1 << 24;  // above all real ones
  std::function<void(TimePoint, const std::string&)> trace_;
  std::function<absl::Status(Process*, const char*)> fault_point_;
};

}  // namespace ecpipe::sim
