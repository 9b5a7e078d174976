// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/left_out.h"

namespace ecpipe {

void LeftOut::Refuse(const std::string& node, const std::string& reason) {
  reasons_.emplace(node, reason);
  std::erase(doubtful_, node);
  slow_.erase(node);
}

void LeftOut::Suspect(const Suspects& suspects, const std::set<std::string>& needed) {
  for (const auto& [suspect, why] : suspects) {
    if (why.certain) {
      if (!needed.contains(suspect)) Refuse(suspect, why.reason);
      continue;
    }
    std::string node = suspect;
    troubles_[suspect] += why.slow ? 0 : 1;
    if (!why.other_end.empty()) {
      ++troubles_[why.other_end];
      const bool more = troubles_[why.other_end] > troubles_[suspect];
      if ((more && !needed.contains(why.other_end)) || needed.contains(suspect)) {
        node = why.other_end;
      }
    }
    if (needed.contains(node)) continue;
    if (!why.slow) slow_.erase(node);
    if (Has(node)) continue;
    reasons_[node] = why.reason;
    doubtful_.push_back(node);
    if (why.slow) slow_.insert(node);
  }
}

bool LeftOut::TakeBackOne() { return TakeBack(/*only_slow=*/false); }

bool LeftOut::TakeBackSlow() { return TakeBack(/*only_slow=*/true); }

bool LeftOut::TakeBack(bool only_slow) {
  auto least = doubtful_.end();
  for (auto node = doubtful_.begin(); node != doubtful_.end(); ++node) {
    if (only_slow && !slow_.contains(*node)) continue;
    if (least == doubtful_.end() || troubles_.at(*node) < troubles_.at(*least)) least = node;
  }
  if (least == doubtful_.end()) return false;
  reasons_.erase(*least);
  slow_.erase(*least);
  doubtful_.erase(least);
  return true;
}

}  // namespace ecpipe
