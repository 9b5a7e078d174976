// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/left_out.h"

namespace ecpipe {

bool LeftOut::Refuse(const std::string& node, const std::string& reason) {
  const bool was_doubtful = std::erase(uncertain_, node) + away_.erase(node) > 0;
  return reasons_.emplace(node, reason).second || was_doubtful;
}

bool LeftOut::RefuseAtLimit(const std::string& node, const std::string& reason) {
  at_limit_.insert(node);
  return Refuse(node, reason);
}

bool LeftOut::RefuseWhileAway(const std::string& node, const std::string& reason,
                              const Away& away) {
  const bool was_uncertain = std::erase(uncertain_, node) > 0;
  const bool is_new = reasons_.emplace(node, reason).second;
  const auto known = away_.find(node);
  if (known == away_.end()) {
    if (!is_new && !was_uncertain) return false;  // something else is wrong with it
    away_.emplace(node, away);
    return true;
  }
  // It has come back since, and is away again.
  const bool news = known->second != away;
  known->second = away;
  return news;
}

bool LeftOut::ReadmitReturned(const NodeLives& now) {
  const auto has_returned = [&](const auto& entry) {
    const auto& [node, away] = entry;
    const auto found = now.find(node);
    if (found == now.end() || found->second.dead || found->second.silent) return false;
    if (found->second.incarnation == away.incarnation && !away.may_answer) return false;
    reasons_.erase(node);
    return true;
  };
  return std::erase_if(away_, has_returned) > 0;
}

LeftOut::Reasons LeftOut::WithRoomAgain() const {
  Reasons left = reasons_;
  for (const std::string& node : at_limit_) left.erase(node);
  return left;
}

void LeftOut::Suspect(const Suspects& suspects, const std::set<std::string>& needed,
                      const std::map<std::string, uint64_t>& incarnations) {
  for (const auto& [suspect, why] : suspects) {
    if (why.certain) {
      if (needed.contains(suspect)) continue;
      const auto life = incarnations.find(suspect);
      if (why.away && life != incarnations.end()) {
        RefuseWhileAway(suspect, why.reason, {life->second});
      } else {
        Refuse(suspect, why.reason);
      }
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
    uncertain_.push_back(node);
    if (why.slow) slow_.insert(node);
  }
}

bool LeftOut::ReadmitOne() { return Readmit(/*only_slow=*/false); }

bool LeftOut::ReadmitSlow() { return Readmit(/*only_slow=*/true); }

bool LeftOut::Readmit(bool only_slow) {
  auto least = uncertain_.end();
  for (auto node = uncertain_.begin(); node != uncertain_.end(); ++node) {
    if (only_slow && !slow_.contains(*node)) continue;
    if (least == uncertain_.end() || troubles_.at(*node) < troubles_.at(*least)) least = node;
  }
  if (least == uncertain_.end()) return false;
  reasons_.erase(*least);
  uncertain_.erase(least);
  return true;
}

}  // namespace ecpipe
