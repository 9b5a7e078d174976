// SPDX-License-Identifier: Apache-2.0
// An answer of the NameNode. It is fetched from time to time, and sooner if somebody wants a newer
// one.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes/utf8_text.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/process/log.h"
#include "base/status.h"
#include "base/thread.h"

namespace ecpipe {

// The latest complete answer, and its age.
template <typename Table>
struct KnownAnswer {
  std::shared_ptr<const Table> table;  // shared with all readers; null: no answer yet
  TimePoint as_of{};                   // when the NameNode was asked
  double age_seconds = 0;              // the time since then
  std::string last_error;              // why a later attempt failed; empty: none did
};

// Thread-safe. One thread asks the NameNode; an incomplete answer changes nothing.
template <typename Table>
class NameNodeAnswers {
 public:
  using Known = KnownAnswer<Table>;
  using Fetch = std::function<absl::StatusOr<Table>(const std::function<bool()>& stop)>;

  // Two attempts are at least kShortestPause apart, and kPauseOfFetch times as long as the last one
  // took: fsck walks the whole tree, and the NameNode must have time for other work.
  static constexpr Duration kShortestPause = std::chrono::seconds(3);
  static constexpr int kPauseOfFetch = 4;

  // `what` is asked for, as the log names it.
  NameNodeAnswers(std::string what, Fetch fetch, Duration refresh)
      : what_(std::move(what)),
        fetch_(std::move(fetch)),
        refresh_(refresh),
        thread_([this] { Run(); }) {}

  // Stops, and cancels a running fetch.
  ~NameNodeAnswers() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }

  Known Get() {
    MutexLock lock(&mutex_);
    return View();
  }

  // The same with an answer that was asked for at `as_of` or later, if one comes within `patience`;
  // otherwise the latest answer. Asks the NameNode if necessary.
  Known GetSince(TimePoint as_of, Duration patience) {
    const TimePoint give_up = Clock::System().Now() + patience;
    MutexLock lock(&mutex_);
    const uint64_t before = attempts_;
    while (!stopping_ && (known_.table == nullptr || known_.as_of < as_of)) {
      wanted_since_ = std::max(wanted_since_.value_or(as_of), as_of);
      changed_.NotifyAll();
      // One attempt that has failed, and one that was under way at first, are enough to know.
      if (attempts_ >= before + 2 || !changed_.WaitUntil(lock, give_up)) break;
    }
    return View();
  }

 private:
  void Run() {
    while (true) {
      {
        MutexLock lock(&mutex_);
        while (!stopping_) {
          const bool wanted =
              wanted_since_ && (known_.table == nullptr || known_.as_of < *wanted_since_);
          const TimePoint next = wanted ? not_before_ : std::max(due_, not_before_);
          if (Clock::System().Now() >= next) break;
          changed_.WaitUntil(lock, next);
        }
        if (stopping_) return;
      }
      FetchOnce();
    }
  }

  void FetchOnce() {
    const TimePoint began = Clock::System().Now();
    absl::StatusOr<Table> fetched = fetch_([this] {
      MutexLock lock(&mutex_);
      return stopping_;
    });
    const TimePoint ended = Clock::System().Now();
    const std::string error = fetched.ok() ? "" : CleanText(StatusText(fetched.status()));
    std::shared_ptr<const Table> made;
    if (fetched.ok()) made = std::make_shared<const Table>(*std::move(fetched));
    bool told = false;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      // Successes are told of when they are news.
      told = error == known_.last_error && (made == nullptr || known_.table != nullptr);
      known_.last_error = error;
      if (made != nullptr) {
        known_.table = made;
        known_.as_of = began;
      }
      ++attempts_;
      wanted_since_.reset();
      not_before_ = ended + std::max<Duration>(kShortestPause, kPauseOfFetch * (ended - began));
      // After a failure soon again: the answer is as old as it was.
      due_ =
          ended + (made != nullptr ? refresh_ : std::min<Duration>(refresh_, 10 * kShortestPause));
    }
    changed_.NotifyAll();
    if (told) return;
    if (made == nullptr) {
      Log(LogLevel::kWarning, "namenode.fetch_failed",
          {{"what", what_},
           {"status", error},
           {"hint", "the coordinator keeps using the last answer of the NameNode"}});
    } else {
      Log(LogLevel::kInfo, "namenode.fetched",
          {{"what", what_}, {"number", std::to_string(made->size())}});
    }
  }

  Known View() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Known view = known_;
    if (view.table != nullptr) view.age_seconds = Seconds(Clock::System().Now() - view.as_of);
    return view;
  }

  const std::string what_;
  const Fetch fetch_;
  const Duration refresh_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Known known_ ABSL_GUARDED_BY(mutex_);  // without the age
  // When the next regular attempt is due, since when a caller wants one, and the earliest time for
  // one.
  TimePoint due_ ABSL_GUARDED_BY(mutex_){};
  std::optional<TimePoint> wanted_since_ ABSL_GUARDED_BY(mutex_);
  TimePoint not_before_ ABSL_GUARDED_BY(mutex_){};
  uint64_t attempts_ ABSL_GUARDED_BY(mutex_) = 0;  // attempts that have ended
  Thread thread_;
};

// Asks servers in turn until one answers, and joins the errors of all if none does. CANCELLED ends
// it.
template <typename Answer>
absl::StatusOr<Answer> AskInTurn(
    const std::vector<std::string>& servers,
    const std::function<absl::StatusOr<Answer>(const std::string& server)>& ask) {
  absl::Status failed;
  for (const std::string& server : servers) {
    absl::StatusOr<Answer> answer = ask(server);
    if (answer.ok() || absl::IsCancelled(answer.status())) return answer;
    const std::string before = failed.ok() ? "" : std::string(failed.message()) + "; ";
    failed = absl::Status(failed.ok() ? answer.status().code() : failed.code(),
                          before + std::string(answer.status().message()));
  }
  return failed;
}

}  // namespace ecpipe
