// SPDX-License-Identifier: Apache-2.0
// Which nodes take part in which repairs and probes. It tells whether a repair had a node to
// itself, so that its times measure the links of that node.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace ecpipe {

// Thread-safe.
class BusyNodes {
  struct State;

 public:
  // The nodes of one repair. May outlive the BusyNodes.
  class Hold {
   public:
    ~Hold() { Release(); }

    // The repair is over; which nodes it shared stays known.
    void Release();
    bool Has(const std::string& node) const { return nodes_.contains(node); }
    // Whether another repair or probe used the node at the same time, before Release().
    bool Shared(const std::string& node) const;

   private:
    friend class BusyNodes;
    Hold(std::shared_ptr<State> state, std::set<std::string> nodes)
        : state_(std::move(state)), nodes_(std::move(nodes)) {}

    const std::shared_ptr<State> state_;
    const std::set<std::string> nodes_;
    std::set<std::string> shared_;  // guarded by the state's mutex
    bool released_ = false;         // too
  };

  explicit BusyNodes(const Clock* clock) : clock_(clock), state_(std::make_shared<State>()) {}

  std::shared_ptr<Hold> Reserve(const std::vector<std::string>& nodes);
  // Until then repairs may run that this coordinator does not know: all nodes count as shared.
  void DistrustUntil(TimePoint till);

 private:
  struct State {
    Mutex mutex;
    std::map<std::string, std::set<Hold*>> holds ABSL_GUARDED_BY(mutex);  // not released; by node
    TimePoint distrust_until ABSL_GUARDED_BY(mutex){};
  };

  const Clock* const clock_;
  const std::shared_ptr<State> state_;
};

}  // namespace ecpipe
