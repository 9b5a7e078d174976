// SPDX-License-Identifier: Apache-2.0
// What a policy chooses among: how busy nodes are, the hosts that have room, and the nodes that
// could work on one block. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "coordinator/recovery/placement/recovery_policy.h"

namespace ecpipe {

// What a node has to do for one block more, by time: bytes over the speed of its own links.
struct Burden {
  double up = 0;       // in flight, and the block
  double down = 0;     // the same
  double carried = 0;  // all so far, both ways; where the others are equal
};

inline NodeSpeed SpeedOf(const std::string& node, const NodeSpeeds& speeds) {
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

// What all blocks have in common that are chosen among: the hosts, looked up once. A cluster has a
// thousand of them, and a stripe's nodes are a few.
class Hosts {
 public:
  // A host with room, by how busy it is: what it receives, has carried and sends, and its index in
  // Group::open.
  using Ranked = std::tuple<double, double, double, size_t>;
  static constexpr size_t kNoRack = SIZE_MAX;
  struct Open {
    const std::string* node;
    size_t rack;  // kNoRack: not known
  };
  struct InRack {
    size_t count = 0;
    size_t open = 0;
  };
  // Hosts that are suspected, or those that are not.
  struct Group {
    size_t count = 0;
    std::vector<Open> open;       // with room for one more repair, in the input's order
    std::vector<Ranked> ranked;   // if wanted: the least busy kInOrder first, in order
    std::vector<InRack> in_rack;  // by the rack's number
  };
  // To sort a thousand takes longer than all else, and the nodes of a stripe, which are passed
  // over, are a few.
  static constexpr size_t kInOrder = 32;
  enum class Rank { kNone, kLeastBusyFirst };

  Hosts(const PolicyInput& input, const RecoveryLoads& loads, Rank rank);

  const Group& Of(bool suspected) const { return groups_[suspected]; }

  // Counts the nodes that are hosts of the group in other racks than these, which are in order, and
  // returns the indices of those with room, in order.
  std::vector<size_t> Find(const std::vector<std::string>& nodes, bool suspected,
                           const std::vector<size_t>& without_racks, size_t* count) const;

 private:
  static constexpr size_t kBusy = SIZE_MAX;
  struct Place {
    bool suspected = false;
    size_t index = kBusy;
    size_t rack = kNoRack;
  };

  Group groups_[2];
  std::unordered_map<std::string_view, Place> places_;
};

// The nodes that could work on one block, as they are now.
struct Choice {
  std::vector<std::string> open;  // helpers with room for one more repair
  std::vector<std::string> busy;  // helpers without
  const Hosts::Group* hosts = nullptr;
  std::vector<size_t> full_racks;  // whose hosts cannot take it; in order
  std::vector<size_t> held;        // hosts with room in other racks that have a block of the stripe
  size_t host_count = 0;           // that have room and can take it
  bool anybody = false;            // whether any host, busy or not, can take it

  // Looks for hosts among those that are suspected, or not, with `full_racks` as they are.
  void LookAt(const Hosts& all, bool suspected, const LostBlock& block);
  bool CanTake(size_t open_index) const {
    return !std::binary_search(held.begin(), held.end(), open_index) &&
           !std::binary_search(full_racks.begin(), full_racks.end(), hosts->open[open_index].rack);
  }
  // The n-th host with room that can take it.
  const std::string& Host(size_t n) const {
    size_t index = 0;
    for (;; ++index) {
      if (CanTake(index) && n-- == 0) return *hosts->open[index].node;
    }
  }
  // There must be one, and hosts must be ranked.
  const std::string& LeastBusyHost() const { return *LeastBusyHosts(1)[0]; }
  // The least busy first: up to `most` of them, and one at least.
  std::vector<const std::string*> LeastBusyHosts(size_t most) const;
};

Choice ChoiceFor(const LostBlock& block, const PolicyInput& input, const Hosts& hosts,
                 const RecoveryLoads& loads);

// Nothing to wait for: enough helpers have room, or there are too few whatever one does.
bool EnoughHelpers(const LostBlock& block, const Choice& choice);

size_t HelperCount(const LostBlock& block, const Choice& choice);

}  // namespace ecpipe
