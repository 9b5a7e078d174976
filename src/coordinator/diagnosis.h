// SPDX-License-Identifier: Apache-2.0
// Whom to leave out of the next attempt of a repair, judged by what its helpers say of their parts.
// Pure. docs/design/008-attempts.md has the reasoning.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/part_progress.h"

namespace ecpipe {

// What each helper of an attempt answered, by node.
using PartAnswers = std::map<std::string, absl::StatusOr<PartProgress>>;

struct Suspect {
  std::string reason;
  bool certain = true;  // otherwise somebody else may be at fault as well
  // The helper at the other end of the link that has failed, if that is what is known; it may as
  // well be the one at fault. A requestor cannot be left out, and is never named.
  std::string other_end;
  bool slow = false;  // and that is all
};
using Suspects = std::map<std::string, Suspect>;

// To which nodes each node of an attempt sends; one for each stream.
using Receivers = std::map<std::string, std::vector<std::string>>;

// Of an attempt that has failed at its requestor with `failure`.
Suspects WhoFailed(const PartAnswers& answers, const absl::Status& failure,
                   const Receivers& receivers = {});

// Of an attempt of which its requestor sees nothing come. `before` is what the helpers answered a
// moment ago, when it did not, either; null for the first time. Nobody while bytes move anywhere.
Suspects WhoIsStuck(const PartAnswers& answers, const PartAnswers* before);

// What senders say of their streams, by sender, lane, hop and receiver.
struct Passed {
  uint64_t bytes = 0;
  double network_seconds = 0;
};
using Sent = std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, Passed>;
// Without what cannot be.
Sent SentBy(const PartAnswers& answers);
// Whether each helper whose part runs has told of its streams.
bool AllTell(const PartAnswers& answers);

// Links that are much slower than the others of their attempt, though nothing but the network is in
// their way, and by whose slowness the attempt is held up.
struct SlowLinks {
  std::map<std::string, int> ends;  // at how many slow links each node is
  std::string sender;               // of the slowest
  double speedup = 1;               // that is to be had without them
  double pace = 0;                  // what the usual link has passed, in bytes per second
  bool telling = false;             // whether a slow link would have stood out
};
// Judged by what passed in the `seconds` since `before`, or since the attempt began if that is
// null: over its whole time a link that has become slow looks fast for long. One that rested
// meanwhile is taken to be as fast as over its whole time. Without a `best_pace`, the best that the
// repair has had, this is a guess: a link that waits for another one and lets bursts pass looks
// faster than it is. Nothing in `ends` if no link stands out: if not `telling`, look at the same
// `before` again later.
SlowLinks WhichIsSlow(const Sent& now, const Sent* before, double seconds, double best_pace = 0);

}  // namespace ecpipe
