// SPDX-License-Identifier: Apache-2.0
// Which nodes a repair leaves out of its next attempt, learnt from those before. Pure.
// docs/design/008-attempts.md has the reasoning.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/diagnosis.h"

namespace ecpipe {

class LeftOut {
 public:
  using Reasons = std::map<std::string, std::string>;

  // A node that will not do.
  void Refuse(const std::string& node, const std::string& reason);
  // What a failed attempt tells. A link that has failed has two ends: of an uncertain suspect and
  // the other end the one is left out that was at more such links. `needed` are not left out.
  void Suspect(const Suspects& suspects, const std::set<std::string>& needed = {});
  // Better with a node that may be at fault than not at all: takes the one back that was at the
  // fewest failed links, of equals the one that was left out first: with the others the repair has
  // failed more lately. A slow link has not failed. False if there is none.
  bool TakeBackOne();
  // The same of those that only seemed slow.
  bool TakeBackSlow();

  bool Has(const std::string& node) const { return reasons_.contains(node); }
  // Of each node that is left out.
  const Reasons& reasons() const { return reasons_; }

 private:
  bool TakeBack(bool only_slow);

  Reasons reasons_;
  std::vector<std::string> doubtful_;    // of these: may be blameless; the latest at the end
  std::set<std::string> slow_;           // of these: left out for speed alone
  std::map<std::string, int> troubles_;  // at how many failed links a node was
};

}  // namespace ecpipe
