// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/busy_nodes.h"

namespace ecpipe {

std::shared_ptr<BusyNodes::Hold> BusyNodes::Reserve(const std::vector<std::string>& nodes) {
  std::shared_ptr<Hold> hold(new Hold(state_, {nodes.begin(), nodes.end()}));
  MutexLock lock(&state_->mutex);
  const bool distrusted = clock_->Now() < state_->distrust_until;
  for (const std::string& node : hold->nodes_) {
    std::set<Hold*>& others = state_->holds[node];
    for (Hold* other : others) other->shared_.insert(node);
    if (!others.empty() || distrusted) hold->shared_.insert(node);
    others.insert(hold.get());
  }
  return hold;
}

void BusyNodes::DistrustUntil(TimePoint till) {
  MutexLock lock(&state_->mutex);
  state_->distrust_until = till;
}

void BusyNodes::Hold::Release() {
  MutexLock lock(&state_->mutex);
  if (released_) return;
  released_ = true;
  for (const std::string& node : nodes_) {
    const auto found = state_->holds.find(node);
    found->second.erase(this);
    if (found->second.empty()) state_->holds.erase(found);
  }
}

bool BusyNodes::Hold::Shared(const std::string& node) const {
  MutexLock lock(&state_->mutex);
  return shared_.contains(node);
}

}  // namespace ecpipe
