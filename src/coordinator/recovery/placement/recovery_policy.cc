// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/recovery_policy.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "coordinator/recovery/placement/several_paths.h"

namespace ecpipe {
namespace {

// A bug on demand, for the simulation to find; see tests/sim.
#ifdef ECPIPE_CANARY
constexpr bool kSeeNoHolders = true;
#else
constexpr bool kSeeNoHolders = false;
#endif

// What a node has to do for one block more, by time: bytes over the speed of its own links.
struct Burden {
  double up = 0;       // in flight, and the block
  double down = 0;     // the same
  double carried = 0;  // all so far, both ways; where the others are equal
};

NodeSpeed SpeedOf(const std::string& node, const NodeSpeeds& speeds) {
  const auto known = speeds.find(node);
  return known == speeds.end() ? NodeSpeed() : known->second;
}

class Burdens {
 public:
  Burdens(const PolicyInput& input, const RecoveryLoads& loads, uint64_t block_bytes)
      : speeds_(input.speeds), loads_(loads), block_bytes_(static_cast<double>(block_bytes)) {}

  Burden Of(const std::string& node) const {
    const RecoveryLoads::Node& load = loads_.Of(node);
    const NodeSpeed speed = SpeedOf(node, speeds_);
    return {(static_cast<double>(load.up) + block_bytes_) / speed.up,
            (static_cast<double>(load.down) + block_bytes_) / speed.down,
            static_cast<double>(load.carried) / (speed.up + speed.down)};
  }

 private:
  const NodeSpeeds& speeds_;
  const RecoveryLoads& loads_;
  const double block_bytes_;
};

uint64_t LargestOf(std::span<const LostBlock* const> blocks) {
  uint64_t bytes = 0;
  for (const LostBlock* block : blocks) bytes = std::max(bytes, block->bytes);
  return bytes;
}

bool Holds(const LostBlock& block, const std::string& node) {
  return std::find(block.holders.begin(), block.holders.end(), node) != block.holders.end();
}

}  // namespace

// What all blocks have in common that are chosen among: the hosts, looked up once. A cluster has a
// thousand of them, and a stripe's nodes are a few.
class Hosts {
 public:
  // A host with room, by how busy it is: what it receives, has carried and sends, and its index in
  // Group::open.
  using Ranked = std::tuple<double, double, double, size_t>;
  // Hosts that are suspected, or those that are not.
  struct Group {
    size_t count = 0;
    std::vector<const std::string*> open;  // with room for one more repair, in the input's order
    std::vector<Ranked> ranked;            // if wanted: the least busy kInOrder first, in order
  };
  // To sort a thousand takes longer than all else, and the nodes of a stripe, which are passed
  // over, are a few.
  static constexpr size_t kInOrder = 32;
  enum class Rank { kNone, kLeastBusyFirst };

