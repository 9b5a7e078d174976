// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/probe_rounds.h"

#include <algorithm>
#include <set>

namespace ecpipe {
namespace {

// Links that are probed together, while no other uses their nodes.
using Group = ProbeLinksOfRound;

// By key: the links of `measured` that belong to it, the fastest first.
template <typename Key>
using ByKey = std::map<Key, std::vector<LinkSpeed>>;

std::set<std::string> NodesOf(const Group& group) {
  std::set<std::string> nodes;
  for (const auto& [from, to] : group) nodes.insert({from, to});
  return nodes;
}

// Each group goes into the first round in which its nodes are free.
void AddRounds(const std::vector<Group>& groups, std::vector<ProbeLinksOfRound>* rounds) {
  const size_t first = rounds->size();
  std::vector<std::set<std::string>> busy;
  for (const Group& group : groups) {
    const std::set<std::string> nodes = NodesOf(group);
    size_t round = 0;
    const auto taken = [&](const std::string& node) { return busy[round].contains(node); };
    while (round < busy.size() && std::any_of(nodes.begin(), nodes.end(), taken)) ++round;
    if (round == busy.size()) {
      busy.emplace_back();
      rounds->emplace_back();
    }
    busy[round].insert(nodes.begin(), nodes.end());
    ProbeLinksOfRound& links = (*rounds)[first + round];
    links.insert(links.end(), group.begin(), group.end());
  }
}

template <typename Key>
void FastestFirst(ByKey<Key>* links) {
  for (auto& [key, of_key] : *links) {
    std::stable_sort(of_key.begin(), of_key.end(), [](const LinkSpeed& a, const LinkSpeed& b) {
      return a.bytes_per_second > b.bytes_per_second;
    });
  }
}

}  // namespace

std::vector<ProbeLinksOfRound> RoundsAboutSharing(const std::vector<LinkSpeed>& measured,
                                                  const std::map<std::string, std::string>& racks) {
  ByKey<std::pair<std::string, std::string>> of_nodes;
  ByKey<std::pair<std::string, std::string>> of_racks;
  for (const LinkSpeed& link : measured) {
    of_nodes[{link.from, ""}].push_back(link);
    of_nodes[{"", link.to}].push_back(link);
    const auto from = racks.find(link.from);
    const auto to = racks.find(link.to);
    if (from == racks.end() || to == racks.end() || from->second == to->second) continue;
    if (from->second.empty() || to->second.empty()) continue;
    of_racks[{from->second, to->second}].push_back(link);
  }
  FastestFirst(&of_nodes);
  FastestFirst(&of_racks);
  std::vector<Group> together;
  for (const auto& [key, links] : of_nodes) {
    if (links.size() < 2) continue;
    together.push_back({{links[0].from, links[0].to}, {links[1].from, links[1].to}});
  }
  // Other links between the same racks were probed at the same time as these.
  std::vector<Group> alone;
  std::vector<Group> other_alone;  // never in a round with the first
  for (const auto& [key, links] : of_racks) {
    const LinkSpeed& a = links[0];
    const auto b = std::find_if(links.begin(), links.end(), [&](const LinkSpeed& link) {
      return link.from != a.from && link.to != a.to;
    });
    if (b == links.end()) continue;
    alone.push_back({{a.from, a.to}});
    other_alone.push_back({{b->from, b->to}});
    together.push_back({{a.from, a.to}, {b->from, b->to}});
  }
  std::vector<ProbeLinksOfRound> rounds;
  AddRounds(alone, &rounds);
  AddRounds(other_alone, &rounds);
  AddRounds(together, &rounds);
  return rounds;
}

}  // namespace ecpipe
