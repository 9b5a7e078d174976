// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/known_links.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/status/status.h"
#include "base/guarded.h"

namespace ecpipe {
namespace {

// The kernel counts in ticks of some milliseconds; less than a few of them is no measurement.
constexpr double kLeastNetworkSeconds = 0.02;
constexpr double kLeastNetworkShare = 0.8;
// What comes sooner may have passed as a burst, and says nothing of the link.
constexpr double kLeastSecondsOfBound = 0.1;
constexpr double kLongestSeconds = 1e6;
constexpr double kFastest = 1e12;                                // bytes per second
constexpr Duration kLongestUnchanged = std::chrono::minutes(1);  // to forget what is old
constexpr size_t kSmallTable = 1000;
// One link may be slow because of its other end.
constexpr int kLinksThatShowANode = 3;

bool Sane(const LinkTiming& timing) {
  // Comparisons with a NaN are false.
  return timing.bytes > 0 && timing.seconds > 0 && timing.seconds < kLongestSeconds &&
         timing.network_seconds >= 0 &&
         static_cast<double>(timing.bytes) / timing.seconds < kFastest;
}

// In bytes a second; 0 where too few links show what the node has.
NodeSpeeds FastestByNode(const LinkTable& links) {
  struct Seen {
    int links_up = 0;
    int links_down = 0;
    NodeSpeed fastest{0, 0};
  };
  std::map<std::string, Seen> seen;
  for (const auto& [pair, speed] : links) {
    Seen& from = seen[pair.first];
    Seen& to = seen[pair.second];
    ++from.links_up;
    ++to.links_down;
    from.fastest.up = std::max(from.fastest.up, speed);
    to.fastest.down = std::max(to.fastest.down, speed);
  }
  NodeSpeeds nodes;
  for (const auto& [name, of] : seen) {
    nodes[name] = {of.links_up >= kLinksThatShowANode ? of.fastest.up : 0,
                   of.links_down >= kLinksThatShowANode ? of.fastest.down : 0};
  }
  return nodes;
}

// What a node's own link has, by the links that leave or enter it: the fastest of them, or at least
// `free` if it is faster than all of them. 0: not known.
double OwnLink(int links, SpeedTable::Sharing sharing, double fastest, double free) {
  using enum SpeedTable::Sharing;
  if (sharing == kFree) return std::max(fastest, free);
  return sharing == kShared || links >= kLinksThatShowANode ? fastest : 0;
}

// Where nothing is known yet.
void FillInMeasured(const SpeedTable& table, const std::string& node, NodeSpeed* speed) {
  const auto known = table.nodes.find(node);
  if (known == table.nodes.end()) return;
  const SpeedTable::Node& of = known->second;
  const double up = of.up_bytes_per_second;
  const double down = of.down_bytes_per_second;
  // A free link had two streams at once, each as fast as alone.
  if (speed->up <= 0) speed->up = OwnLink(of.links_up, of.up_sharing, up, 2 * up);
  if (speed->down <= 0) speed->down = OwnLink(of.links_down, of.down_sharing, down, 2 * down);
}

// To the median of those that are known. What is unknown becomes 1: as most others have.
void MakeRelative(double NodeSpeed::* way, NodeSpeeds* speeds) {
  std::vector<double> known;
  for (const auto& [node, speed] : *speeds) {
    if (speed.*way > 0) known.push_back(speed.*way);
  }
  if (known.empty()) known.push_back(1);
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  for (auto& [node, speed] : *speeds) speed.*way = speed.*way > 0 ? speed.*way / *middle : 1;
}

}  // namespace

void KnownLinks::Record(const std::string& from, const LinkTiming& timing, bool alone) {
  if (!Sane(timing)) return;
  const auto bytes = static_cast<double>(timing.bytes);
  // The kernel's ticks are coarser than our clock.
  const double network_seconds = std::min(timing.network_seconds, timing.seconds);
  const bool network_bound =
      network_seconds >= std::max(kLeastNetworkSeconds, kLeastNetworkShare * timing.seconds);
  {
    MutexLock lock(&history_mutex_);
    if (alone && network_bound) {
      history_.Measured(from, timing.to, bytes / network_seconds, clock_->Now());
    } else if (timing.seconds >= kLeastSecondsOfBound) {
      history_.AtLeast(from, timing.to, bytes / timing.seconds);
    }
  }
  Changed();
}

void KnownLinks::RecordProbe(const std::string& from, const LinkTiming& timing, bool alone) {
  if (!Sane(timing)) return;
  const double speed = static_cast<double>(timing.bytes) / timing.seconds;
  {
    MutexLock lock(&history_mutex_);
    if (alone) {
      history_.Measured(from, timing.to, speed, clock_->Now());
    } else {
      history_.AtLeast(from, timing.to, speed);
    }
  }
  Changed();
}

void KnownLinks::RecordTogether(const std::vector<Stream>& streams,
                                const std::map<std::string, std::string>& racks) {
  std::map<std::pair<std::string, std::string>, std::vector<const Stream*>> groups;
  for (const Stream& stream : streams) {
    groups[{stream.from, ""}].push_back(&stream);
    groups[{"", stream.to}].push_back(&stream);
    const auto from = racks.find(stream.from);
    const auto to = racks.find(stream.to);
    if (from == racks.end() || to == racks.end() || from->second == to->second) continue;
    if (!from->second.empty() && !to->second.empty()) {
      groups[{from->second, to->second}].push_back(&stream);
    }
  }
  {
    MutexLock lock(&history_mutex_);
    for (const Stream& stream : streams) {
      history_.AtLeast(stream.from, stream.to, stream.bytes_per_second);
    }
    for (const auto& [key, group] : groups) {
      if (group.size() < 2) continue;
      std::set<std::string> ends;
      double sum = 0;
      double alone = 0;
      bool all_known = true;
      for (const Stream* stream : group) {
        ends.insert({stream->from, stream->to});
        sum += stream->bytes_per_second;
        const double known = history_.SpeedOf(stream->from, stream->to);
        all_known &= known > 0;
        alone += known;
      }
      // Where they have a node in common, what they share may be its link.
      const bool of_racks = !key.first.empty() && !key.second.empty();
      if (!all_known || (of_racks && ends.size() < 2 * group.size())) continue;
      history_.Together(key, sum, alone, clock_->Now());
    }
  }
  Changed();
}

void KnownLinks::Changed() {
  {
    MutexLock lock(&mutex_);
    changed_ = true;
  }
  // Rather than the next plan, which somebody waits for.
  Renew(kSmallTable);
}

void KnownLinks::Renew(size_t least_pairs) {
  const TimePoint now = clock_->Now();
  {
    MutexLock lock(&mutex_);
    const size_t pairs = table_ == nullptr ? 0 : table_->pairs.size();
    const Duration age = now - made_;
    const bool news = changed_ && (pairs < kSmallTable || age >= std::chrono::seconds(1));
    const bool due = news || (table_ != nullptr && age >= kLongestUnchanged);
    if (!due || renewing_ || pairs < least_pairs) return;
    renewing_ = true;
    changed_ = false;
    made_ = now;
  }
  std::shared_ptr<const SpeedTable> table;
  const absl::Status made = Guarded([&] {
    MutexLock lock(&history_mutex_);
    history_.Forget(clock_->Now());
    table = std::make_shared<const SpeedTable>(history_.Table());
    return absl::OkStatus();
  });
  MutexLock lock(&mutex_);
  renewing_ = false;
  if (made.ok()) table_.swap(table);  // the one before goes without the lock
  if (!made.ok()) changed_ = true;    // without memory now, the next look may have some
}

std::shared_ptr<const LinkTable> KnownLinks::configured() {
  MutexLock lock(&mutex_);
  return configured_;
}

void KnownLinks::SetConfigured(std::shared_ptr<const LinkTable> configured) {
  NodeSpeeds nodes = configured == nullptr ? NodeSpeeds() : FastestByNode(*configured);
  MutexLock lock(&mutex_);
  configured_ = std::move(configured);
  configured_nodes_ = std::move(nodes);
}

NodeSpeeds KnownLinks::SpeedsOf(const std::vector<std::string>& nodes) {
  NodeSpeeds speeds;
  {
    MutexLock lock(&mutex_);
    for (const std::string& node : nodes) {
      const auto file = configured_nodes_.find(node);
      NodeSpeed speed = file == configured_nodes_.end() ? NodeSpeed{0, 0} : file->second;
      if (table_ != nullptr) FillInMeasured(*table_, node, &speed);
      if (speed.up > 0 || speed.down > 0) speeds.emplace(node, speed);
    }
  }
  MakeRelative(&NodeSpeed::up, &speeds);
  MakeRelative(&NodeSpeed::down, &speeds);
  return speeds;
}

void KnownLinks::FillIn(ClusterView* cluster) {
  Renew(0);
  std::shared_ptr<const SpeedTable> table;
  {
    MutexLock lock(&mutex_);
    cluster->links = configured_;
    table = table_;
  }
  if (table == nullptr || table->pairs.empty()) return;
  cluster->measured = std::shared_ptr<const LinkTable>(table, &table->pairs);
  for (PlanNode& node : cluster->nodes) {
    const auto known = table->nodes.find(node.node);
    if (known == table->nodes.end()) continue;
    const SpeedTable::Node& of = known->second;
    const double free = cluster->default_bytes_per_second;
    const double up = OwnLink(of.links_up, of.up_sharing, of.up_bytes_per_second, free);
    const double down = OwnLink(of.links_down, of.down_sharing, of.down_bytes_per_second, free);
    if (up > 0) node.up_bytes_per_second = up;
    if (down > 0) node.down_bytes_per_second = down;
  }
  cluster->shared_by_racks =
      table->racks.empty() ? nullptr : std::shared_ptr<const LinkTable>(table, &table->racks);
}

std::vector<LinkEstimate> KnownLinks::Measured() {
  MutexLock lock(&history_mutex_);
  history_.Forget(clock_->Now());
  return history_.All();
}

}  // namespace ecpipe
