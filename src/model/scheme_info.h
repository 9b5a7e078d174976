// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ecpipe {

// What is told of a scheme to those who choose one.
struct SchemeInfo {
  std::string name;
  std::string kind;                   // "repairs", "baseline" or "direct"
  std::string help;                   // what it does, and what to take it for: one line
  std::string timeslots;              // for one lost block over equal links, k helpers and s slices
  std::string source;                 // a section of the paper, or where else it is from
  uint32_t most_failed = 0;           // lost blocks that one repair can rebuild
  std::vector<std::string> looks_at;  // of "links", "racks" and "several blocks"

  friend bool operator==(const SchemeInfo&, const SchemeInfo&) = default;
};

// A table for people.
std::string SchemesText(const std::vector<SchemeInfo>& schemes);

// An array with one object a scheme, for programs.
std::string SchemesJson(const std::vector<SchemeInfo>& schemes);

}  // namespace ecpipe
