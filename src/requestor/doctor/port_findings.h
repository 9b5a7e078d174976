// SPDX-License-Identifier: Apache-2.0
// Ports that some node does not reach, as few sentences: of n nodes there are n (n - 1) ways, and
// one firewall closes many. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "requestor/doctor/facts.h"

namespace ecpipe {

// As findings call it.
inline constexpr const char* kCoordinator = "coordinator";

struct PortTrouble {
  std::string where;  // the node whose port is not reached, or that reaches no other
  std::string what;
  std::string advice;
};

struct PortFindings {
  uint64_t dialled = 0;
  uint64_t not_dialled = 0;
  std::vector<PortTrouble> troubles;
};

PortFindings FindPortTroubles(const Examination& examination);

// The first of these, and how many there are beside them.
std::string NamesText(const std::vector<std::string>& names);

}  // namespace ecpipe
