// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/trees/tree_packing.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <random>

#include "coordinator/planning/trees/cheapest_tree.h"
#include "coordinator/planning/trees/packing_program.h"

namespace ecpipe {
namespace {

// Trees that were found, each once.
struct Found {
  InTree tree;
  std::vector<LimitUse> uses;
};

class Packer {
 public:
  Packer(const FlowNetwork& network, const PackingOptions& options)
      : network_(network), options_(options), cheapest_(&network), program_(network.limits()) {
    for (const double limit : network.limits()) centre_.push_back(1 / limit);
  }

  void Run() {
    // Where all is done soon, weights would only cost time.
    constexpr double kShareBeforeWeights = 0.25;
    if (Generate([&] { return HasUsed(kShareBeforeWeights); }) || OutOfTime()) return;
    const PackingProgram before = program_;
    StartByWeights();
    Generate([&] { return OutOfTime(); });
    if (program_.rate() < before.rate()) program_ = before;
  }

  TreePacking Take() {
    TreePacking packing;
    std::vector<PackingProgram::Carrier> carriers = program_.carriers();
    if (carriers.size() > options_.most_trees) carriers = Fewer(std::move(carriers));
    std::stable_sort(carriers.begin(), carriers.end(),
                     [](const auto& a, const auto& b) { return a.rate > b.rate; });
    for (const PackingProgram::Carrier& carrier : carriers) {
      if (carrier.rate <= 1e-9 * carriers[0].rate) break;
      packing.trees.push_back({found_[carrier.id].tree, carrier.rate});
      packing.rate += carrier.rate;
    }
    packing.bound = bound_;
    packing.steps = steps();
    return packing;
  }

 private:
  static constexpr int kMostFailures = 6;

  // Adds trees until the packing is near its bound, no better tree is found, or `ends` says so.
  // Returns false in this last case.
  template <typename Ends>
  bool Generate(const Ends& ends) {
    // Prices of a vertex jump about; between them and the best ones so far lies what is needed.
    constexpr double kSmoothing = 0.7;
    double smoothing = kSmoothing;
    int failures = 0;
    while (failures < kMostFailures) {
      if (ends()) return false;
      const std::vector<double> prices = failures > 1 ? Shaken() : Between(smoothing);
      if (Try(failures == 0 ? cheapest_.Find(prices) : cheapest_.FindThoroughly(prices), prices)) {
        smoothing = kSmoothing;
        failures = 0;
      } else if (smoothing > 0) {
        smoothing = smoothing > 0.3 ? smoothing - 0.3 : 0;
      } else {
        ++failures;
      }
      if (NearBound() && Confirmed()) break;
    }
    return true;
  }

  // Where pairs are what is full, the program has a hundred of them and more, and its prices say
  // little before all of these are. Multiplicative weights have good prices after some hundred
  // cheap steps: the limits of each tree in turn become dearer, by ever less. The last of these
  // trees are what the program begins anew with.
  void StartByWeights() {
    constexpr int kRounds = 400;
    constexpr double kFirst = 1;
    constexpr double kLast = 0.05;
    constexpr int kKept = 60;
    const double fading = std::pow(kLast / kFirst, 1.0 / kRounds);
    std::vector<double> prices;
    for (const double limit : network_.limits()) prices.push_back(1 / limit);
    std::deque<InTree> last;
    double dearer = kFirst;
    for (int round = 0; round < kRounds && !OutOfTime(); ++round, dearer *= fading) {
      PricedTree cheapest = cheapest_.Find(prices);
      TakeBound(prices, cheapest.price);
      MakeDearer(cheapest.tree, dearer, &prices);
      if (std::find(last.begin(), last.end(), cheapest.tree) != last.end()) continue;
      last.push_back(std::move(cheapest.tree));
      if (last.size() > kKept) last.pop_front();
    }
    program_ = PackingProgram(network_.limits());
    for (InTree& tree : last) {
      std::vector<LimitUse> uses = UsesOf(network_, tree);
      if (program_.Offer(uses, static_cast<uint32_t>(found_.size()))) {
        found_.push_back({std::move(tree), std::move(uses)});
      }
    }
  }

