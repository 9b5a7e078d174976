// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/client/coordinator_client.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::vector<std::string>> LiveNodes(CoordinatorApi* coordinator) {
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus status, coordinator->Status());
  std::vector<std::string> nodes;
  for (const NodeStatus& node : status.nodes) {
    if (node.state == "live") nodes.push_back(node.node);
  }
  return nodes;
}

// Waits while another round runs, or the nodes rest after one.
absl::StatusOr<ProbeReport> ProbeWhenRested(
    CoordinatorApi* coordinator, const std::vector<std::pair<std::string, std::string>>& links,
    uint64_t bytes) {
  constexpr auto kPatience = std::chrono::minutes(1);
  constexpr auto kPause = std::chrono::milliseconds(200);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    absl::StatusOr<ProbeReport> report = coordinator->ProbeLinks(links, bytes);
    const bool resting = absl::IsResourceExhausted(report.status());
    if (!resting || std::chrono::steady_clock::now() > give_up) return report;
    std::this_thread::sleep_for(kPause);  // sleep-ok: the coordinator said not now
  }
}

void PrintJson(const std::vector<LinkSpeed>& links) {
  Json json = Json::array();
  for (const LinkSpeed& link : links) {
    json.push_back({{"from", link.from},
                    {"to", link.to},
                    {"mbit", Mbit(link.bytes_per_second)},
                    {"samples", link.samples},
                    {"age_seconds", link.age_seconds}});
  }
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace

// In round r each node sends to the one r places after it: everybody sends once and receives once.
absl::Status RunProbe(const CommonArguments& common, const ProbeArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  std::vector<std::string> nodes = arguments.nodes;
  if (nodes.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(nodes, LiveNodes(coordinator.get()));
  }
  if (nodes.size() < 2) return absl::InvalidArgumentError("a probe needs at least two nodes");
  std::vector<LinkSpeed> measured;
  absl::Status failed;
  for (size_t round = 1; round < nodes.size(); ++round) {
    std::vector<std::pair<std::string, std::string>> links;
    for (size_t i = 0; i < nodes.size(); ++i) {
      links.emplace_back(nodes[i], nodes[(i + round) % nodes.size()]);
    }
    const absl::StatusOr<ProbeReport> answer =
        ProbeWhenRested(coordinator.get(), links, arguments.bytes);
    if (!answer.ok()) {
      failed = answer.status();
      break;
    }
    const ProbeReport& report = *answer;
    if (report.outcomes.size() != links.size()) {
      return absl::InternalError(
          "the coordinator answered for other links than this command asked for");
    }
    for (size_t i = 0; i < links.size(); ++i) {
      const ProbeOutcome& outcome = report.outcomes[i];
      const auto& [from, to] = links[i];
      if (outcome.error.empty()) {
        measured.push_back({from, to, outcome.bytes_per_second, 1, 0});
        if (!common.json) {
          std::printf("%s %s %.3f\n", from.c_str(), to.c_str(), Mbit(outcome.bytes_per_second));
        }
      } else {
        failed = absl::UnavailableError("some links could not be measured");
        std::fprintf(stderr, "ecpipe: %s to %s: %s\n", from.c_str(), to.c_str(),
                     outcome.error.c_str());
      }
    }
    std::fflush(stdout);
    if (round + 1 == nodes.size()) break;
    const std::chrono::duration<double> rest(report.rest_seconds);
    std::this_thread::sleep_for(rest);  // sleep-ok: the coordinator said for how long
  }
  if (common.json) PrintJson(measured);
  return failed;
}

absl::Status RunLinks(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<LinkSpeed> links, coordinator->Links());
  if (common.json) {
    PrintJson(links);
    return absl::OkStatus();
  }
  for (const LinkSpeed& link : links) {
    std::printf("%s %s %.3f  # ", link.from.c_str(), link.to.c_str(), Mbit(link.bytes_per_second));
    if (link.samples == 0) {
      std::printf("written down\n");
    } else {
      std::printf("measured %llu times, last %.0f s ago\n",
                  static_cast<unsigned long long>(link.samples), link.age_seconds);
    }
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
