// SPDX-License-Identifier: Apache-2.0
#include "coordinator/busy_nodes.h"

namespace ecpipe {

struct BusyNodes::Hold::State {
  struct Node {
    int repairs = 0;
    bool ever_shared = false;
    TimePoint last_shared;  // the end of it, once that has come
  };

  explicit State(const Clock* with_clock) : clock(with_clock) {}

  const Clock* const clock;
  Mutex mutex;
  std::map<std::string, Node> nodes ABSL_GUARDED_BY(mutex);  // as many as have ever helped
};

BusyNodes::BusyNodes(const Clock* clock) : state_(std::make_shared<Hold::State>(clock)) {}

std::shared_ptr<BusyNodes::Hold> BusyNodes::Take(std::vector<std::string> nodes) {
  {
    MutexLock lock(&state_->mutex);
    for (const std::string& name : nodes) {
      Hold::State::Node& node = state_->nodes[name];
      if (++node.repairs > 1) node.ever_shared = true;
    }
  }
  return std::shared_ptr<Hold>(new Hold(state_, std::move(nodes)));
}

BusyNodes::Hold::~Hold() {
  MutexLock lock(&state_->mutex);
  for (const std::string& name : nodes_) {
    State::Node& node = state_->nodes[name];
    if (node.repairs > 1) node.last_shared = state_->clock->Now();
    --node.repairs;
  }
}

bool BusyNodes::SharedSince(const std::string& name, TimePoint since) const {
  MutexLock lock(&state_->mutex);
  const auto found = state_->nodes.find(name);
  if (found == state_->nodes.end()) return false;
  const Hold::State::Node& node = found->second;
  return node.repairs > 1 || (node.ever_shared && node.last_shared >= since);
}

}  // namespace ecpipe
