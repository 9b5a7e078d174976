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

  Hosts(const PolicyInput& input, const RecoveryLoads& loads, Rank rank);

  const Group& Of(bool suspected) const { return groups_[suspected]; }

  // Counts the nodes that are hosts of the group, and returns the indices of those with room, in
  // order.
  std::vector<size_t> Find(const std::vector<std::string>& nodes, bool suspected,
                           size_t* count) const;

 private:
  static constexpr size_t kBusy = SIZE_MAX;
  struct Place {
    bool suspected = false;
    size_t index = kBusy;
  };

  Group groups_[2];
  std::unordered_map<std::string_view, Place> places_;
};

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
  std::vector<const std::string*> LeastBusyHosts(size_t most) const;

 private:
  bool Free(const Hosts::Ranked& host) const {
    return !std::binary_search(held.begin(), held.end(), std::get<3>(host));
  }
};

Choice ChoiceFor(const LostBlock& block, const PolicyInput& input, const Hosts& hosts,
                 const RecoveryLoads& loads);

// Nothing to wait for: enough helpers have room, or there are too few whatever one does.
bool EnoughHelpers(const LostBlock& block, const Choice& choice);

size_t HelperCount(const LostBlock& block, const Choice& choice);

}  // namespace ecpipe