  Hosts(const PolicyInput& input, const RecoveryLoads& loads, Rank rank) {
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

  const Group& Of(bool suspected) const { return groups_[suspected]; }

  // Counts the nodes that are hosts of the group, and returns the indices of those with room, in
  // order.
  std::vector<size_t> Find(const std::vector<std::string>& nodes, bool suspected,
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

 private:
  static constexpr size_t kBusy = SIZE_MAX;
  struct Place {
    bool suspected = false;
    size_t index = kBusy;
  };

  Group groups_[2];
  std::unordered_map<std::string_view, Place> places_;
};

namespace {

// The nodes that could work on one block, as they are now.
struct Choice {
  std::vector<std::string> open;  // helpers with room for one more repair
  std::vector<std::string> busy;  // helpers without
  const Hosts::Group* hosts = nullptr;
  std::vector<size_t> held;  // of its hosts with room: those that have a block of the stripe
  bool anybody = false;      // whether any host, busy or not, can take it

  size_t host_count() const { return hosts->open.size() - held.size(); }
  // The n-th host with room.
  const std::string& Host(size_t n) const {
    for (const size_t index : held) n += index <= n ? 1 : 0;
    return *hosts->open[n];
  }
  // There must be one, and hosts must be ranked.
  const std::string& LeastBusyHost() const { return *LeastBusyHosts(1)[0]; }
  // The least busy first: up to `most` of them, and one at least.
  std::vector<const std::string*> LeastBusyHosts(size_t most) const {
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

 private:
  bool Free(const Hosts::Ranked& host) const {
    return !std::binary_search(held.begin(), held.end(), std::get<3>(host));
  }
};

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

// Nothing to wait for: enough helpers have room, or there are too few whatever one does.
bool EnoughHelpers(const LostBlock& block, const Choice& choice) {
  const size_t all = choice.open.size() + choice.busy.size();
  return choice.open.size() >= std::min(all, static_cast<size_t>(block.needed));
}

size_t HelperCount(const LostBlock& block, const Choice& choice) {
  return std::min(choice.open.size(), static_cast<size_t>(block.needed));
}

// Puts the `count` with the smallest keys first, in order; the rest follows.
template <typename Key>
void SelectSmallest(std::vector<std::string>* nodes, size_t count, Key key) {
  using Keyed = std::pair<decltype(key(std::string())), std::string>;
  std::vector<Keyed> keyed;
  keyed.reserve(nodes->size());
  for (std::string& node : *nodes) {
    const auto own = key(node);
    keyed.emplace_back(own, std::move(node));
  }
  std::partial_sort(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(count), keyed.end());
  for (size_t i = 0; i < keyed.size(); ++i) (*nodes)[i] = std::move(keyed[i].second);
}

Placement PlacementOf(const LostBlock& block, std::string host, Choice choice) {
  Placement placement{block.block_id, std::move(host), std::move(choice.open), "", false};
  placement.helpers.insert(placement.helpers.end(), choice.busy.begin(), choice.busy.end());
  return placement;
}

constexpr char kNoTarget[] = "every live node that may take it already has a block of its stripe";

Placement Impossible(const LostBlock& block) { return {block.block_id, "", {}, kNoTarget, false}; }

// "n1, n2, n3 and 4 more".
std::string Some(const std::vector<std::string>& nodes) {
  constexpr size_t kNamed = 5;
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, nodes.size()); ++i) text += (i ? ", " : "") + nodes[i];
  if (nodes.size() > kNamed) text += " and " + std::to_string(nodes.size() - kNamed) + " more";
  return text;
}

struct Weighed {
  Placement placement;
  double busiest = 0;  // what the fullest link has to carry that the repair would use
};

Weighed Balanced(const LostBlock& block, Choice choice, const Burdens& burdens) {
  const std::string host = choice.LeastBusyHost();
  const size_t count = HelperCount(block, choice);
  SelectSmallest(&choice.open, count, [&](const std::string& node) {
    const Burden burden = burdens.Of(node);
    return std::tuple(std::max(burden.up, burden.down), burden.up + burden.down, burden.carried);
  });
  std::vector<Burden> of(count);
  for (size_t i = 0; i < count; ++i) of[i] = burdens.Of(choice.open[i]);
  // The first hop of a path receives nothing.
  const auto first = std::max_element(
      of.begin(), of.end(), [](const Burden& a, const Burden& b) { return a.down < b.down; });
  Weighed weighed;
  weighed.busiest = burdens.Of(host).down;
  for (const Burden& burden : of) {
    weighed.busiest = std::max(weighed.busiest, burden.up);
    if (&burden != &*first) weighed.busiest = std::max(weighed.busiest, burden.down);
  }
  if (first != of.end()) {
    const auto at = choice.open.begin() + (first - of.begin());
    std::rotate(choice.open.begin(), at, at + 1);
  }
  weighed.placement = PlacementOf(block, host, std::move(choice));
  return weighed;
}

// The numbers of nodes, and what their links carry.
class NumberedNodes {
 public:
  NumberedNodes(const PolicyInput& input, const RecoveryLoads& loads)
      : speeds_(input.speeds), loads_(loads) {}

  size_t Of(const std::string& node) {
    const auto [known, added] = numbers_.try_emplace(node, names_.size());
    if (!added) return known->second;
    const RecoveryLoads::Node& load = loads_.Of(node);
    names_.push_back(node);
    links_.push_back(
        {static_cast<double>(load.up), static_cast<double>(load.down), SpeedOf(node, speeds_)});
    return known->second;
  }

  const std::string& Name(size_t number) const { return names_[number]; }
  const std::vector<NodeLinks>& links() const { return links_; }

 private:
  const NodeSpeeds& speeds_;
  const RecoveryLoads& loads_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::string> names_;
  std::vector<NodeLinks> links_;
};

// Blocks that can go, the first ones of the queue.
struct Together {
  const LostBlock* first = nullptr;
  Choice choice;  // for the first one
  std::vector<BlockToPlace> blocks;
};

// More than these change little for the first one.
constexpr size_t kMostTogether = 8;

// None: the first block that can go is to have one path. It has too few survivors, or two of them
// are on one node.
Together FindTogether(const PolicyInput& input, const Hosts& hosts, const RecoveryLoads& loads,
                      NumberedNodes* nodes) {
  Together together;
  for (const LostBlock* block : input.blocks) {
    if (together.blocks.size() == kMostTogether) break;
    Choice choice = ChoiceFor(*block, input, hosts, loads);
    if (choice.host_count() == 0 || !EnoughHelpers(*block, choice)) {
      if (choice.anybody) continue;
      break;
    }
    BlockToPlace placed{
        static_cast<double>(block->bytes), static_cast<size_t>(block->needed), {}, {}};
    for (const std::string& node : choice.open) {
      const size_t helper = nodes->Of(node);
      if (std::count(placed.helpers.begin(), placed.helpers.end(), helper) == 0) {
        placed.helpers.push_back(helper);
      }
    }
    if (block->needed < 1 || placed.helpers.size() < placed.needed) break;
    for (const std::string* host : choice.LeastBusyHosts(Hosts::kInOrder)) {
      placed.hosts.push_back(nodes->Of(*host));
    }
    together.blocks.push_back(std::move(placed));
    if (together.first != nullptr) continue;
    together.first = block;
    together.choice = std::move(choice);
  }
  return together;
}

// On average at a helper: more streams at once lose packets where they meet.
constexpr uint64_t kMostStreams = 24;
constexpr uint64_t kMostPaths = 4;

// How many paths each of the blocks is divided among, of which so many are left.
size_t PathsOfEach(const std::vector<BlockToPlace>& blocks, uint64_t blocks_left) {
  std::set<size_t> helpers;
  size_t needed = 1;
  for (const BlockToPlace& block : blocks) {
    helpers.insert(block.helpers.begin(), block.helpers.end());
    needed = std::max(needed, block.needed);
  }
  return std::clamp(kMostStreams * helpers.size() / (blocks_left * needed), uint64_t{1},
                    kMostPaths);
}

// The first block that can go, placed together with those after it; nothing if it is to have one
// path. Several are for where all blocks that are left may be in flight at once, as each of them
// keeps all of its survivors' nodes busy. One block alone is not faster over several: its host's
// link carries all of it.
std::optional<Placement> PlaceOverPaths(const PolicyInput& input, const Hosts& hosts,
                                        const RecoveryLoads& loads) {
  if (input.blocks_left < 2 || input.blocks_left > input.streams_per_node) return std::nullopt;
  NumberedNodes nodes(input, loads);
  Together together = FindTogether(input, hosts, loads, &nodes);
  if (together.first == nullptr) return std::nullopt;
  const size_t path_count = PathsOfEach(together.blocks, input.blocks_left);
  if (path_count == 1) return std::nullopt;
  const SeveralPaths several = PlaceFirst(together.blocks, nodes.links(), path_count);
  std::vector<std::vector<std::string>> paths;
  for (const std::vector<size_t>& path : several.paths) {
    std::vector<std::string>& names = paths.emplace_back();
    for (const size_t node : path) names.push_back(nodes.Name(node));
  }
  // Should the code not be able to use these paths, the first one's helpers make one path.
  std::vector<std::string>& open = together.choice.open;
  const std::vector<std::string>& best = paths[0];
  std::stable_sort(open.begin(), open.end(), [&](const std::string& a, const std::string& b) {
    return std::find(best.begin(), best.end(), a) < std::find(best.begin(), best.end(), b);
  });
  Placement placement =
      PlacementOf(*together.first, nodes.Name(several.host), std::move(together.choice));
  placement.paths = std::move(paths);
  return placement;
}

}  // namespace

class WaitReasons::Hosts : public ecpipe::Hosts {
 public:
  using ecpipe::Hosts::Hosts;
};

WaitReasons::WaitReasons(const PolicyInput& input, const RecoveryLoads& loads, std::string limit)
    : input_(input),
      loads_(loads),
      limit_(std::move(limit)),
      hosts_(std::make_unique<Hosts>(input, loads, Hosts::Rank::kNone)) {}

WaitReasons::~WaitReasons() = default;

RecoveryWait WaitReasons::Of(const LostBlock& block) const {
  const Choice choice = ChoiceFor(block, input_, *hosts_, loads_);
  if (!choice.anybody) return {WaitKind::kTarget, 1, kNoTarget};
  const std::string full = " in " + std::to_string(input_.streams_per_node) +
                           (input_.streams_per_node == 1 ? " repair" : " repairs") +
                           " already, the limit of a node (" + limit_ + ")";
  if (choice.host_count() == 0) {
    std::vector<std::string> full_hosts;
    for (const std::string& node : input_.hosts) {
      if (!Holds(block, node)) full_hosts.push_back(node);
    }
    return {WaitKind::kStreams, 1,
            "the nodes that may take it are" + full + ": " + Some(full_hosts)};
  }
  if (!EnoughHelpers(block, choice)) {
    return {WaitKind::kStreams, 1,
            "of the nodes that could help too many are" + full + ": " + Some(choice.busy)};
  }
  return {WaitKind::kNext, 1, "its turn comes next"};
}

std::optional<Placement> Place(RecoveryPolicy policy, const PolicyInput& input,
                               const RecoveryLoads& loads) {
  if (input.blocks.empty()) return std::nullopt;
  const bool balanced = policy == RecoveryPolicy::kBalanced;
  const Hosts hosts(input, loads, balanced ? Hosts::Rank::kLeastBusyFirst : Hosts::Rank::kNone);
  if (balanced) {
    if (std::optional<Placement> placement = PlaceOverPaths(input, hosts, loads)) return placement;
  }
  std::optional<Weighed> best;
  for (const LostBlock* block : input.blocks) {
    Choice choice = ChoiceFor(*block, input, hosts, loads);
    if (!choice.anybody) return Impossible(*block);
    if (choice.host_count() == 0 || !EnoughHelpers(*block, choice)) continue;
    if (balanced) {
      Weighed weighed = Balanced(*block, std::move(choice), Burdens(input, loads, block->bytes));
      if (!best || weighed.busiest < best->busiest) best = std::move(weighed);
      continue;
    }
    if (policy == RecoveryPolicy::kLeastRecent) {
      SelectSmallest(&choice.open, HelperCount(*block, choice),
                     [&](const std::string& node) { return loads.Of(node).last_selected; });
    }
    const std::string host = choice.Host(loads.turn() % choice.host_count());
    return PlacementOf(*block, host, std::move(choice));
  }
  if (!best) return std::nullopt;
  return std::move(best->placement);
}

std::optional<Placement> PlaceCopy(RecoveryPolicy policy, const PolicyInput& input,
                                   const RecoveryLoads& loads) {
  if (input.blocks.empty()) return std::nullopt;
  const bool balanced = policy == RecoveryPolicy::kBalanced;
  const Hosts hosts(input, loads, balanced ? Hosts::Rank::kLeastBusyFirst : Hosts::Rank::kNone);
  for (const LostBlock* block : input.blocks) {
    const Choice choice = ChoiceFor(*block, input, hosts, loads);
    if (!choice.anybody) return Impossible(*block);
    if (choice.host_count() == 0) continue;
    Placement placement{block->block_id, "", {}, "", /*copy=*/true};
    placement.host =
        balanced ? choice.LeastBusyHost() : choice.Host(loads.turn() % choice.host_count());
    return placement;
  }
  return std::nullopt;
}

}  // namespace ecpipe
