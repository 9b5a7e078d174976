// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/choice.h"

namespace ecpipe {
namespace {

// A bug on demand, for the simulation to find; see tests/sim.
#ifdef ECPIPE_CANARY
constexpr bool kSeeNoHolders = true;
#else
constexpr bool kSeeNoHolders = false;
#endif

uint64_t LargestOf(std::span<const LostBlock* const> blocks) {
  uint64_t bytes = 0;
  for (const LostBlock* block : blocks) bytes = std::max(bytes, block->bytes);
  return bytes;
}

}  // namespace

Hosts::Hosts(const PolicyInput& input, const RecoveryLoads& loads, Rank rank) {
  places_.reserve(input.hosts.size());
  const Burdens burdens(input, loads, LargestOf(input.blocks));
  for (const std::string& host : input.hosts) {
    const bool suspected = !input.suspects.empty() && input.suspects.contains(host);
    Group& group = groups_[suspected];
    ++group.count;
    const bool open = loads.Streams(host) < input.streams_per_node;
    places_.emplace(host, Place{suspected, open ? group.open.size() : kBusy});
    if (!open) continue;
    if (rank == Rank::kLeastBusyFirst) {
      const Burden burden = burdens.Of(host);
      group.ranked.emplace_back(burden.down, burden.carried, burden.up, group.open.size());
    }
    group.open.push_back(&host);
  }
  for (Group& group : groups_) {
    const size_t sorted = std::min(kInOrder, group.ranked.size());
    std::partial_sort(group.ranked.begin(),
                      group.ranked.begin() + static_cast<std::ptrdiff_t>(sorted),
                      group.ranked.end());
  }
}

std::vector<size_t> Hosts::Find(const std::vector<std::string>& nodes, bool suspected,
                                size_t* count) const {
  std::vector<const Place*> places;
  for (const std::string& node : nodes) {
    const auto place = places_.find(node);
    if (place == places_.end() || place->second.suspected != suspected) continue;
    places.push_back(&place->second);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  *count = places.size();
  std::vector<size_t> found;
  for (const Place* place : places) {
    if (place->index != kBusy) found.push_back(place->index);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<const std::string*> Choice::LeastBusyHosts(size_t most) const {
  const std::vector<Hosts::Ranked>& ranked = hosts->ranked;
  const auto rest =
      ranked.begin() + static_cast<std::ptrdiff_t>(std::min(Hosts::kInOrder, ranked.size()));
  std::vector<const std::string*> found;
  for (auto host = ranked.begin(); host != rest && found.size() < most; ++host) {
    if (Free(*host)) found.push_back(hosts->open[std::get<3>(*host)]);
  }
  if (!found.empty()) return found;
  auto best = ranked.end();
  for (auto host = rest; host != ranked.end(); ++host) {
    if (Free(*host) && (best == ranked.end() || *host < *best)) best = host;
  }
  return {hosts->open[std::get<3>(*best)]};
}

Choice ChoiceFor(const LostBlock& block, const PolicyInput& input, const Hosts& hosts,
                 const RecoveryLoads& loads) {
  Choice choice;
  const auto has_room = [&](const std::string& node) {
    return loads.Streams(node) < input.streams_per_node;
  };
  for (const std::string& node : block.holders) {
    if (input.usable.contains(node)) (has_room(node) ? choice.open : choice.busy).push_back(node);
  }
  for (const bool suspected : {false, true}) {
    size_t holding = 0;
    choice.hosts = &hosts.Of(suspected);
    choice.held = hosts.Find(block.holders, suspected, &holding);
    if (kSeeNoHolders) choice.held.clear();
    choice.anybody = choice.hosts->count > holding;
    if (choice.anybody) break;
  }
  return choice;
}

bool EnoughHelpers(const LostBlock& block, const Choice& choice) {
  const size_t all = choice.open.size() + choice.busy.size();
  return choice.open.size() >= std::min(all, static_cast<size_t>(block.needed));
}

size_t HelperCount(const LostBlock& block, const Choice& choice) {
  return std::min(choice.open.size(), static_cast<size_t>(block.needed));
}

}  // namespace ecpipe
