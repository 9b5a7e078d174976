// SPDX-License-Identifier: Apache-2.0
#include "coordinator/left_out.h"

#include <algorithm>

namespace ecpipe {

void LeftOut::Refuse(const std::string& node, const std::string& reason) {
  reasons_.emplace(node, reason);
  doubtful_.erase(node);
}

void LeftOut::Suspect(const Suspects& suspects, const std::set<std::string>& needed) {
  for (const auto& [suspect, why] : suspects) {
    if (why.certain) {
      if (!needed.contains(suspect)) Refuse(suspect, why.reason);
      continue;
    }
    std::string node = suspect;
    ++troubles_[suspect];
    if (!why.other_end.empty()) {
      ++troubles_[why.other_end];
      const bool more = troubles_[why.other_end] > troubles_[suspect];
      if ((more && !needed.contains(why.other_end)) || needed.contains(suspect)) {
        node = why.other_end;
      }
    }
    if (needed.contains(node) || Has(node)) continue;
    reasons_[node] = why.reason;
    doubtful_.insert(node);
  }
}

bool LeftOut::TakeBackOne() {
  const auto least = std::min_element(doubtful_.begin(), doubtful_.end(),
                                      [this](const std::string& a, const std::string& b) {
                                        return troubles_.at(a) < troubles_.at(b);
                                      });
  if (least == doubtful_.end()) return false;
  reasons_.erase(*least);
  doubtful_.erase(least);
  return true;
}

}  // namespace ecpipe
