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
  State(std::string the_path, const Options& the_options)
      : path(std::move(the_path)), options(the_options) {}

  void Tell(LogLevel level, const char* event) const {
    if (!options.long_calls) Log(level, event, {{"root", path}});
  }
  absl::Status Hangs() const { return absl::UnavailableError(path + " does not answer"); }

  const std::string path;
  const Options options;
  Mutex mutex;
  CondVar changed;
  std::deque<std::shared_ptr<Call>> waiting ABSL_GUARDED_BY(mutex);
  size_t threads ABSL_GUARDED_BY(mutex) = 0;
  size_t idle ABSL_GUARDED_BY(mutex) = 0;
  size_t hung ABSL_GUARDED_BY(mutex) = 0;  // threads whose call was given up
  bool stopping ABSL_GUARDED_BY(mutex) = false;
};

RootCalls::RootCalls(const std::string& path, const Options& options)
    : state_(std::make_shared<State>(path, options)) {}

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
  if (state.idle <= state.waiting.size() && state.threads < state.options.max_threads) {
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
  bool first_to_hang = false;
  {
    MutexLock lock(&state->mutex);
    while (!call->Ended() && state->changed.WaitUntil(lock, deadline)) {
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
    bool answers_again = false;
    {
      MutexLock lock(&state.mutex);
      answers_again = call->phase == Call::Phase::kGivenUp && --state.hung == 0;
      if (call->phase == Call::Phase::kRuns) call->phase = Call::Phase::kDone;
      state.changed.NotifyAll();
    }
    if (answers_again) state.Tell(LogLevel::kInfo, "store.root_answers");
  }
}

}  // namespace ecpipe
