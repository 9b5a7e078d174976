// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/host_lookups.h"

namespace ecpipe {

// A name server that answers when it is told to. Look-ups may outlive it.
class NameServer {
 public:
  ~NameServer() { Hang(false); }

  HostLookups::Resolver resolver() const {
    return [state = state_](const std::string& host) { return state->Resolve(host); };
  }
  void Hang(bool hangs) {
    MutexLock lock(&state_->mutex);
    state_->hangs = hangs;
    state_->changed.NotifyAll();
  }
  // Of each name but "nowhere", which nobody knows, and "busy", which it will look up another time.
  void Knows(HostLookups::Addresses addresses) {
    MutexLock lock(&state_->mutex);
    state_->addresses = std::move(addresses);
  }
  // Names, in the order in which they were asked for.
  std::vector<std::string> asked() {
    MutexLock lock(&state_->mutex);
    return state_->asked;
  }
  size_t most_hanging() {
    MutexLock lock(&state_->mutex);
    return state_->most_hanging;
  }
  void AwaitHanging(size_t count) {
    MutexLock lock(&state_->mutex);
    while (state_->hanging != count) state_->changed.Wait(lock);
  }

 private:
  struct State {
    absl::StatusOr<HostLookups::Addresses> Resolve(const std::string& host) {
      MutexLock lock(&mutex);
      asked.push_back(host);
      ++hanging;
      most_hanging = std::max(most_hanging, hanging);
      changed.NotifyAll();
      while (hangs) changed.Wait(lock);
      --hanging;
      changed.NotifyAll();
      if (host == "nowhere") return HostLookups::FailureOf(host, EAI_NONAME);
      if (host == "busy") return HostLookups::FailureOf(host, EAI_AGAIN);
      return addresses;
    }

    Mutex mutex;
    CondVar changed;
    bool hangs ABSL_GUARDED_BY(mutex) = false;
    std::vector<std::string> asked ABSL_GUARDED_BY(mutex);
    size_t hanging ABSL_GUARDED_BY(mutex) = 0;
    size_t most_hanging ABSL_GUARDED_BY(mutex) = 0;
    HostLookups::Addresses addresses ABSL_GUARDED_BY(mutex);
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();  // shared with the look-ups
};

}  // namespace ecpipe
