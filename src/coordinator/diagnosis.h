// SPDX-License-Identifier: Apache-2.0
// Whom to leave out of the next attempt of a repair, judged by what its helpers say of their parts.
// Pure. docs/design/008-attempts.md has the reasoning.
#pragma once

#include <map>
#include <string>
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

// One stream that is much slower than the others of its attempt, though nothing but the network is
// in its way, and by whose slowness the attempt is held up.
struct SlowLinks {
  std::map<std::string, int> ends;  // at how many slow links each node is
  std::string sender;               // of the slowest
  double speedup = 1;               // that is to be had without them
};
// Judged by what passed in the `seconds` since the answers `before`, or since the attempt began if
// that is null: over its whole time a link that has become slow looks fast for long. Nothing in
// `ends` if no link stands out.
SlowLinks WhichIsSlow(const PartAnswers& answers, const PartAnswers* before, double seconds);

}  // namespace ecpipe
