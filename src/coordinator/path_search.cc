// SPDX-License-Identifier: Apache-2.0
#include "coordinator/path_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "common/check.h"

namespace ecpipe {
namespace {

// A set of candidates.
class NodeSet {
 public:
  void Add(int node) { words_[Word(node)] |= Bit(node); }
  void Remove(int node) { words_[Word(node)] &= ~Bit(node); }
  bool Has(int node) const { return (words_[Word(node)] & Bit(node)) != 0; }
  int Count() const {
    int count = 0;
    for (const uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  bool Empty() const { return (words_[0] | words_[1] | words_[2] | words_[3]) == 0; }

  friend NodeSet operator&(NodeSet a, const NodeSet& b) {
    for (size_t i = 0; i < a.words_.size(); ++i) a.words_[i] &= b.words_[i];
    return a;
  }
  NodeSet& operator|=(const NodeSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  friend NodeSet operator-(NodeSet a, const NodeSet& b) {
    for (size_t i = 0; i < a.words_.size(); ++i) a.words_[i] &= ~b.words_[i];
    return a;
  }
  friend auto operator<=>(const NodeSet&, const NodeSet&) = default;

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        visit(static_cast<int>(i * 64) + std::countr_zero(rest));
      }
    }
  }

 private:
  static size_t Word(int node) { return static_cast<size_t>(node) / 64; }
  static uint64_t Bit(int node) { return uint64_t{1} << (node % 64); }

  std::array<uint64_t, 4> words_{};
};

enum class Answer { kYes, kNo, kUnknown };

// Whether there is a path over links of at least one speed.
class PathQuestion {
 public:
  PathQuestion(const LinkSpeeds& speeds, double least, int length, uint64_t step_limit)
      : length_(length), step_limit_(step_limit), senders_(speeds.candidates() + 1) {
    for (int from = 0; from < speeds.candidates(); ++from) {
      all_.Add(from);
      for (int to = 0; to <= speeds.requestor(); ++to) {
        if (from != to && speeds.at(from, to) >= least) senders_[Of(to)].Add(from);
      }
    }
  }

  Answer Ask() {
    const int requestor = static_cast<int>(senders_.size()) - 1;
    if (!EnoughLinks(requestor)) return Answer::kNo;
    return Extend(requestor, length_, all_);
  }

  // After kYes, the first sender first.
  std::vector<int> path() const { return {backwards_.rbegin(), backwards_.rend()}; }
  uint64_t steps() const { return steps_; }

 private:
  static constexpr size_t kMaxDeadEnds = 100'000;

  static size_t Of(int node) { return static_cast<size_t>(node); }

  // A path has `length` links, in which each node sends once and receives once at most. So many
  // links must at least fit side by side, the requestor's among them.
  bool EnoughLinks(int requestor) {
    std::vector<int> receiver_of(Of(requestor), -1);
    int links = 0;
    for (int to = requestor; to >= 0 && links < length_; --to) {
      NodeSet tried;
      if (GiveSender(to, &receiver_of, &tried)) {
        ++links;
      } else if (to == requestor) {
        return false;
      }
    }
    return links >= length_;
  }
  bool GiveSender(int to, std::vector<int>* receiver_of, NodeSet* tried) {
    bool given = false;
    (senders_[Of(to)] - *tried).ForEach([&](int from) {
      if (given || tried->Has(from)) return;
      tried->Add(from);
      int& receiver = (*receiver_of)[Of(from)];
      if (receiver >= 0 && !GiveSender(receiver, receiver_of, tried)) return;
      receiver = to;
      given = true;
    });
    return given;
  }

  // Puts `missing` more helpers of `free` before `first`.
  Answer Extend(int first, int missing, const NodeSet& free) {
    if (missing == 0) return Answer::kYes;
    if (++steps_ > step_limit_) return Answer::kUnknown;
    if (Usable(first, free) < missing) return Answer::kNo;
    const std::pair<NodeSet, int> state(free, first);
    if (dead_ends_.contains(state)) return Answer::kNo;
    for (const int next : InOrder(senders_[Of(first)] & free)) {
      NodeSet rest = free;
      rest.Remove(next);
      backwards_.push_back(next);
      const Answer answer = Extend(next, missing - 1, rest);
      if (answer != Answer::kNo) return answer;
      backwards_.pop_back();
    }
    if (dead_ends_.size() < kMaxDeadEnds) dead_ends_.insert(state);
    return Answer::kNo;
  }

