// SPDX-License-Identifier: Apache-2.0
// Nodes whose heartbeats come while their helpers answer no call: a firewall that works in one
// direction, a control port whose threads hang. One repair finds that out, and all leave the node
// out until it answers. Pure: no lock, no clock; time is handed in.
//
//   answers --NoAnswer--> silent --Answered, at `readmit_from` or later--> answers
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"

namespace ecpipe {

class SilentNodes {
 public:
  // A node that falls silent again within this time of its readmission is readmitted later: after
  // two seconds, then four, and so on.
  static constexpr Duration kMemory = std::chrono::minutes(1);
  static constexpr Duration kLongestPause = std::chrono::minutes(1);

  struct Silence {
    std::string reason;
    TimePoint since;
  };

  // The node's helper has not answered a call by its deadline. True: it was not silent before.
  bool NoAnswer(const std::string& node, const std::string& reason, TimePoint now);
  // It has answered a call that asks for nothing else. True: it was silent, and no longer is.
  bool Answered(const std::string& node, TimePoint now);
  // The node has another helper, of which nothing is known, or has gone.
  void Forget(const std::string& node) { nodes_.erase(node); }
  // Forgets nodes that have gone, and what is too old to count.
  void Tidy(const std::function<bool(const std::string& node)>& gone, TimePoint now);

  // Null: the node is not silent. Valid until the next change.
  const Silence* Find(const std::string& node) const;
  // The silent nodes.
  std::vector<std::string> All() const;
  // Those that should be asked now whether they answer again.
  std::vector<std::string> ToProbe(TimePoint now) const;

 private:
  struct Node {
    bool silent = false;
    Silence latest;
    uint32_t times = 0;  // in a row, each within kMemory of the readmission before
    TimePoint readmit_from;
    TimePoint readmitted;  // if it is not silent
  };

  std::map<std::string, Node> nodes_;
};

}  // namespace ecpipe
