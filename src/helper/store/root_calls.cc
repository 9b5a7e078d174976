// SPDX-License-Identifier: Apache-2.0
#include "helper/store/root_calls.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/mutex.h"
#include "base/process/log.h"
#include "base/thread.h"

namespace ecpipe {

struct RootCalls::Call {
  enum class Phase { kWaits, kRuns, kDone, kGivenUp };

  bool Ended() const { return phase == Phase::kDone || phase == Phase::kGivenUp; }

  std::function<void()> body;
  CondVar ended;                // for the one thread that awaits it
  Phase phase = Phase::kWaits;  // guarded by the state's mutex, as what follows
  absl::Status refusal;         // why it was given up before it ran
};

struct RootCalls::State {
  State(std::string the_path, const Options& the_options)
      : path(std::move(the_path)), options(the_options) {}

  void Tell(LogLevel level, const char* event) const {
    if (!options.long_calls) Log(level, event, {{"root", path}});
  }
  absl::Status Hangs() const { return absl::UnavailableError(path + " does not answer"); }
  // Starts one for a call that is about to wait, unless there are enough.
  absl::Status ProvideThread(const std::shared_ptr<State>& self)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const std::string path;
  const Options options;
  Mutex mutex;
  CondVar work;  // for idle threads: each call wakes one of them
  CondVar left;  // for the destructor: threads have ended
  std::deque<std::shared_ptr<Call>> waiting ABSL_GUARDED_BY(mutex);
  size_t threads ABSL_GUARDED_BY(mutex) = 0;
  size_t idle ABSL_GUARDED_BY(mutex) = 0;
  size_t hung ABSL_GUARDED_BY(mutex) = 0;  // threads whose call was given up
  bool stopping ABSL_GUARDED_BY(mutex) = false;
};

absl::Status RootCalls::State::ProvideThread(const std::shared_ptr<State>& self) {
  // Another one would hang as well, and whoever asks would wait for nothing.
  if (hung > 0 && threads == hung) return Hangs();
  if (idle > waiting.size() || threads >= options.max_threads) return absl::OkStatus();
  absl::StatusOr<Thread> thread = Thread::Start([self] { MakeCalls(self); });
  if (!thread.ok()) return threads == 0 ? thread.status() : absl::OkStatus();
  thread->detach();
  ++threads;
  return absl::OkStatus();
}

RootCalls::RootCalls(const std::string& path, const Options& options)
    : state_(std::make_shared<State>(path, options)) {}

RootCalls::~RootCalls() {
  const TimePoint deadline = Clock::System().Now() + kPatience;
  State& state = *state_;
  MutexLock lock(&state.mutex);
  state.stopping = true;
  state.work.NotifyAll();
  while (state.threads > state.hung && state.left.WaitUntil(lock, deadline)) {
  }
}

std::shared_ptr<RootCalls::Call> RootCalls::Queue(std::function<void()> body) {
  auto call = std::make_shared<Call>();
  call->body = std::move(body);
  State& state = *state_;
  {
    MutexLock lock(&state.mutex);
    call->refusal = state.ProvideThread(state_);
    if (!call->refusal.ok()) {
      call->phase = Call::Phase::kGivenUp;
      return call;
    }
    state.waiting.push_back(call);
  }
  state.work.NotifyOne();
  return call;
}

bool RootCalls::AwaitEnd(State* state, Call* call, TimePoint time) {
  MutexLock lock(&state->mutex);
  while (!call->Ended() && call->ended.WaitUntil(lock, time)) {
  }
  return call->Ended();
}

absl::Status RootCalls::AwaitCall(State* state, Call* call, TimePoint deadline) {
  bool first_to_hang = false;
  {
    MutexLock lock(&state->mutex);
    while (!call->Ended() && call->ended.WaitUntil(lock, deadline)) {
    }
    if (call->phase == Call::Phase::kDone) return absl::OkStatus();
    if (!call->refusal.ok()) return call->refusal;
    const auto waits = std::find_if(state->waiting.begin(), state->waiting.end(),
                                    [&](const auto& entry) { return entry.get() == call; });
    if (waits != state->waiting.end()) state->waiting.erase(waits);
    first_to_hang = call->phase == Call::Phase::kRuns && state->hung++ == 0;
    call->phase = Call::Phase::kGivenUp;
  }
  if (first_to_hang) state->Tell(LogLevel::kWarning, "store.root_hangs");
  return state->Hangs();
}

void RootCalls::MakeCalls(const std::shared_ptr<State>& shared) {
  State& state = *shared;
  while (true) {
    std::shared_ptr<Call> call;
    std::function<void()> body;
    {
      MutexLock lock(&state.mutex);
      ++state.idle;
      while (state.waiting.empty() && !state.stopping) state.work.Wait(lock);
      --state.idle;
      if (state.stopping) {
        --state.threads;
        state.left.NotifyOne();
        return;
      }
      call = std::move(state.waiting.front());
      state.waiting.pop_front();
      body = std::move(call->body);
      call->phase = Call::Phase::kRuns;
    }
    body();
    body = nullptr;  // with what it holds, and without the lock
    bool answers_again = false;
    {
      MutexLock lock(&state.mutex);
      answers_again = call->phase == Call::Phase::kGivenUp && --state.hung == 0;
      if (call->phase == Call::Phase::kRuns) call->phase = Call::Phase::kDone;
    }
    call->ended.NotifyOne();
    if (answers_again) state.Tell(LogLevel::kInfo, "store.root_answers");
  }
}

}  // namespace ecpipe
