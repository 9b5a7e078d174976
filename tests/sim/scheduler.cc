// SPDX-License-Identifier: Apache-2.0
#include "sim/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace ecpipe::sim {

Scheduler::Scheduler(uint64_t seed) : random_(seed), now_(std::chrono::hours(1000)) {
  ECPIPE_CHECK(Simulator::Installed() == nullptr);
  Simulator::Install(this);
}

Scheduler::~Scheduler() { Simulator::Install(nullptr); }

void Scheduler::Mix(uint64_t value) { fingerprint_ = (fingerprint_ ^ value) * 0x100000001b3; }

void Scheduler::Trace(const std::string& text) {
  for (const char c : text) Mix(static_cast<uint8_t>(c));
  if (trace_) trace_(now_, text);
}

void Scheduler::Push(TimePoint when, std::function<void()> action) {
  events_.emplace(Key{std::max(when, now_), random_.Next(), ++last_number_}, std::move(action));
}

void Scheduler::After(Duration delay, std::function<void()> action) {
  Push(now_ + delay, std::move(action));
}

bool Scheduler::Step() {
  if (events_.empty()) return false;
  auto event = events_.extract(events_.begin());
  now_ = std::get<0>(event.key());
  ++steps_;
  Mix(static_cast<uint64_t>(now_.time_since_epoch().count()));
  event.mapped()();
  return true;
}

uint64_t Scheduler::Spawn(std::shared_ptr<Process> process, std::function<void()> body) {
  const uint64_t id = ++last_number_;
  ++process->fibres;
  Task& task = tasks_[id];
  task.id = id;
  task.process = std::move(process);
  task.fibre = std::make_unique<Fibre>(std::move(body));
  task.blocked = true;
  Wake(id);
  return id;
}

uint64_t Scheduler::current_fibre() const {
  ECPIPE_CHECK(current_ != nullptr);
  return current_->id;
}

const std::shared_ptr<Process>& Scheduler::current_process() const {
  ECPIPE_CHECK(current_ != nullptr);
  return current_->process;
}

bool Scheduler::Block(std::optional<TimePoint> deadline) {
  ECPIPE_CHECK(current_ != nullptr);
  Task* const task = current_;
  const uint64_t wait = ++task->waits;
  task->blocked = true;
  task->woken = false;
  if (deadline) Push(*deadline, [this, id = task->id, wait] { ResumeIfWaiting(id, wait); });
  task->fibre->Yield();
  return task->woken;
}

void Scheduler::Wake(uint64_t fibre) {
  const auto found = tasks_.find(fibre);
  if (found == tasks_.end() || !found->second.blocked || found->second.woken) return;
  found->second.woken = true;
  Push(now_, [this, fibre, wait = found->second.waits] { ResumeIfWaiting(fibre, wait); });
}

void Scheduler::ResumeIfWaiting(uint64_t fibre, uint64_t wait) {
  const auto found = tasks_.find(fibre);
  if (found == tasks_.end()) return;
  Task& task = found->second;
  if (task.blocked && task.waits == wait) Run(&task);
}

void Scheduler::Run(Task* task) {
  ECPIPE_CHECK(current_ == nullptr);
  Mix(task->id);
  task->blocked = false;
  current_ = task;
  task->fibre->Resume();
  current_ = nullptr;
  if (!task->fibre->finished()) return;
  const std::vector<uint64_t> joiners = std::move(task->joiners);
  --task->process->fibres;
  tasks_.erase(task->id);
  for (const uint64_t joiner : joiners) Wake(joiner);
}

uint64_t Scheduler::StartThread(std::function<void()> body) {
  return Spawn(current_process(), std::move(body));
}

void Scheduler::JoinThread(uint64_t thread) {
  for (auto found = tasks_.find(thread); found != tasks_.end(); found = tasks_.find(thread)) {
    found->second.joiners.push_back(current_fibre());
    Block(std::nullopt);
  }
}

template <typename Waiters, typename Of>
void Scheduler::WakeAll(const Waiters& waiters, Of key) {
  const auto [begin, end] = waiters.equal_range(key);
  for (auto waiter = begin; waiter != end; ++waiter) Wake(waiter->second);
}

bool Scheduler::Wait(const void* condition, std::unique_lock<std::mutex>& lock,
                     std::optional<TimePoint> deadline) {
  const auto waiter = condition_waiters_.emplace(condition, current_fibre());
  lock.unlock();
  const bool notified = Block(deadline);
  condition_waiters_.erase(waiter);
  // Nobody yields with a mutex in hand, so it is free whenever a fibre runs.
  ECPIPE_CHECK(lock.try_lock());
  return notified;
}

void Scheduler::Notify(const void* condition) { WakeAll(condition_waiters_, condition); }

int Scheduler::Watch(Pollable* pollable) {
  pollables_[++last_fd_] = pollable;
  return last_fd_;
}

void Scheduler::Unwatch(int fd) {
  pollables_.erase(fd);
  Signalled(fd);
}

void Scheduler::Signalled(int fd) { WakeAll(fd_waiters_, fd); }

int Scheduler::ReadyNow(std::span<pollfd> fds) {
  int ready = 0;
  for (pollfd& polled : fds) {
    polled.revents = 0;
    if (const auto found = pollables_.find(polled.fd); found != pollables_.end()) {
      polled.revents = found->second->Revents(polled.fd, polled.events);
    } else if (polled.fd >= 0) {
      ECPIPE_CHECK(::poll(&polled, 1, 0) >= 0);
    }
    ready += polled.revents != 0 ? 1 : 0;
  }
  return ready;
}

int Scheduler::Poll(std::span<pollfd> fds, Duration timeout) {
  const TimePoint deadline = now_ + std::max(timeout, Duration(0));
  while (true) {
    const int ready = ReadyNow(fds);
    if (ready > 0 || now_ >= deadline) return ready;
    std::vector<std::multimap<int, uint64_t>::iterator> waits;
    for (const pollfd& polled : fds) {
      if (polled.fd >= 0) waits.push_back(fd_waiters_.emplace(polled.fd, current_fibre()));
    }
    Block(deadline);
    for (const auto& wait : waits) fd_waiters_.erase(wait);
  }
}

absl::Status Scheduler::FaultPoint(const char* name) {
  if (!fault_point_ || current_ == nullptr) return absl::OkStatus();
  return fault_point_(current_->process.get(), name);
}

}  // namespace ecpipe::sim
