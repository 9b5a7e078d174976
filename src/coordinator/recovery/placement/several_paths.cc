// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/several_paths.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace ecpipe {
namespace {

// Each round divides each block anew over what the others then have; more rounds change little.
constexpr int kRounds = 6;

// A helper that is not the first, and how many of the block's paths it is in.
struct Share {
  size_t node = 0;
  size_t paths = 0;
};

struct Division {
  size_t host = 0;
  size_t first = 0;  // the first hop of all paths, which receives nothing
  std::vector<Share> others;
};

class Divider {
 public:
  Divider(std::vector<NodeLinks> nodes, size_t path_count)
      : nodes_(std::move(nodes)), path_count_(path_count) {}

  // A host receives what it does not send, and a first hop sends what it did not receive. So nodes
  // that host a block are the first hops of others, and their links are as full both ways.
  Division ChooseEnds(const BlockToPlace& block) {
    Division division;
    division.host =
        *std::min_element(block.hosts.begin(), block.hosts.end(), [&](size_t a, size_t b) {
          const auto key = [&](const NodeLinks& node) {
            return std::pair((node.down + block.bytes) / node.speed.down, -UpTime(node));
          };
          return key(nodes_[a]) < key(nodes_[b]);
        });
    nodes_[division.host].down += block.bytes;
    division.first =
        *std::max_element(block.helpers.begin(), block.helpers.end(), [&](size_t a, size_t b) {
          const auto key = [&](const NodeLinks& node) {
            return std::pair(DownTime(node) - UpTime(node), -UpTime(node));
          };
          return key(nodes_[a]) < key(nodes_[b]);
        });
    nodes_[division.first].up += block.bytes;
    for (const size_t node : block.helpers) {
      if (node != division.first) division.others.push_back({node, 0});
    }
    return division;
  }

  // Gives the paths helpers one by one, always the one whose links are then the least busy.
  void Divide(const BlockToPlace& block, Division* division) {
    const double bytes = block.bytes / static_cast<double>(path_count_);
    for (Share& share : division->others) {
      Carry(share.node, -bytes * static_cast<double>(std::exchange(share.paths, 0)));
    }
    for (size_t i = 0; i < (block.needed - 1) * path_count_; ++i) {
      Share* best = nullptr;
      std::pair<double, double> least;
      for (Share& share : division->others) {
        if (share.paths == path_count_) continue;
        const std::pair<double, double> key = TimeWith(share.node, bytes);
        if (best != nullptr && least <= key) continue;
        best = &share;
        least = key;
      }
      ECPIPE_CHECK(best != nullptr);
      ++best->paths;
      Carry(best->node, bytes);
    }
  }

 private:
  static double UpTime(const NodeLinks& node) { return node.up / node.speed.up; }
  static double DownTime(const NodeLinks& node) { return node.down / node.speed.down; }

  void Carry(size_t node, double bytes) {
    nodes_[node].up += bytes;
    nodes_[node].down += bytes;
  }

  // How long the node is then busy: its fuller link, and both.
  std::pair<double, double> TimeWith(size_t index, double bytes) const {
    NodeLinks node = nodes_[index];
    node.up += bytes;
    node.down += bytes;
    return {std::max(UpTime(node), DownTime(node)), UpTime(node) + DownTime(node)};
  }

  std::vector<NodeLinks> nodes_;
  const size_t path_count_;
};

// A helper's places follow each other, and are no more than there are paths: no path has it twice.
std::vector<std::vector<size_t>> PathsOf(const Division& division, size_t path_count) {
  std::vector<std::vector<size_t>> paths(path_count, {division.first});
  size_t next = 0;
  for (const Share& share : division.others) {
    for (size_t i = 0; i < share.paths; ++i) paths[next++ % path_count].push_back(share.node);
  }
  return paths;
}

}  // namespace

SeveralPaths PlaceFirst(std::span<const BlockToPlace> blocks, std::vector<NodeLinks> nodes,
                        size_t path_count) {
  Divider divider(std::move(nodes), path_count);
  std::vector<Division> divisions;
  for (const BlockToPlace& block : blocks) divisions.push_back(divider.ChooseEnds(block));
  for (int round = 0; round < (blocks.size() > 1 ? kRounds : 1); ++round) {
    for (size_t i = 0; i < blocks.size(); ++i) divider.Divide(blocks[i], &divisions[i]);
  }
  return {divisions[0].host, PathsOf(divisions[0], path_count)};
}

}  // namespace ecpipe
