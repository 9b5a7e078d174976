// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/path_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "base/check.h"

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

// Racks by number, and their candidates; home is among them, if need be without any.
std::vector<std::vector<int>> Members(const RackRule& rule) {
  std::vector<std::vector<int>> members(static_cast<size_t>(rule.home + 1));
  for (int node = 0; node < static_cast<int>(rule.rack_of.size()); ++node) {
    const auto rack = static_cast<size_t>(rule.rack_of[static_cast<size_t>(node)]);
    if (rack >= members.size()) members.resize(rack + 1);
    members[rack].push_back(node);
  }
  return members;
}

// Racks other than home, those with most candidates first.
std::vector<int> RemoteRacks(const RackRule& rule, const std::vector<std::vector<int>>& members) {
  std::vector<int> racks;
  for (int rack = 0; rack < static_cast<int>(members.size()); ++rack) {
    if (rack != rule.home) racks.push_back(rack);
  }
  std::stable_sort(racks.begin(), racks.end(), [&](int a, int b) {
    return members[static_cast<size_t>(a)].size() > members[static_cast<size_t>(b)].size();
  });
  return racks;
}

// What a RackRule lets a path do next.
class RackWalk {
 public:
  RackWalk(const RackRule& rule, int requestor) : rule_(rule), requestor_(requestor) {
    const std::vector<std::vector<int>> members = Members(rule);
    for (const std::vector<int>& rack : members) {
      NodeSet& set = racks_.emplace_back();
      for (const int node : rack) set.Add(node);
    }
    remote_by_size_ = RemoteRacks(rule, members);
  }

  // Who of `free` may come before `first`, the path's beginning so far.
  NodeSet Allowed(int first, const NodeSet& free) const {
    NodeSet allowed;
    int visited = 0;
    for (const int rack : remote_by_size_) visited += Untouched(rack, free) ? 0 : 1;
    const int here = RackOf(first);
    if (here >= 0) allowed |= Set(here) & free;
    if (visited < rule_.most_remote) {
      for (const int rack : remote_by_size_) {
        if (Untouched(rack, free)) allowed |= Set(rack);
      }
    }
    return allowed;
  }

  // How many a path that goes on from `first` can hold at most.
  int Room(int first, const NodeSet& free) const {
    const int here = RackOf(first);
    int room = here >= 0 ? (Set(here) & free).Count() : 0;
    int left = rule_.most_remote;
    for (const int rack : remote_by_size_) left -= Untouched(rack, free) ? 0 : 1;
    for (const int rack : remote_by_size_) {
      if (left <= 0) break;
      if (!Untouched(rack, free)) continue;
      room += Set(rack).Count();
      --left;
    }
    return room;
  }

 private:
  const NodeSet& Set(int rack) const { return racks_[static_cast<size_t>(rack)]; }
  bool Untouched(int rack, const NodeSet& free) const { return (Set(rack) - free).Empty(); }
  int RackOf(int node) const {
    return node == requestor_ ? rule_.home : rule_.rack_of[static_cast<size_t>(node)];
  }

  const RackRule& rule_;
  const int requestor_;
  std::vector<NodeSet> racks_;
  std::vector<int> remote_by_size_;
};

enum class Answer { kYes, kNo, kUnknown };

// Whether there is a path over links of at least one speed.
class PathQuestion {
 public:
  // `walk` may be null: any path will do.
  PathQuestion(const LinkSpeeds& speeds, const RackWalk* walk, double least, int length,
               uint64_t step_limit)
      : walk_(walk), length_(length), step_limit_(step_limit), senders_(speeds.candidates() + 1) {
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
    if (walk_ != nullptr && walk_->Room(first, free) < missing) return Answer::kNo;
    const std::pair<NodeSet, int> state(free, first);
    if (dead_ends_.contains(state)) return Answer::kNo;
    NodeSet nexts = senders_[Of(first)] & free;
    if (walk_ != nullptr) nexts = nexts & walk_->Allowed(first, free);
    for (const int next : InOrder(nexts)) {
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

  const RackWalk* const walk_;
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

// Algorithm 1 of the paper: home first, then the largest racks.
std::vector<int> RackByRackPath(const RackRule& rule, int length) {
  const std::vector<std::vector<int>> members = Members(rule);
  std::vector<int> backwards;
  const auto visit = [&](int rack) {
    for (const int node : members[static_cast<size_t>(rack)]) {
      if (static_cast<int>(backwards.size()) < length) backwards.push_back(node);
    }
  };
  if (rule.home >= 0) visit(rule.home);
  for (const int rack : RemoteRacks(rule, members)) visit(rack);
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

// `first_path` is one that will do.
WidestPath Search(const LinkSpeeds& speeds, const RackWalk* walk, std::vector<int> first_path,
                  uint64_t max_steps) {
  const int length = static_cast<int>(first_path.size());
  WidestPath best;
  best.helpers = std::move(first_path);
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
    PathQuestion question(speeds, walk, thresholds[middle], length, left);
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

}  // namespace

int FewestRemoteRacks(const RackRule& rule, int length) {
  const std::vector<std::vector<int>> members = Members(rule);
  int room = 0;
  if (rule.home >= 0) {
    room = static_cast<int>(members[static_cast<size_t>(rule.home)].size());
  }
  int racks = 0;
  for (const int rack : RemoteRacks(rule, members)) {
    if (room >= length) break;
    room += static_cast<int>(members[static_cast<size_t>(rack)].size());
    ++racks;
  }
  ECPIPE_CHECK(room >= length);
  return racks;
}

WidestPath FindWidestPath(const LinkSpeeds& speeds, int length, uint64_t max_steps) {
  ECPIPE_CHECK(1 <= length && length <= speeds.candidates());
  ECPIPE_CHECK(speeds.candidates() <= LinkSpeeds::kMaxCandidates);
  return Search(speeds, nullptr, GreedyPath(speeds, length), max_steps);
}

WidestPath FindWidestPath(const LinkSpeeds& speeds, const RackRule& rule, int length,
                          uint64_t max_steps) {
  ECPIPE_CHECK(1 <= length && length <= speeds.candidates());
  ECPIPE_CHECK(speeds.candidates() <= LinkSpeeds::kMaxCandidates);
  ECPIPE_CHECK(static_cast<int>(rule.rack_of.size()) == speeds.candidates());
  ECPIPE_CHECK(rule.most_remote >= FewestRemoteRacks(rule, length));
  const RackWalk walk(rule, speeds.requestor());
  return Search(speeds, &walk, RackByRackPath(rule, length), max_steps);
}

}  // namespace ecpipe
