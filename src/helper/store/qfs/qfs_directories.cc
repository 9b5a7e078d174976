// SPDX-License-Identifier: Apache-2.0
#include "helper/store/qfs/qfs_directories.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"

namespace ecpipe {
namespace {

// A disk that is only busy answers sooner.
constexpr Duration kHungAfter = std::chrono::seconds(2);

UniqueFd OpenPath(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// What one call of Each() waits for.
struct Round {
  explicit Round(size_t directories) : outcomes(directories), waiting(directories) {}

  void Done(size_t i, absl::Status outcome) {
    {
      MutexLock lock(&mutex);
      outcomes[i] = std::move(outcome);
      done.resize(outcomes.size());
      done[i] = true;
      --waiting;
    }
    changed.NotifyAll();
  }

  Mutex mutex;
  CondVar changed;
  std::vector<absl::Status> outcomes ABSL_GUARDED_BY(mutex);
  std::vector<bool> done ABSL_GUARDED_BY(mutex);
  size_t waiting ABSL_GUARDED_BY(mutex);
};

}  // namespace

struct QfsDirectories::Place {
  struct Task {
    size_t index = 0;
    Work work;
    std::shared_ptr<Round> round;  // shared with the caller, who may have given up
  };

  void Run() {
    while (true) {
      Task task;
      {
        MutexLock lock(&mutex);
        busy_since.reset();
        while (!stopping && tasks.empty()) changed.Wait(lock);
        if (stopping) break;
        task = std::move(tasks.front());
        tasks.pop_front();
        busy_since = Clock::System().Now();
      }
      // Opened each time: it may have been mounted anew.
      const UniqueFd directory = open(path);
      task.round->Done(task.index, directory.valid()
                                       ? task.work(directory.get())
                                       : ErrnoStatus(errno, "open chunk directory " + path));
    }
    {
      MutexLock lock(&mutex);
      ended = true;
    }
    changed.NotifyAll();
  }

  std::string path;
  Opener open;
  Mutex mutex;
  CondVar changed;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::optional<TimePoint> busy_since ABSL_GUARDED_BY(mutex);
  bool ended ABSL_GUARDED_BY(mutex) = false;
  std::deque<Task> tasks ABSL_GUARDED_BY(mutex);
  Thread thread;
};

QfsDirectories::QfsDirectories(std::vector<std::string> paths, Opener open) {
  for (std::string& path : paths) {
    auto place = std::make_shared<Place>();
    place->path = std::move(path);
    place->open = open ? open : Opener(OpenPath);
    place->thread = Thread([place] { place->Run(); });
    places_.push_back(std::move(place));
  }
}

QfsDirectories::~QfsDirectories() {
  constexpr Duration kPatience = std::chrono::seconds(1);
  for (const auto& place : places_) {
    {
      MutexLock lock(&place->mutex);
      place->stopping = true;
    }
    place->changed.NotifyAll();
  }
  const TimePoint give_up = Clock::System().Now() + kPatience;
  for (const auto& place : places_) {
    bool ended = false;
    {
      MutexLock lock(&place->mutex);
      while (!place->ended && place->changed.WaitUntil(lock, give_up)) {
      }
      ended = place->ended;
    }
    if (ended) {
      place->thread.join();
    } else {
      place->thread.detach();  // it keeps its place until its disk answers
    }
  }
}

const std::string& QfsDirectories::path(size_t i) const { return places_[i]->path; }

std::vector<absl::Status> QfsDirectories::Each(Duration patience,
                                               const std::function<Work(size_t i)>& work,
                                               const std::function<bool()>& enough) {
  const auto round = std::make_shared<Round>(places_.size());
  const auto hangs = [&](size_t i) {
    return absl::UnavailableError("chunk directory " + path(i) + " does not answer");
  };
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = *places_[i];
    bool hung = false;
    {
      MutexLock lock(&place.mutex);
      hung = place.tasks.size() >= kMaxWaiting ||
             (place.busy_since && Clock::System().Now() - *place.busy_since > kHungAfter);
      if (!hung) place.tasks.push_back({i, work(i), round});
    }
    if (hung) round->Done(i, hangs(i));
    place.changed.NotifyAll();
  }
  const TimePoint give_up = Clock::System().Now() + patience;
  MutexLock lock(&round->mutex);
  // `enough` may come to be true by something else than a directory.
  constexpr Duration kLook = std::chrono::milliseconds(100);
  while (round->waiting > 0 && !(enough && enough())) {
    const TimePoint now = Clock::System().Now();
    if (now >= give_up) break;
    round->changed.WaitUntil(lock, std::min<TimePoint>(give_up, now + kLook));
  }
  std::vector<absl::Status> outcomes = round->outcomes;
  for (size_t i = 0; i < places_.size(); ++i) {
    const bool done = i < round->done.size() && round->done[i];
    if (!done) outcomes[i] = hangs(i);
  }
  return outcomes;
}

}  // namespace ecpipe