  // How many of `free` a path that goes on from `first` can use at most: those from which `first`
  // can be reached, and of those to which nobody sends only one, at the path's beginning.
  int Usable(int first, const NodeSet& free) const {
    NodeSet reached;
    NodeSet border = senders_[Of(first)] & free;
    int beginnings = 0;
    while (!border.Empty()) {
      reached |= border;
      NodeSet next;
      border.ForEach([&](int node) {
        const NodeSet senders = senders_[Of(node)] & free;
        if (senders.Empty()) ++beginnings;
        next |= senders;
      });
      border = next - reached;
    }
    return reached.Count() - std::max(0, beginnings - 1);
  }

  // Those with the fewest senders of their own first: they only become harder to use later.
  std::vector<int> InOrder(const NodeSet& nodes) const {
    std::vector<std::pair<int, int>> ranked;
    nodes.ForEach([&](int node) { ranked.push_back({senders_[Of(node)].Count(), node}); });
    std::sort(ranked.begin(), ranked.end());
    std::vector<int> order;
    for (const auto& [senders, node] : ranked) order.push_back(node);
    return order;
  }

  const int length_;
  const uint64_t step_limit_;
  std::vector<NodeSet> senders_;  // of each candidate, and of the requestor
  NodeSet all_;
  std::vector<int> backwards_;
  std::set<std::pair<NodeSet, int>> dead_ends_;
  uint64_t steps_ = 0;
};

double SlowestLink(const LinkSpeeds& speeds, const std::vector<int>& path) {
  double slowest = speeds.at(path.back(), speeds.requestor());
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    slowest = std::min(slowest, speeds.at(path[i], path[i + 1]));
  }
  return slowest;
}

// From the requestor backwards, always the fastest link: a first path, and a first lower bound.
std::vector<int> GreedyPath(const LinkSpeeds& speeds, int length) {
  std::vector<int> backwards;
  std::vector<bool> used(static_cast<size_t>(speeds.candidates()), false);
  int first = speeds.requestor();
  while (static_cast<int>(backwards.size()) < length) {
    int best = -1;
    for (int from = 0; from < speeds.candidates(); ++from) {
      if (used[static_cast<size_t>(from)]) continue;
      if (best < 0 || speeds.at(from, first) > speeds.at(best, first)) best = from;
    }
    used[static_cast<size_t>(best)] = true;
    backwards.push_back(best);
    first = best;
  }
  return {backwards.rbegin(), backwards.rend()};
}

// The speeds that a slowest link can have and that beat `least`, ascending.
std::vector<double> Thresholds(const LinkSpeeds& speeds, double least) {
  double fastest_to_requestor = 0;
  for (int from = 0; from < speeds.candidates(); ++from) {
    fastest_to_requestor = std::max(fastest_to_requestor, speeds.at(from, speeds.requestor()));
  }
  std::vector<double> values;
  for (int from = 0; from < speeds.candidates(); ++from) {
    for (int to = 0; to <= speeds.requestor(); ++to) {
      const double speed = from == to ? 0 : speeds.at(from, to);
      if (speed > least && speed <= fastest_to_requestor) values.push_back(speed);
    }
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

WidestPath FindWidestPath(const LinkSpeeds& speeds, int length, uint64_t max_steps) {
  ECPIPE_CHECK(1 <= length && length <= speeds.candidates());
  ECPIPE_CHECK(speeds.candidates() <= LinkSpeeds::kMaxCandidates);
  WidestPath best;
  best.helpers = GreedyPath(speeds, length);
  best.speed = SlowestLink(speeds, best.helpers);
  const std::vector<double> thresholds = Thresholds(speeds, best.speed);
  // Thresholds below `low` have been beaten, those from `high` on cannot be, or not be found;
  // from `proven` on they are known to be impossible.
  size_t low = 0;
  size_t high = thresholds.size();
  size_t proven = high;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    // A hard question must not take all that easier ones after it need.
    const uint64_t left = best.steps < max_steps ? (max_steps - best.steps) / 2 : 0;
    PathQuestion question(speeds, thresholds[middle], length, left);
    const Answer answer = question.Ask();
    best.steps += question.steps();
    if (answer == Answer::kYes) {
      best.helpers = question.path();
      best.speed = SlowestLink(speeds, best.helpers);
      low = static_cast<size_t>(std::upper_bound(thresholds.begin(), thresholds.end(), best.speed) -
                                thresholds.begin());
      continue;
    }
    high = middle;
    if (answer == Answer::kNo) proven = middle;
  }
  best.bound = proven == 0 ? best.speed : std::max(best.speed, thresholds[proven - 1]);
  return best;
}

}  // namespace ecpipe