  // The limit that the tree uses most of, by `share` of its price; others by less.
  void MakeDearer(const InTree& tree, double share, std::vector<double>* prices) const {
    const std::vector<LimitUse> uses = UsesOf(network_, tree);
    const auto used = [&](const LimitUse& use) { return use.times / network_.limits()[use.limit]; };
    double most = 0;
    for (const LimitUse& use : uses) most = std::max(most, used(use));
    double dearest = 0;
    for (const LimitUse& use : uses) {
      double& price = (*prices)[use.limit];
      price *= 1 + share * used(use) / most;
      dearest = std::max(dearest, price * network_.limits()[use.limit]);
    }
    constexpr double kDearest = 1e100;
    if (dearest < kDearest) return;
    for (double& price : *prices) price /= kDearest;
  }

  uint64_t steps() const { return cheapest_.steps() + program_.steps(); }

  bool HasUsed(double share) const {
    const auto used = static_cast<double>(steps());
    return used > share * static_cast<double>(options_.most_steps) ||
           used * program_.rate() > share * options_.most_steps_at_rate_1;
  }
  bool OutOfTime() const { return HasUsed(1); }

  bool NearBound() const { return bound_ <= program_.rate() * (1 + options_.gap); }

  // Whether the bound stands when its prices are looked at thoroughly.
  bool Confirmed() {
    const std::vector<double> prices = centre_;
    bound_ = std::numeric_limits<double>::infinity();
    Try(cheapest_.FindThoroughly(prices), prices);
    return NearBound();
  }

  std::vector<double> Between(double share_of_centre) const {
    if (found_.empty()) return centre_;
    std::vector<double> prices = program_.prices();
    for (size_t i = 0; i < prices.size(); ++i) {
      prices[i] = share_of_centre * centre_[i] + (1 - share_of_centre) * prices[i];
    }
    return prices;
  }

  // The heuristic finds other trees at slightly other prices.
  std::vector<double> Shaken() {
    std::vector<double> prices = program_.prices();
    for (size_t i = 0; i < prices.size(); ++i) {
      prices[i] *= 1 + 0.3 * static_cast<double>(random_() % 1000) / 1000;
      prices[i] += 1e-9 / network_.limits()[i];
    }
    return prices;
  }

  bool Try(PricedTree cheapest, const std::vector<double>& prices) {
    TakeBound(prices, std::min(cheapest.price, CheapestCarrier(prices)));
    std::vector<LimitUse> uses = UsesOf(network_, cheapest.tree);
    if (!program_.Offer(uses, static_cast<uint32_t>(found_.size()))) return false;
    found_.push_back({std::move(cheapest.tree), std::move(uses)});
    return true;
  }

  // Scaled so that the cheapest tree costs 1, prices are a bound.
  void TakeBound(const std::vector<double>& prices, double cheapest) {
    double worth = 0;
    for (size_t i = 0; i < prices.size(); ++i) worth += prices[i] * network_.limits()[i];
    if (cheapest <= 0 || worth / cheapest >= bound_) return;
    bound_ = worth / cheapest;
    centre_ = prices;
    for (double& price : centre_) price /= cheapest;
  }

  // The heuristic can miss even trees that the packing has; then its bound would be too low.
  double CheapestCarrier(const std::vector<double>& prices) const {
    double least = std::numeric_limits<double>::infinity();
    for (const PackingProgram::Carrier& carrier : program_.carriers()) {
      double price = 0;
      for (const LimitUse& use : found_[carrier.id].uses) price += prices[use.limit] * use.times;
      least = std::min(least, price);
    }
    return least;
  }

  // A packing of the fastest ones alone.
  std::vector<PackingProgram::Carrier> Fewer(std::vector<PackingProgram::Carrier> carriers) const {
    std::sort(carriers.begin(), carriers.end(),
              [](const auto& a, const auto& b) { return a.rate > b.rate; });
    carriers.resize(options_.most_trees);
    PackingProgram program(network_.limits());
    constexpr int kMostPasses = 4;  // the first one does nearly all of it
    bool better = true;
    for (int pass = 0; pass < kMostPasses && better; ++pass) {
      better = false;
      for (const PackingProgram::Carrier& carrier : carriers) {
        better |= program.Offer(found_[carrier.id].uses, carrier.id);
      }
    }
    return program.carriers();
  }

  const FlowNetwork& network_;
  const PackingOptions options_;
  CheapestTree cheapest_;
  PackingProgram program_;
  std::vector<Found> found_;
  std::vector<double> centre_;  // the prices of the best bound
  double bound_ = std::numeric_limits<double>::infinity();
  std::minstd_rand random_{7};
};

}  // namespace

TreePacking PackTrees(const FlowNetwork& network, const PackingOptions& options) {
  Packer packer(network, options);
  packer.Run();
  return packer.Take();
}

}  // namespace ecpipe
