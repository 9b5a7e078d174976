// SPDX-License-Identifier: Apache-2.0
#include "sim/history.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ecpipe::sim {
namespace {

class Judge {
 public:
  void Hear(const HistoryEvent& event) {
    using Kind = HistoryEvent::Kind;
    switch (event.kind) {
      case Kind::kPlaced:
        return Place(event);
      case Kind::kMoved:
        return Move(event);
      case Kind::kRecovered:
        return Recover(event);
      case Kind::kNodeStarts:
        std::erase_if(latest_, [&](const auto& part) { return part.first.first == event.node; });
        return;
      case Kind::kPartBegins:
        return BeginPart(event);
      case Kind::kPartEnds:
        return EndPart(event);
      case Kind::kHandedOver:
        return HandOver(event);
      case Kind::kGoesOn:
        return GoOn(event);
    }
  }

  std::vector<std::string> Faults() && { return std::move(faults_); }

 private:
  struct Placed {
    std::string stripe;
    std::string node;
  };

  void Place(const HistoryEvent& event) {
    for (const auto& [block, placed] : places_) {
      if (block == event.block || placed.stripe != event.stripe || placed.node != event.node ||
          event.stripe.empty()) {
        continue;
      }
      faults_.push_back("blocks " + block + " and " + event.block + " of stripe " + event.stripe +
                        " are both on " + event.node);
    }
    places_[event.block] = {event.stripe, event.node};
  }

  void Move(const HistoryEvent& event) {
    // A coordinator that crashes between the catalog's record and its journal's tells a move again.
    const auto placed = places_.find(event.block);
    const bool again = placed != places_.end() && placed->second.node == event.node;
    if (event.recovery != 0 && !again && !rebuilt_.insert({event.recovery, event.block}).second) {
      faults_.push_back("recovery " + std::to_string(event.recovery) + " rebuilt block " +
                        event.block + " twice");
    }
    Place(event);
  }

  void Recover(const HistoryEvent& event) {
    for (const auto& [block, placed] : places_) {
      if (placed.node != event.node) continue;
      faults_.push_back("recovery " + std::to_string(event.recovery) + " is done, and block " +
                        block + " is still on " + event.node);
    }
  }

  static std::string NameOf(const HistoryEvent& event) {
    return "attempt " + std::to_string(event.attempt) + " of repair " +
           std::to_string(event.repair);
  }

  void BeginPart(const HistoryEvent& event) {
    const auto [latest, first] = latest_.insert({{event.node, event.repair}, event.attempt});
    if (first) return;
    if (latest->second > event.attempt) {
      faults_.push_back(event.node + " began " + NameOf(event) + " after attempt " +
                        std::to_string(latest->second));
    }
    latest->second = std::max(latest->second, event.attempt);
  }

  void EndPart(const HistoryEvent& event) {
    const auto latest = latest_.find({event.node, event.repair});
    if (latest == latest_.end()) {
      faults_.push_back(event.node + " ended " + NameOf(event) + ", which it had not begun");
    } else if (latest->second > event.attempt) {
      faults_.push_back(event.node + " ended " + NameOf(event) +
                        " well after it had begun attempt " + std::to_string(latest->second));
    }
  }

  void HandOver(const HistoryEvent& event) {
    const auto [next, first] = next_byte_.insert({event.reader, event.offset});
    if (next->second != event.offset) {
      faults_.push_back(event.reader + " got bytes from " + std::to_string(event.offset) +
                        " on, and had got all before " + std::to_string(next->second));
    }
    next->second = event.offset + event.bytes;
  }

  void GoOn(const HistoryEvent& event) {
    const auto [missing, first] = missing_.insert({event.repair, event.bytes});
    if (missing->second < event.bytes) {
      faults_.push_back(NameOf(event) + " misses " + std::to_string(event.bytes) +
                        " bytes, and an earlier one missed " + std::to_string(missing->second));
    }
    missing->second = event.bytes;
  }

  std::map<std::string, Placed> places_;                         // by block
  std::set<std::pair<RecoveryId, std::string>> rebuilt_;         // recovery and block
  std::map<std::pair<std::string, RepairId>, uint32_t> latest_;  // attempt, by node and repair
  std::map<std::string, uint64_t> next_byte_;                    // by reader
  std::map<RepairId, uint64_t> missing_;                         // bytes, by repair
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> JudgeHistory(const std::vector<HistoryEvent>& history) {
  Judge judge;
  for (const HistoryEvent& event : history) judge.Hear(event);
  return std::move(judge).Faults();
}

}  // namespace ecpipe::sim
