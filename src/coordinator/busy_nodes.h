// SPDX-License-Identifier: Apache-2.0
// Which nodes take part in repairs, and when one last took part in two at once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"

namespace ecpipe {

// Thread-safe.
class BusyNodes {
 public:
  // The nodes are in a repair for as long as this lives. It may outlive the BusyNodes.
  class Hold {
   public:
    ~Hold();

   private:
    friend class BusyNodes;
    struct State;
    Hold(std::shared_ptr<State> state, std::vector<std::string> nodes)
        : state_(std::move(state)), nodes_(std::move(nodes)) {}
    std::shared_ptr<State> state_;
    std::vector<std::string> nodes_;
  };

  // `clock` outlives this and all holds.
  explicit BusyNodes(const Clock* clock);

  std::shared_ptr<Hold> Take(std::vector<std::string> nodes);
  // Whether the node has been in two repairs at once at some time since.
  bool SharedSince(const std::string& node, TimePoint since) const;

 private:
  std::shared_ptr<Hold::State> state_;
};

}  // namespace ecpipe
