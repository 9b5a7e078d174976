// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/recovery_policy.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/algorithm/container.h"
#include "coordinator/recovery/placement/choice.h"
#include "coordinator/recovery/placement/several_paths.h"

namespace ecpipe {
namespace {

bool Holds(const LostBlock& block, const std::string& node) {
  return std::find(block.holders.begin(), block.holders.end(), node) != block.holders.end();
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

// Without any the first block that can go is to have one path: it has too few survivors, or two of
// them are on one node.
Together FindTogether(const PolicyInput& input, const Hosts& hosts, const RecoveryLoads& loads,
                      NumberedNodes* nodes) {
  Together together;
  for (const LostBlock* block : input.blocks) {
    if (together.blocks.size() == kMostTogether) break;
    Choice choice = ChoiceFor(*block, input, hosts, loads);
    if (choice.host_count == 0 || !EnoughHelpers(*block, choice)) {
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
  if (choice.host_count == 0) {
    std::vector<std::string> full_hosts;
    for (const std::string& node : input_.hosts) {
      const auto rack = input_.racks.of.find(node);
      const bool too_many =
          rack != input_.racks.of.end() && absl::c_binary_search(choice.full_racks, rack->second);
      if (!Holds(block, node) && !too_many) full_hosts.push_back(node);
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
  size_t first_has_to_spare = 0;
  for (const LostBlock* block : input.blocks) {
    Choice choice = ChoiceFor(*block, input, hosts, loads);
    if (!choice.anybody) return Impossible(*block);
    if (choice.host_count == 0 || !EnoughHelpers(*block, choice)) continue;
    if (balanced) {
      // The least busy nodes, but none of a block that is less urgent than the first that can go.
      const size_t survivors = choice.open.size() + choice.busy.size();
      const size_t to_spare = survivors - std::min(survivors, static_cast<size_t>(block->needed));
      if (best && to_spare > first_has_to_spare) continue;
      if (!best) first_has_to_spare = to_spare;
      Weighed weighed = Balanced(*block, std::move(choice), Burdens(input, loads, block->bytes));
      if (!best || weighed.busiest < best->busiest) best = std::move(weighed);
      continue;
    }
    if (policy == RecoveryPolicy::kLeastRecent) {
      SelectSmallest(&choice.open, HelperCount(*block, choice),
                     [&](const std::string& node) { return loads.Of(node).last_selected; });
    }
    const std::string host = choice.Host(loads.turn() % choice.host_count);
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
    if (choice.host_count == 0) continue;
    Placement placement{block->block_id, "", {}, "", /*copy=*/true};
    placement.host =
        balanced ? choice.LeastBusyHost() : choice.Host(loads.turn() % choice.host_count);
    return placement;
  }
  return std::nullopt;
}

}  // namespace ecpipe
