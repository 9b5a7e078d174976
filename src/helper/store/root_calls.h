// SPDX-License-Identifier: Apache-2.0
// Calls on a directory that may hang: its disk no longer answers, or the server of its file system
// has gone. Nothing can interrupt such a call, so it runs on a thread of the directory's own, and
// who made it waits only for so long.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/status.h"

namespace ecpipe {

// Thread-safe. If it is destroyed while calls hang, their threads are left to themselves: what a
// call uses must belong to the call.
class RootCalls {
 private:
  struct Call;
  struct State;

 public:
  // A call hangs if it has not come back by then. The coordinator waits twice as long for a part to
  // start.
  static constexpr Duration kPatience = std::chrono::seconds(1);
  // Further calls wait for a thread. A directory that hangs holds at most so many threads.
  static constexpr size_t kMaxThreads = 4;

  // A store without any directory has nothing to do but to wait for one that is slow: a disk that
  // spins up, a file system that is mounted by its first use.
  static constexpr Duration kFirstPatience = std::chrono::seconds(30);

  struct Options {
    size_t max_threads = kMaxThreads;
    // A call that has not come back may only have much to do, so the log does not say that the
    // directory hangs.
    bool long_calls = false;
  };

  // `path` is for errors.
  RootCalls(const std::string& path, const Options& options);
  explicit RootCalls(const std::string& path) : RootCalls(path, Options()) {}
  ~RootCalls();

  // A call that was begun. Used by one thread.
  template <typename T>
  class Pending {
   public:
    // What the call returned. UNAVAILABLE: it has not come back by `deadline`, or all threads of
    // the directory hang already; a result that comes later is destroyed. RESOURCE_EXHAUSTED: there
    // is no thread to make it, or no memory. Call it once.
    absl::StatusOr<T> Await(TimePoint deadline) {
      ECPIPE_RETURN_IF_ERROR(AwaitCall(state_.get(), call_.get(), deadline));
      return *std::move(*result_);
    }

    // Waits until then, and goes on waiting for the call: whether it has come back, or never will.
    bool HasEndedBy(TimePoint time) { return AwaitEnd(state_.get(), call_.get(), time); }

   private:
    friend class RootCalls;
    std::shared_ptr<State> state_;  // shared with RootCalls and its threads
    std::shared_ptr<Call> call_;    // shared with the thread that makes it
    std::shared_ptr<std::optional<absl::StatusOr<T>>> result_;
  };

  // Begins a call, at once or when a thread is free.
  template <typename T>
  Pending<T> Begin(std::function<absl::StatusOr<T>()> call) {
    Pending<T> pending;
    pending.state_ = state_;
    pending.result_ = std::make_shared<std::optional<absl::StatusOr<T>>>();
    pending.call_ = Queue([result = pending.result_, call = std::move(call)] {
      result->emplace(Guarded(std::cref(call)));
    });
    return pending;
  }

  // Awaits calls that open the directories of a store: kPatience, and up to kFirstPatience while
  // none has succeeded and some have not come back.
  template <typename T>
  static std::vector<absl::StatusOr<T>> AwaitFirst(std::vector<Pending<T>> calls) {
    constexpr Duration kStep = std::chrono::milliseconds(100);
    std::vector<std::optional<absl::StatusOr<T>>> results(calls.size());
    const TimePoint begun = Clock::System().Now();
    TimePoint until = begun + kPatience;
    for (bool enough = false; !enough; until += kStep) {
      bool succeeded = false;
      bool all = true;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (!results[i] && calls[i].HasEndedBy(until)) results[i] = calls[i].Await(until);
        all = all && results[i].has_value();
        succeeded = succeeded || (results[i] && results[i]->ok());
      }
      enough = succeeded || all || until - begun >= kFirstPatience;
    }
    std::vector<absl::StatusOr<T>> ended;
    for (size_t i = 0; i < calls.size(); ++i) {
      ended.push_back(results[i] ? *std::move(results[i]) : calls[i].Await(until));
    }
    return ended;
  }

 private:
  std::shared_ptr<Call> Queue(std::function<void()> body);
  static absl::Status AwaitCall(State* state, Call* call, TimePoint deadline);
  static bool AwaitEnd(State* state, Call* call, TimePoint time);
  static void MakeCalls(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // shared with the threads, which may outlive this
};

}  // namespace ecpipe
