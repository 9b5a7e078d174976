// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/probe_rounds.h"
#include "requestor/client/coordinator_client.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// Waits while another round runs, or the nodes rest after one.
absl::StatusOr<ProbeReport> ProbeWhenRested(
    CoordinatorApi* coordinator, const std::vector<std::pair<std::string, std::string>>& links,
    uint64_t bytes, ProbeKind kind) {
  constexpr auto kPatience = std::chrono::minutes(1);
  constexpr auto kPause = std::chrono::milliseconds(200);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    absl::StatusOr<ProbeReport> report = coordinator->ProbeLinks(links, bytes, kind);
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
                    {"age_seconds", link.age_seconds},
                    {"shared", link.shared}});
  }
  std::printf("%s\n", json.dump().c_str());
}

class Prober {
 public:
  Prober(CoordinatorApi* coordinator, const CommonArguments& common, uint64_t bytes)
      : coordinator_(coordinator), common_(common), bytes_(bytes) {}

  // An error ends the command; links that could not be measured do not.
  absl::Status Round(const ProbeLinksOfRound& links, ProbeKind kind) {
    const std::chrono::duration<double> rest(rest_seconds_);
    std::this_thread::sleep_for(rest);  // sleep-ok: the coordinator said for how long
    ECPIPE_ASSIGN_OR_RETURN(const ProbeReport report,
                            ProbeWhenRested(coordinator_, links, bytes_, kind));
    rest_seconds_ = report.rest_seconds;
    if (report.outcomes.size() != links.size()) {
      return absl::InternalError(
          "the coordinator answered for other links than this command asked for");
    }
    for (size_t i = 0; i < links.size(); ++i) Take(links[i], report.outcomes[i], kind);
    std::fflush(stdout);
    return absl::OkStatus();
  }
  const std::vector<LinkSpeed>& measured() const { return measured_; }
  const absl::Status& failed() const { return failed_; }

 private:
  void Take(const std::pair<std::string, std::string>& link, const ProbeOutcome& outcome,
            ProbeKind kind) {
    const auto& [from, to] = link;
    if (!outcome.error.empty()) {
      failed_ = absl::UnavailableError("some links could not be measured");
      std::fprintf(stderr, "ecpipe: %s to %s: %s\n", from.c_str(), to.c_str(),
                   outcome.error.c_str());
    } else if (kind == ProbeKind::kEachLink) {
      measured_.push_back({from, to, outcome.bytes_per_second, 1, 0, false});
      if (common_.json) return;
      std::printf("%s %s %.3f\n", from.c_str(), to.c_str(), Mbit(outcome.bytes_per_second));
    }
  }

  CoordinatorApi* const coordinator_;
  const CommonArguments& common_;
  const uint64_t bytes_;
  double rest_seconds_ = 0;
  std::vector<LinkSpeed> measured_;
  absl::Status failed_;
};

absl::Status ProbeAll(Prober* prober, const std::vector<std::string>& nodes,
                      const std::map<std::string, std::string>& racks) {
  // In round r each node sends to the one r places after it: everybody sends once and receives
  // once.
  for (size_t round = 1; round < nodes.size(); ++round) {
    ProbeLinksOfRound links;
    for (size_t i = 0; i < nodes.size(); ++i) {
      links.emplace_back(nodes[i], nodes[(i + round) % nodes.size()]);
    }
    ECPIPE_RETURN_IF_ERROR(prober->Round(links, ProbeKind::kEachLink));
  }
  for (const ProbeLinksOfRound& links : RoundsAboutSharing(prober->measured(), racks)) {
    ECPIPE_RETURN_IF_ERROR(prober->Round(links, ProbeKind::kWhatIsShared));
  }
  return absl::OkStatus();
}

// The numbers of a shared limit are of no link, and so a comment in the form of [topology] links.
void PrintShared(const LinkSpeed& link) {
  const std::string what = link.to.empty()     ? "out of " + link.from
                           : link.from.empty() ? "into " + link.to
                                               : "from " + link.from + " to " + link.to;
  std::printf("# %s: %.3f for all streams together, measured %llu times, last %.0f s ago\n",
              what.c_str(), Mbit(link.bytes_per_second),
              static_cast<unsigned long long>(link.samples), link.age_seconds);
}

}  // namespace

absl::Status RunProbe(const CommonArguments& common, const ProbeArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus status, coordinator->Status());
  std::map<std::string, std::string> racks;
  std::vector<std::string> live;
  for (const NodeStatus& node : status.nodes) {
    racks[node.node] = node.rack;
    if (node.state == "live") live.push_back(node.node);
  }
  const std::vector<std::string>& nodes = arguments.nodes.empty() ? live : arguments.nodes;
  if (nodes.size() < 2) return absl::InvalidArgumentError("a probe needs at least two nodes");
  Prober prober(coordinator.get(), common, arguments.bytes);
  const absl::Status ended = ProbeAll(&prober, nodes, racks);
  if (common.json) PrintJson(prober.measured());
  return ended.ok() ? prober.failed() : ended;
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
    if (link.shared) {
      PrintShared(link);
      continue;
    }
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
