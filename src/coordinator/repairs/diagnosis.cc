// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/diagnosis.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// A stream tells of its link once this much went over it.
constexpr uint64_t kTellingBytes = 256u << 10;
// A link that holds others up is in use for most of the time...
constexpr double kHoldsUp = 0.3;
// ...and is this much slower than the usual one of the attempt.
constexpr double kSlower = 3;
constexpr size_t kLinksToCompare = 3;
// A time tells of slow links if the usual one passes so much in it. What sockets had at its begin
// then hides no link that is ten times slower: it looks like 1/10 + 1/6 of the usual one.
constexpr double kTellingTime = 2 * kSlower * kTellingBytes;

// Those who do not answer, who have lost their part, or who say that they are at fault.
Suspects ByTheirOwnWord(const PartAnswers& answers) {
  Suspects suspects;
  for (const auto& [node, answer] : answers) {
    if (absl::IsNotFound(answer.status())) {
      suspects[node] = {"its helper restarted during the repair"};
      suspects[node].away = true;
    } else if (!answer.ok()) {
      // Who is only slow to answer may have too much to do.
      suspects[node] = {"its helper does not answer: " + std::string(answer.status().message()),
                        /*certain=*/!absl::IsDeadlineExceeded(answer.status())};
      suspects[node].away = true;
    } else if (!answer->running && FaultOf(answer->ended) == kFaultSelf) {
      suspects[node] = {std::string(answer->ended.message())};
    }
  }
  return suspects;
}

// The node at whose fault this node's own part ended; empty if it runs, or does not know.
std::string FaultOfPart(const PartAnswers& answers, const std::string& node) {
  const auto found = answers.find(node);
  if (found == answers.end() || !found->second.ok() || found->second->running) return "";
  const std::string faulty = FaultOf(found->second->ended);
  return answers.contains(faulty) ? faulty : "";
}

// All that moves, in one number. A stream's receiver tells what has come. The sender's socket takes
// bytes for seconds after the receiver has stopped, as its buffer grows, so the sender is believed
// only where the receiver is not asked.
uint64_t BytesMoved(const PartAnswers& answers) {
  uint64_t bytes = 0;
  for (const auto& [node, answer] : answers) {
    if (!answer.ok()) continue;
    for (const HopProgress& hop : answer->hops) {
      for (const StreamProgress& stream : hop.inputs) bytes += stream.bytes;
      for (const StreamProgress& stream : hop.outputs) {
        if (!answers.contains(stream.node)) bytes += stream.bytes;
      }
    }
  }
  return bytes;
}

// Streams that have not ended: they leave BytesMoved when they do.
size_t StreamsOpen(const PartAnswers& answers) {
  size_t streams = 0;
  for (const auto& [node, answer] : answers) {
    if (!answer.ok()) continue;
    for (const HopProgress& hop : answer->hops) streams += hop.inputs.size() + hop.outputs.size();
  }
  return streams;
}

// Whether a receiver at `node` could take bytes from `sender`. Requestors are not asked; whoever
// calls knows that they wait.
bool WaitsFor(const PartAnswers& answers, const std::string& node, const std::string& sender) {
  const auto found = answers.find(node);
  if (found == answers.end()) return true;
  if (!found->second.ok()) return false;
  for (const HopProgress& hop : found->second->hops) {
    for (const StreamProgress& input : hop.inputs) {
      if (input.node == sender && input.waiting) return true;
    }
  }
  return false;
}

struct Link {
  double speed = 0;  // in bytes per second of the time in which the network held it up
  double share = 0;  // of all time that this was
  double pace = 0;   // in bytes per second of all time
  std::string from;
  std::string to;
};

// Senders that share their receiver's link have a part of it each. So if the network holds several
// of them up, each counts as fast as if it had the others' parts, too. The streams beside a slow
// sender wait for it, and the network does not hold them up.
void AddWhatOtherSendersTake(std::vector<Link>& links) {
  struct Held {
    double pace = 0;
    double share = 0;
  };
  std::map<std::string, Held> by_receiver;
  std::map<std::pair<std::string, std::string>, Held> by_pair;
  for (const Link& link : links) {
    if (link.share < kHoldsUp) continue;
    for (Held* held : {&by_receiver[link.to], &by_pair[{link.from, link.to}]}) {
      held->pace += link.pace;
      held->share += link.share;
    }
  }
  for (Link& link : links) {
    if (link.share < kHoldsUp) continue;
    const Held& all = by_receiver[link.to];
    const Held& own = by_pair[{link.from, link.to}];
    const double pace = link.pace + all.pace - own.pace;
    const double share = link.share + all.share - own.share;
    link.speed = std::max(link.speed, pace / std::min(1.0, share));
  }
}

