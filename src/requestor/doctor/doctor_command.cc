// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/doctor_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/process/version.h"
#include "base/status.h"
#include "requestor/cli/terminal.h"
#include "requestor/doctor/doctor_client.h"
#include "requestor/doctor/findings.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<DoctorFacts> TakeFacts(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(common.tls));
  ECPIPE_ASSIGN_OR_RETURN(const auto coordinator, ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(ClusterStatus status, coordinator->Status());
  DoctorFacts facts{.status = std::move(status),
                    .examination = ExamineCluster(common.coordinator, tls),
                    .own_version = Version(),
                    .own_certificate_end = {},
                    .own_tls = {},
                    .now_unix_seconds = Clock::System().UnixMillis() / 1000};
  const absl::Status& examined = facts.examination.status();
  if (absl::IsUnavailable(examined) || absl::IsDeadlineExceeded(examined)) return examined;
  if (tls != nullptr) {
    facts.own_certificate_end = tls->ExpiryUnixSeconds();
    facts.own_tls = tls->Facts();
  }
  return facts;
}

Json FindingsJson(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"severity", SeverityName(finding.severity)},
                    {"check", finding.check},
                    {"where", finding.where},
                    {"what", finding.what},
                    {"advice", finding.advice}});
  }
  return json;
}

}  // namespace

absl::Status RunDoctor(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const DoctorFacts facts, TakeFacts(common));
  const std::vector<Finding> findings = Judge(facts);
  const auto count = [&](Severity severity) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const Finding& finding) { return finding.severity == severity; });
  };
  const auto errors = count(Severity::kError);
  const auto warnings = count(Severity::kWarning);
  if (common.json) {
    const Json json{
        {"errors", errors}, {"warnings", warnings}, {"findings", FindingsJson(findings)}};
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::fputs(FindingsText(findings, OutputStyleOf(STDOUT_FILENO).colours).c_str(), stdout);
  }
  if (errors == 0) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrFormat("the cluster is not well: errors %d, warnings %d", errors, warnings));
}

}  // namespace ecpipe
