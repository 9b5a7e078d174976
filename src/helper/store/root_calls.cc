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
  Phase phase = Phase::kWaits;  // guarded by the state's mutex, as what follows
  absl::Status refusal;         // why it was given up before it ran
};

struct RootCalls::State {
  State(std::string the_path, size_t most_threads)
      : path(std::move(the_path)), max_threads(most_threads) {}

  absl::Status Hangs() const { return absl::UnavailableError(path + " does not answer"); }

  const std::string path;
  const size_t max_threads;
  Mutex mutex;
  CondVar changed;
  std::deque<std::shared_ptr<Call>> waiting ABSL_GUARDED_BY(mutex);
  size_t threads ABSL_GUARDED_BY(mutex) = 0;
  size_t idle ABSL_GUARDED_BY(mutex) = 0;
  size_t hung ABSL_GUARDED_BY(mutex) = 0;  // threads whose call was given up
  bool stopping ABSL_GUARDED_BY(mutex) = false;
};

RootCalls::RootCalls(const std::string& path, size_t max_threads)
    : state_(std::make_shared<State>(path, max_threads)) {}

RootCalls::~RootCalls() {
  const TimePoint deadline = Clock::System().Now() + kPatience;
  State& state = *state_;
  MutexLock lock(&state.mutex);
  state.stopping = true;
  state.changed.NotifyAll();
  while (state.threads > state.hung && state.changed.WaitUntil(lock, deadline)) {
  }
}

std::shared_ptr<RootCalls::Call> RootCalls::Queue(std::function<void()> body) {
  auto call = std::make_shared<Call>();
  call->body = std::move(body);
  State& state = *state_;
  MutexLock lock(&state.mutex);
  const auto refuse = [&](absl::Status why) {
    call->phase = Call::Phase::kGivenUp;
    call->refusal = std::move(why);
    return call;
  };
  // Another thread would hang as well, and whoever asks would wait for nothing.
  if (state.hung > 0 && state.threads == state.hung) return refuse(state.Hangs());
  if (state.idle <= state.waiting.size() && state.threads < state.max_threads) {
    absl::StatusOr<Thread> thread = Thread::Start([shared = state_] { MakeCalls(shared); });
    if (thread.ok()) {
      thread->detach();
      ++state.threads;
    } else if (state.threads == 0) {
      return refuse(thread.status());
    }
  }
  state.waiting.push_back(call);
  state.changed.NotifyAll();
  return call;
}

bool RootCalls::AwaitEnd(State* state, Call* call, TimePoint time) {
  MutexLock lock(&state->mutex);
  while (!call->Ended() && state->changed.WaitUntil(lock, time)) {
  }
  return call->Ended();
}

absl::Status RootCalls::AwaitCall(State* state, Call* call, TimePoint deadline) {
  MutexLock lock(&state->mutex);
  while (!call->Ended() && state->changed.WaitUntil(lock, deadline)) {
  }
  if (call->phase == Call::Phase::kDone) return absl::OkStatus();
  if (!call->refusal.ok()) return call->refusal;
  const auto waits = std::find_if(state->waiting.begin(), state->waiting.end(),
                                  [&](const auto& entry) { return entry.get() == call; });
  if (waits != state->waiting.end()) state->waiting.erase(waits);
  if (call->phase == Call::Phase::kRuns && state->hung++ == 0) {
    Log(LogLevel::kWarning, "store.root_hangs", {{"root", state->path}});
  }
  call->phase = Call::Phase::kGivenUp;
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
      while (state.waiting.empty() && !state.stopping) state.changed.Wait(lock);
      --state.idle;
      if (state.stopping) {
        --state.threads;
        state.changed.NotifyAll();
        return;
      }
      call = std::move(state.waiting.front());
      state.waiting.pop_front();
      body = std::move(call->body);
      call->phase = Call::Phase::kRuns;
    }
    body();
    body = nullptr;  // with what it holds, and without the lock
    MutexLock lock(&state.mutex);
    if (call->phase == Call::Phase::kGivenUp && --state.hung == 0) {
      Log(LogLevel::kInfo, "store.root_answers", {{"root", state.path}});
    }
    if (call->phase == Call::Phase::kRuns) call->phase = Call::Phase::kDone;
    state.changed.NotifyAll();
  }
}

}  // namespace ecpipe
