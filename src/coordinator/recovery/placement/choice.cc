// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/choice.h"

#include "absl/algorithm/container.h"

namespace ecpipe {
namespace {

uint64_t LargestOf(std::span<const LostBlock* const> blocks) {
  uint64_t bytes = 0;
  for (const LostBlock* block : blocks) bytes = std::max(bytes, block->bytes);
  return bytes;
}

// The racks that have their share of the stripe's blocks, in order. A holder that is not live is in
// none: its block will be somewhere else, or its node comes back.
std::vector<size_t> FullRacks(const LostBlock& block, const LiveRacks& racks) {
  std::vector<size_t> racks_of_blocks;
  for (const std::string& node : block.holders) {
    const auto rack = racks.of.find(node);
    if (rack != racks.of.end()) racks_of_blocks.push_back(rack->second);
  }
  if (racks_of_blocks.empty() || racks.with_hosts == 0) return {};
  absl::c_sort(racks_of_blocks);
  const size_t blocks = block.holders.size() + 1;
  const auto share_of = [&](size_t rack) {
    const size_t even = (blocks + racks.with_hosts - 1) / racks.with_hosts;
    const size_t by_hosts = (blocks * racks.hosts[rack] + racks.all_hosts - 1) / racks.all_hosts;
    // A small rack does not have to take what a large one may not.
    return 2 * by_hosts > 3 * even ? by_hosts : even;
  };
  std::vector<size_t> full;
  for (auto rack = racks_of_blocks.begin(); rack != racks_of_blocks.end();) {
    const auto next = std::upper_bound(rack, racks_of_blocks.end(), *rack);
    if (static_cast<size_t>(next - rack) >= share_of(*rack)) full.push_back(*rack);
    rack = next;
  }
  return full;
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
    const auto rack = input.racks.of.find(host);
    const size_t number = rack == input.racks.of.end() ? kNoRack : rack->second;
    places_.emplace(host, Place{suspected, open ? group.open.size() : kBusy, number});
    if (number != kNoRack) {
      if (group.in_rack.size() <= number) group.in_rack.resize(number + 1);
      ++group.in_rack[number].count;
      if (open) ++group.in_rack[number].open;
    }
    if (!open) continue;
    if (rank == Rank::kLeastBusyFirst) {
      const Burden burden = burdens.Of(host);
      group.ranked.emplace_back(burden.down, burden.carried, burden.up, group.open.size());
    }
    group.open.push_back({&host, number});
  }
  for (Group& group : groups_) {
    const size_t sorted = std::min(kInOrder, group.ranked.size());
    std::partial_sort(group.ranked.begin(),
                      group.ranked.begin() + static_cast<std::ptrdiff_t>(sorted),
                      group.ranked.end());
  }
}

std::vector<size_t> Hosts::Find(const std::vector<std::string>& nodes, bool suspected,
                                const std::vector<size_t>& without_racks, size_t* count) const {
  std::vector<const Place*> places;
  for (const std::string& node : nodes) {
    const auto place = places_.find(node);
    if (place == places_.end() || place->second.suspected != suspected) continue;
    if (absl::c_binary_search(without_racks, place->second.rack)) continue;
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
    const size_t index = std::get<3>(*host);
    if (CanTake(index)) found.push_back(hosts->open[index].node);
  }
  if (!found.empty()) return found;
  auto best = ranked.end();
  for (auto host = rest; host != ranked.end(); ++host) {
    if (CanTake(std::get<3>(*host)) && (best == ranked.end() || *host < *best)) best = host;
  }
  return {hosts->open[std::get<3>(*best)].node};
}

void Choice::LookAt(const Hosts& all, bool suspected, const LostBlock& block) {
  size_t holding = 0;
  hosts = &all.Of(suspected);
  held = all.Find(block.holders, suspected, full_racks, &holding);
  size_t count = hosts->count;
  host_count = hosts->open.size() - held.size();
  for (const size_t rack : full_racks) {
    if (rack >= hosts->in_rack.size()) break;
    count -= hosts->in_rack[rack].count;
    host_count -= hosts->in_rack[rack].open;
  }
  anybody = count > holding;
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
  const std::vector<size_t> full = FullRacks(block, input.racks);
  for (const bool suspected : {false, true}) {
    choice.full_racks = full;
    choice.LookAt(hosts, suspected, block);
    if (choice.anybody) break;
    if (full.empty()) continue;
    choice.full_racks.clear();
    choice.LookAt(hosts, suspected, block);
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