// The links whose streams tell of them.
std::vector<Link> LinksThatTell(const Sent& now, const Sent* before, double seconds) {
  std::vector<Link> links;
  for (const auto& [stream, sent] : now) {
    if (sent.bytes < kTellingBytes || sent.network_seconds <= 0) continue;
    Link link{.speed = static_cast<double>(sent.bytes) / sent.network_seconds,
              .share = 0,
              .pace = 0,
              .from = std::get<0>(stream),
              .to = std::get<3>(stream)};
    if (before == nullptr) {
      link.share = sent.network_seconds / seconds;
      link.pace = static_cast<double>(sent.bytes) / seconds;
    } else if (const auto found = before->find(stream); found != before->end()) {
      const Passed& earlier = found->second;
      link.share = (sent.network_seconds - earlier.network_seconds) / seconds;
      const auto bytes = static_cast<double>(sent.bytes - std::min(sent.bytes, earlier.bytes));
      link.pace = bytes / seconds;
      // Bytes count when the socket takes them; those that it had at the time passed since.
      if (link.share >= kHoldsUp) link.speed = (bytes + kTellingBytes) / (link.share * seconds);
    }
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace

Suspects WhoFailed(const PartAnswers& answers, const absl::Status& failure,
                   const Receivers& receivers) {
  Suspects suspects = ByTheirOwnWord(answers);
  // A sender that fails in the middle of a frame cannot say why, and its receiver takes it to be at
  // fault: what the sender itself says of its end goes further.
  std::string faulty = FaultOf(failure);
  std::set<std::string> seen;
  while (seen.insert(faulty).second) {
    const std::string further = FaultOfPart(answers, faulty);
    if (further.empty()) break;
    faulty = further;
  }
  if (answers.contains(faulty) && !suspects.contains(faulty)) {
    const auto to = receivers.find(faulty);
    const bool one =
        to != receivers.end() && to->second.size() == 1 && answers.contains(to->second[0]);
    suspects[faulty] = {std::string(failure.message()), /*certain=*/false,
                        one ? to->second[0] : ""};
  }
  return suspects;
}

Suspects WhoIsStuck(const PartAnswers& answers, const PartAnswers* before) {
  Suspects suspects = ByTheirOwnWord(answers);
  if (!suspects.empty() || before == nullptr) return suspects;
  if (BytesMoved(answers) != BytesMoved(*before) || StreamsOpen(answers) != StreamsOpen(*before)) {
    return {};
  }
  for (const auto& [node, answer] : answers) {
    for (const HopProgress& hop : answer->hops) {
      if (hop.waits_for_disk) suspects[node] = {"its disk does not answer", /*certain=*/false};
    }
    // It may be with a disk, or at work on a slice as large as a block.
    if (answer->running && answer->hops.empty()) {
      suspects[node] = {"its part does not answer", /*certain=*/false};
    }
  }
  if (!suspects.empty()) return suspects;
  for (const auto& [node, answer] : answers) {
    for (const HopProgress& hop : answer->hops) {
      for (const StreamProgress& output : hop.outputs) {
        if (!output.waiting || !WaitsFor(answers, output.node, node)) continue;
        suspects[node] = {"no bytes pass between it and " + output.node, /*certain=*/false,
                          answers.contains(output.node) ? output.node : ""};
      }
    }
  }
  return suspects;
}

uint64_t BytesFrom(const std::string& node, const PartAnswers& answers) {
  uint64_t bytes = 0;
  for (const auto& [receiver, answer] : answers) {
    if (!answer.ok()) continue;
    for (const HopProgress& hop : answer->hops) {
      for (const StreamProgress& input : hop.inputs) bytes += input.node == node ? input.bytes : 0;
    }
  }
  return bytes;
}

Sent SentBy(const PartAnswers& answers) {
  constexpr double kLongestSeconds = 1e6;
  Sent sent;
  for (const auto& [node, answer] : answers) {
    if (!answer.ok()) continue;
    for (const HopProgress& hop : answer->hops) {
      for (const StreamProgress& output : hop.outputs) {
        // Comparisons with a NaN are false.
        const bool sane = output.network_seconds >= 0 && output.network_seconds < kLongestSeconds;
        if (!sane) continue;
        Passed& sum = sent[{node, hop.lane, hop.hop, output.node}];
        sum.bytes += output.bytes;
        sum.network_seconds += output.network_seconds;
      }
    }
  }
  return sent;
}

bool AllTell(const PartAnswers& answers) {
  return std::all_of(answers.begin(), answers.end(), [](const auto& entry) {
    const absl::StatusOr<PartProgress>& answer = entry.second;
    return answer.ok() && (!answer->running || !answer->hops.empty());
  });
}

SlowLinks WhichIsSlow(const Sent& now, const Sent* before, double seconds, double best_pace) {
  SlowLinks slow;
  if (seconds <= 0) return slow;
  std::vector<Link> links = LinksThatTell(now, before, seconds);
  if (links.size() < kLinksToCompare) return slow;
  // The best pace is that of one stream, with its part of the link.
  if (best_pace <= 0) AddWhatOtherSendersTake(links);
  std::sort(links.begin(), links.end(),
            [](const Link& a, const Link& b) { return a.speed < b.speed; });
  std::vector<double> paces;
  for (const Link& link : links) paces.push_back(link.pace);
  std::sort(paces.begin(), paces.end());
  slow.pace = paces[paces.size() / 2];
  double usual = links[links.size() / 2].speed;
  if (best_pace > 0) usual = std::min(usual, best_pace);
  slow.telling = before == nullptr || usual * seconds >= kTellingTime;
  for (const Link& link : links) {
    if (link.speed * kSlower > usual || link.share < kHoldsUp) continue;
    if (slow.ends.empty()) {
      slow.sender = link.from;
      slow.speedup = usual / link.speed;
    }
    ++slow.ends[link.from];
    ++slow.ends[link.to];
  }
  return slow;
}

}  // namespace ecpipe
