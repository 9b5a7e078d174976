// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/port_findings.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ecpipe {
namespace {

constexpr size_t kMostNames = 5;

std::string NameOf(const std::string& node) { return node.empty() ? kCoordinator : node; }

// A port that some nodes do not reach.
struct Unreached {
  std::vector<std::string> by;
  std::string error;  // the first
};

}  // namespace

std::string NamesText(const std::vector<std::string>& names) {
  if (names.size() <= kMostNames) return absl::StrJoin(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kMostNames);
  return absl::StrFormat("%s and %d others", absl::StrJoin(first, ", "), names.size() - kMostNames);
}

PortFindings FindPortTroubles(const Examination& examination) {
  PortFindings found;
  size_t dialling = 0;
  std::map<std::pair<std::string, std::string>, Unreached> unreached;  // by node, and port
  const auto add = [&](const std::string& from, const DialFacts& dials) {
    found.dialled += dials.dialled;
    found.not_dialled += dials.not_dialled;
    dialling += dials.dialled > 0 ? 1 : 0;
    if (dials.failed == 0) return;
    // One that reaches nothing is itself cut off; the others are not at fault.
    if (dials.failed == dials.dialled && dials.dialled > 2) {
      found.troubles.push_back(
          {from,
           absl::StrFormat("it reaches none of %d ports of the others, such as %s: %s",
                           dials.dialled, dials.failures.front().address,
                           dials.failures.front().error),
           "look at its network, its routes and what its firewall lets out"});
      return;
    }
    for (const DialFacts::Failure& failure : dials.failures) {
      Unreached& port =
          unreached[{NameOf(failure.node), failure.port + " port " + failure.address}];
      port.by.push_back(from);
      if (port.error.empty()) port.error = failure.error;
    }
  };
  add(kCoordinator, examination.dials);
  for (const NodeFacts& node : examination.nodes) {
    if (node.status.ok()) add(node.node, node.dials);
  }
  for (const auto& [target, port] : unreached) {
    const bool all = port.by.size() + 1 >= dialling;
    found.troubles.push_back(
        {target.first,
         absl::StrFormat("its %s is not reached by %s: %s", target.second, NamesText(port.by),
                         port.error),
         all ? "nobody reaches it: see whether [listen] in its helper.toml, or advertise_control "
               "and advertise_data, name an address that other hosts reach, and whether a firewall "
               "is before it"
             : "open the way between these hosts: a firewall, a route, or a name that they resolve "
               "otherwise"});
  }
  return found;
}

}  // namespace ecpipe
