// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/scheme.h"

#include <algorithm>

namespace ecpipe {

// In scheme_table.cc, which the build makes.
std::vector<const Scheme*> SchemeTable();

namespace {

bool KnowsLinks(const ClusterView& cluster) {
  return HavePairs(cluster) ||
         std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [](const PlanNode& node) {
           return node.up_bytes_per_second > 0 || node.down_bytes_per_second > 0;
         });
}

bool KnowsRacks(const ClusterView& cluster) {
  const std::string* first = nullptr;
  for (const PlanNode& node : cluster.nodes) {
    if (node.rack.empty()) continue;
    if (first != nullptr && node.rack != *first) return true;
    first = &node.rack;
  }
  return false;
}

template <typename Wanted>
std::vector<std::string> NamesOf(Wanted wanted) {
  std::vector<std::string> names;
  for (const Scheme* scheme : AllSchemes()) {
    if (wanted(*scheme)) names.emplace_back(scheme->name);
  }
  return names;
}

const char* KindName(SchemeKind kind) {
  switch (kind) {
    case SchemeKind::kRepairs:
      return "repairs";
    case SchemeKind::kBaseline:
      return "baseline";
    case SchemeKind::kDirect:
      return "direct";
  }
  return "";
}

SchemeInfo Describe(const Scheme& scheme) {
  SchemeInfo info{scheme.name,
                  KindName(scheme.kind),
                  scheme.help,
                  scheme.timeslots,
                  scheme.source,
                  static_cast<uint32_t>(scheme.most_failed),
                  {}};
  if (scheme.looks_at.links) info.looks_at.emplace_back("links");
  if (scheme.looks_at.racks) info.looks_at.emplace_back("racks");
  if (scheme.looks_at.several_blocks) info.looks_at.emplace_back("several blocks");
  return info;
}

}  // namespace

const std::vector<const Scheme*>& AllSchemes() {
  static const auto* const schemes = [] {
    auto* sorted = new std::vector<const Scheme*>(SchemeTable());
    std::sort(sorted->begin(), sorted->end(),
              [](const Scheme* a, const Scheme* b) { return a->rank < b->rank; });
    return sorted;
  }();
  return *schemes;
}

const Scheme* FindScheme(const std::string& name) {
  const std::vector<const Scheme*>& all = AllSchemes();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Scheme* scheme) { return scheme->name == name; });
  return found == all.end() ? nullptr : *found;
}

std::vector<std::string> SchemeNames() {
  return NamesOf([](const Scheme&) { return true; });
}

std::vector<std::string> SchemesForLostBlocks() {
  return NamesOf([](const Scheme& scheme) { return scheme.kind != SchemeKind::kDirect; });
}

std::vector<std::string> SchemesThatRepair() {
  return NamesOf([](const Scheme& scheme) { return scheme.kind == SchemeKind::kRepairs; });
}

std::vector<std::string> SchemesWorthATry(const ClusterView& cluster, size_t failed_blocks) {
  const bool links = KnowsLinks(cluster);
  const bool racks = KnowsRacks(cluster);
  return NamesOf([&](const Scheme& scheme) {
    return scheme.kind == SchemeKind::kRepairs && (links || !scheme.looks_at.links) &&
           (racks || !scheme.looks_at.racks) &&
           (failed_blocks > 1 || !scheme.looks_at.several_blocks);
  });
}

std::vector<SchemeInfo> DescribeSchemes() {
  std::vector<SchemeInfo> all;
  for (const Scheme* scheme : AllSchemes()) all.push_back(Describe(*scheme));
  return all;
}

}  // namespace ecpipe
