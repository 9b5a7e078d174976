// SPDX-License-Identifier: Apache-2.0
#include "model/plan/features.h"

#include <array>
#include <sstream>
#include <utility>

#include "base/status.h"

namespace ecpipe {
namespace {

constexpr std::array<std::pair<Feature, const char*>, 3> kNames = {
    {{Feature::kSubBlocks, "sub-blocks"},
     {Feature::kRawRows, "raw-rows"},
     {Feature::kCheckRows, "check-rows"}}};

struct Own {
  Features features;
  bool older = false;
  bool knows_features = true;
};

Own& TheOwn() {
  static Own* const own = [] {
    auto* all = new Own;
    for (const auto& [feature, name] : kNames) all->features.Add(feature);
    return all;
  }();
  return *own;
}

// Null: there is none of that name.
const Feature* Named(const std::string& name) {
  for (const auto& [feature, known] : kNames) {
    if (name == known) return &feature;
  }
  return nullptr;
}

}  // namespace

Features OwnFeatures() { return TheOwn().features; }
bool ActsAsOlder() { return TheOwn().older; }
bool KnowsFeatures() { return TheOwn().knows_features; }

Features NeedsOf(const RepairPlan& plan, const PlanHop& hop) {
  Features needs;
  if (plan.layout.sub_blocks > 1) needs.Add(Feature::kSubBlocks);
  for (const PlanInput& input : hop.inputs) {
    if (!input.coefficients.empty()) needs.Add(Feature::kRawRows);
  }
  if (plan.check.rows > 0 && !hop.stored_rows.empty()) needs.Add(Feature::kCheckRows);
  return needs.And(OwnFeatures());
}

std::vector<std::string> FeatureNames(Features features) {
  std::vector<std::string> names;
  for (const auto& [feature, name] : kNames) {
    if (features.Has(feature)) names.emplace_back(name);
  }
  return names;
}

Features FeaturesNamed(const std::vector<std::string>& names) {
  Features features;
  for (const std::string& name : names) {
    if (const Feature* const feature = Named(name)) features.Add(*feature);
  }
  return features;
}

absl::StatusOr<Features> NeedsNamed(const std::vector<std::string>& names) {
  Features needs;
  for (const std::string& name : names) {
    const Feature* const feature = Named(name);
    if (feature == nullptr || !OwnFeatures().Has(*feature)) {
      return absl::FailedPreconditionError("the part needs '" + name +
                                           "', which this version lacks; it was planned for a "
                                           "newer one");
    }
    needs.Add(*feature);
  }
  return needs;
}

absl::Status ActAsOlder(const std::string& comma_separated_names) {
  Own older{.features = {}, .older = true, .knows_features = comma_separated_names != "none"};
  std::istringstream items(older.knows_features ? comma_separated_names : "");
  for (std::string item; std::getline(items, item, ',');) {
    const Feature* const feature = Named(item);
    if (feature == nullptr) return absl::InvalidArgumentError("no feature is called " + item);
    older.features.Add(*feature);
  }
  TheOwn() = older;
  return absl::OkStatus();
}

}  // namespace ecpipe
