// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/several_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace ecpipe::several_paths_test {
namespace {

constexpr double kBlock = 1000;

std::vector<size_t> Without(size_t node_count, const std::vector<size_t>& nodes) {
  std::vector<size_t> others;
  for (size_t node = 0; node < node_count; ++node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) others.push_back(node);
  }
  return others;
}

void Carry(const SeveralPaths& placed, double bytes, std::vector<NodeLinks>* nodes) {
  (*nodes)[placed.host].down += bytes;
  const double part = bytes / static_cast<double>(placed.paths.size());
  for (const std::vector<size_t>& path : placed.paths) {
    for (const size_t node : path) {
      (*nodes)[node].up += part;
      if (node != path[0]) (*nodes)[node].down += part;
    }
  }
}

double BusiestTime(const std::vector<NodeLinks>& nodes) {
  double busiest = 0;
  for (const NodeLinks& node : nodes) {
    busiest = std::max({busiest, node.up / node.speed.up, node.down / node.speed.down});
  }
  return busiest;
}

// Blocks of (14, 10) whose other blocks are on random 13 of 15 nodes, placed one after the other
// with what is left: how long the busiest link is busy, in blocks.
double Busiest(size_t blocks, size_t path_count, uint32_t seed, std::vector<NodeLinks> nodes) {
  std::mt19937 random(seed);
  std::vector<BlockToPlace> left;
  for (size_t i = 0; i < blocks; ++i) {
    std::vector<size_t> helpers(nodes.size());
    std::iota(helpers.begin(), helpers.end(), 0);
    for (size_t at = 1; at < helpers.size(); ++at) {
      std::swap(helpers[at], helpers[random() % (at + 1)]);  // the same with every library
    }
    helpers.resize(13);
    left.push_back({kBlock, 10, helpers, Without(nodes.size(), helpers)});
  }
  while (!left.empty()) {
    const SeveralPaths placed = PlaceFirst(left, nodes, path_count);
    EXPECT_EQ(placed.paths.size(), path_count);
    const BlockToPlace& block = left[0];
    EXPECT_EQ(std::count(block.hosts.begin(), block.hosts.end(), placed.host), 1);
    for (const std::vector<size_t>& path : placed.paths) {
      EXPECT_EQ(std::set<size_t>(path.begin(), path.end()).size(), block.needed);
      for (const size_t node : path) {
        EXPECT_EQ(std::count(block.helpers.begin(), block.helpers.end(), node), 1);
      }
    }
    Carry(placed, kBlock, &nodes);
    left.erase(left.begin());
  }
  return BusiestTime(nodes) / kBlock;
}

double MeanBusiest(size_t blocks, size_t path_count, const std::vector<NodeLinks>& nodes) {
  constexpr int kSeeds = 20;
  double sum = 0;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) sum += Busiest(blocks, path_count, seed, nodes);
  return sum / kSeeds;
}

// The least possible is two, since three blocks take 30 streams over 15 nodes; whole paths take
// three in most cases.
TEST(SeveralPaths, ThreeBlocksEndTogether) {
  const std::vector<NodeLinks> nodes(15);
  EXPECT_GT(MeanBusiest(3, 1, nodes), 2.8);
  EXPECT_LT(MeanBusiest(3, 4, nodes), 2.3);
}

TEST(SeveralPaths, ManyBlocksEndTogether) {
  const std::vector<NodeLinks> nodes(15);
  EXPECT_LT(MeanBusiest(8, 4, nodes), 5.65) << "the least is 5.33, of whole paths 6";
}

TEST(SeveralPaths, SlowNodesCarryLess) {
  std::vector<NodeLinks> nodes(15);
  for (size_t i = 0; i < 8; ++i) nodes[i].speed = {0.5, 0.5};
  EXPECT_LT(MeanBusiest(8, 4, nodes), 8.3) << "the least is 7.3";
  EXPECT_GT(MeanBusiest(8, 1, nodes), 8.5);
}

TEST(SeveralPaths, BusyNodesAreSpared) {
  std::vector<NodeLinks> nodes(6);
  nodes[1].up = nodes[1].down = kBlock;
  const BlockToPlace block{kBlock, 3, {0, 1, 2, 3}, {4, 5}};
  const SeveralPaths placed = PlaceFirst({&block, 1}, nodes, 4);
  EXPECT_EQ(placed.host, 4u) << "the first of equals";
  for (const std::vector<size_t>& path : placed.paths) {
    EXPECT_EQ(std::set<size_t>(path.begin(), path.end()), (std::set<size_t>{0, 2, 3}));
  }
}

// It has received a block, which it need not do for the next one.
TEST(SeveralPaths, AHostIsTheFirstHopOfTheNextBlock) {
  std::vector<NodeLinks> nodes(6);
  nodes[2].down = kBlock;
  const BlockToPlace block{kBlock, 3, {0, 1, 2, 3}, {5, 4}};
  const SeveralPaths placed = PlaceFirst({&block, 1}, nodes, 2);
  EXPECT_EQ(placed.host, 5u);
  for (const std::vector<size_t>& path : placed.paths) EXPECT_EQ(path[0], 2u);
}

TEST(SeveralPaths, AllHelpersMayBeNeeded) {
  const BlockToPlace block{kBlock, 3, {1, 2, 3}, {0}};
  const SeveralPaths placed = PlaceFirst({&block, 1}, std::vector<NodeLinks>(4), 3);
  EXPECT_EQ(placed.host, 0u);
  EXPECT_EQ(placed.paths, (std::vector<std::vector<size_t>>(3, {1, 2, 3})));
}

}  // namespace
}  // namespace ecpipe::several_paths_test
