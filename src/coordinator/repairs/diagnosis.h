// SPDX-License-Identifier: Apache-2.0
// Decides which nodes the next attempt of a repair should leave out, from what the helpers answer
// about their parts. Pure. docs/design/008-attempts.md has the reasoning.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/plan/part_progress.h"

namespace ecpipe {

// The answer of each helper of an attempt, by node.
using PartAnswers = std::map<std::string, absl::StatusOr<PartProgress>>;

struct Suspect {
  std::string reason;
  bool certain = true;  // false: another node may be at fault instead
  // If a link has failed: the helper at its other end, which may be at fault instead. Empty if that
  // end is a requestor, which cannot be left out.
  std::string other_end;
  bool slow = false;  // the node's links are slow, and nothing else is wrong
  bool away = false;  // its helper has gone, and may come back with a new start
};
using Suspects = std::map<std::string, Suspect>;

// The nodes to which each node of an attempt sends; one entry for each stream.
using Receivers = std::map<std::string, std::vector<std::string>>;

// The suspects of an attempt that failed at its requestor with `failure`.
Suspects WhoFailed(const PartAnswers& answers, const absl::Status& failure,
                   const Receivers& receivers = {});

// The suspects of an attempt whose requestor receives no bytes. `before` has the answers of a
// moment ago, when it received none either; null at the first check. There are no suspects while
// bytes come in anywhere.
Suspects WhoIsStuck(const PartAnswers& answers, const PartAnswers* before);

// What has come from a node over the streams that have not ended, as their receivers tell.
uint64_t BytesFrom(const std::string& node, const PartAnswers& answers);

// What senders report of their streams, by sender, lane, hop and receiver.
struct Passed {
  uint64_t bytes = 0;
  double network_seconds = 0;
};
using Sent = std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, Passed>;
// Leaves out impossible values.
Sent SentBy(const PartAnswers& answers);
// Whether each helper whose part runs has reported its streams.
bool AllTell(const PartAnswers& answers);

// The links of an attempt that are much slower than the others, although only the network holds
// them up, and that hold up the attempt.
struct SlowLinks {
  std::map<std::string, int> ends;  // for each node: the number of slow links that it is an end of
  std::string sender;               // the sender of the slowest link
  double speedup = 1;    // how many times as fast the repair could be without these links
  double pace = 0;       // bytes per second that the usual link has passed
  bool telling = false;  // whether a slow link would have stood out
};
// Judges by the bytes that passed in the `seconds` since `before`, or since the attempt began if
// that is null. (Judged over its whole time, a link that has become slow would look fast for long.)
// A link that rested meanwhile counts as fast as over its whole time. `best_pace` is the best pace
// that the repair has had; without it (0) the result is a guess, because a link that waits for
// another one and passes bursts looks faster than it is. For a guess a link that several senders
// share counts as fast as all that they pass. `ends` is empty if no link stands out; if
// `telling` is false as well, check again later with the same `before`.
SlowLinks WhichIsSlow(const Sent& now, const Sent* before, double seconds, double best_pace = 0);

}  // namespace ecpipe
