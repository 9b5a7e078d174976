// SPDX-License-Identifier: Apache-2.0
// What a scheme is, and the registry of all schemes.
//
// A scheme is one file in schemes/. It defines one constant, which has the name of the file:
//
//   namespace ecpipe::schemes {
//   extern const Scheme rp_weighted = {.name = "rp-weighted", ...};
//   }
//
// The build makes the registry from the names of these files. All that lists schemes reads it:
// requests, `auto`, configurations, helps, documents and tests.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/planning/plan_request.h"
#include "model/scheme_info.h"

namespace ecpipe {

enum class SchemeKind {
  kRepairs,   // rebuilds lost blocks; `auto` may take it
  kBaseline,  // rebuilds lost blocks, to compare with
  kDirect,    // reads blocks that are not lost
};

// What a scheme looks at. Where that is not known, or is the same everywhere, the scheme has
// nothing to win, and `auto` does not plan it.
struct LooksAt {
  bool links = false;           // the speeds of links
  bool racks = false;           // which nodes are in one rack
  bool several_blocks = false;  // more than one failed block
};

// How slices flow: as asked for, the whole range as one slice (of at most kMaxSliceBytes), or one
// slice at a time at each helper.
enum class SchemeFlow { kPipelined, kWholeBlock, kSerial };

struct Scheme {
  const char* name;       // what requests call it: the name of its file, with '-' for '_'
  const char* help;       // what it does, and what to take it for: at most 64 characters
  const char* timeslots;  // for one failed block over equal links, k helpers and s slices
  const char* source;     // "§4.3" of the paper, or where else it is from
  SchemeKind kind = SchemeKind::kRepairs;
  LooksAt looks_at = {};
  size_t most_failed = kMaxRows;  // failed blocks that one plan can rebuild
  SchemeFlow flow = SchemeFlow::kPipelined;
  // Lanes have shares by the speeds of links: where these turn out slower, what is missing is
  // divided anew (planning/lane_watch.h).
  bool weighs_lanes = false;
  // Lists are in ascending order of this, and `auto` takes the first of equals. No two are equal.
  int rank;
  // Writes the lanes, for a request that has passed MakePlan's checks. Pure. All rows of failed
  // blocks that go to one requestor travel together.
  absl::StatusOr<PlanLanes> (*plan)(const PlanRequest& request);
};

// In ascending order of their ranks. They live for ever.
const std::vector<const Scheme*>& AllSchemes();

// Null: there is none of this name.
const Scheme* FindScheme(const std::string& name);

// The names of AllSchemes().
std::vector<std::string> SchemeNames();

// The names of those that rebuild lost blocks: all but SchemeKind::kDirect.
std::vector<std::string> SchemesForLostBlocks();

// The names of those of SchemeKind::kRepairs, which are all that `auto` may take.
std::vector<std::string> SchemesThatRepair();

// Of these the ones that can be best, as far as this is known of the cluster.
std::vector<std::string> SchemesWorthATry(const ClusterView& cluster, size_t failed_blocks);

// AllSchemes() in words.
std::vector<SchemeInfo> DescribeSchemes();

}  // namespace ecpipe
