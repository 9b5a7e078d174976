// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"

namespace ecpipe {

// Keeps a block from being stored and removed at the same time. Thread-safe. Claims outlive it.
class BlockClaims {
 public:
  // Holds until the last copy is destroyed.
  using Claim = std::shared_ptr<const void>;

  // Null: the block is being removed.
  Claim ToStore(const std::string& block_id) {
    MutexLock lock(&state_->mutex);
    if (state_->removed.contains(block_id)) return nullptr;
    ++state_->stored[block_id];
    return Make([block_id](State* state) {
      const auto found = state->stored.find(block_id);
      if (--found->second == 0) state->stored.erase(found);
    });
  }

  // Null: the block is being stored or removed.
  Claim ToRemove(const std::string& block_id) {
    MutexLock lock(&state_->mutex);
    if (state_->stored.contains(block_id) || !state_->removed.insert(block_id).second) {
      return nullptr;
    }
    return Make([block_id](State* state) { state->removed.erase(block_id); });
  }

 private:
  struct State {
    Mutex mutex;
    std::map<std::string, int> stored;  // how often each is being stored
    std::set<std::string> removed;      // being removed
  };

  // `end` is called with the state's mutex held.
  template <typename End>
  Claim Make(End end) const {
    const auto release = [state = state_, end](const void*) {
      MutexLock lock(&state->mutex);
      end(state.get());
    };
    return Claim(static_cast<const void*>(this), release);
  }

  const std::shared_ptr<State> state_ = std::make_shared<State>();  // shared with the claims
};

}  // namespace ecpipe
