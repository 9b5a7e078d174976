// SPDX-License-Identifier: Apache-2.0
#include "model/scheme_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ecpipe {
namespace {

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

std::string SchemesText(const std::vector<SchemeInfo>& schemes) {
  const SchemeInfo heading{.name = "scheme", .help = "what it does", .timeslots = "timeslots"};
  size_t name_width = heading.name.size();
  size_t timeslots_width = heading.timeslots.size();
  for (const SchemeInfo& scheme : schemes) {
    name_width = std::max(name_width, scheme.name.size());
    timeslots_width = std::max(timeslots_width, scheme.timeslots.size());
  }
  const auto line = [&](const SchemeInfo& scheme) {
    return Padded(scheme.name, name_width) + "  " + Padded(scheme.timeslots, timeslots_width) +
           "  " + scheme.help + "\n";
  };
  std::string text = line(heading);
  for (const SchemeInfo& scheme : schemes) text += line(scheme);
  return text +
         "\nk helpers of n blocks, s slices, f lost blocks. A timeslot is one block over one "
         "link;\n"
         "all links are equal. auto takes the scheme with the least expected time.\n";
}

std::string SchemesJson(const std::vector<SchemeInfo>& schemes) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const SchemeInfo& scheme : schemes) {
    all.push_back({{"scheme", scheme.name},
                   {"kind", scheme.kind},
                   {"help", scheme.help},
                   {"timeslots", scheme.timeslots},
                   {"source", scheme.source},
                   {"most_failed", scheme.most_failed},
                   {"looks_at", scheme.looks_at}});
  }
  return all.dump(2) + "\n";
}

}  // namespace ecpipe
