// SPDX-License-Identifier: Apache-2.0
// What came into the language of parts after its first form. Whoever runs parts announces what it
// has, the coordinator plans with what all who take part have, and a part names the least that it
// needs. Nobody runs a part whose needs it lacks: fields that a program does not know are dropped
// when a message is read, and the same part without them would make other bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// The features that whoever runs this hop of the plan needs. Features that this program does not
// have itself are not among them.
Features NeedsOf(const RepairPlan& plan, const PlanHop& hop);

// The names by which features travel: "sub-blocks", "raw-rows", "check-rows".
std::vector<std::string> FeatureNames(Features features);
// What another program says it has. Passes over names that are not known here.
Features FeaturesNamed(const std::vector<std::string>& names);
// What a part needs. FAILED_PRECONDITION, naming the first one that this program lacks.
absl::StatusOr<Features> NeedsNamed(const std::vector<std::string>& names);

// What this program has: all features, but for tests of versions side by side.
Features OwnFeatures();
// For tests, before any thread exists: from then on this program has only these features, and what
// it reads loses the fields that a program of that time did not know. "none" is a program that
// knows nothing of features either; INVALID_ARGUMENT: a name is not known.
absl::Status ActAsOlder(const std::string& comma_separated_names);
bool ActsAsOlder();
bool KnowsFeatures();

}  // namespace ecpipe
