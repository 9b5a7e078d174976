// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/bytes/size_text.h"
#include "base/status.h"
#include "requestor/cli/system_words.h"
#include "requestor/cli/table.h"
#include "requestor/doctor/check_report.h"
#include "requestor/doctor/format_findings.h"
#include "requestor/doctor/node_troubles.h"
#include "requestor/doctor/port_findings.h"
#include "requestor/doctor/tls_findings.h"

namespace ecpipe {
namespace {

using Findings = std::vector<Finding>;

std::vector<const NodeFacts*> Examined(const Examination& examination) {
  std::vector<const NodeFacts*> examined;
  for (const NodeFacts& node : examination.nodes) {
    if (node.status.ok()) examined.push_back(&node);
  }
  return examined;
}

// The daemons that told of themselves, by name.
std::vector<std::pair<std::string, const DaemonFacts*>> Daemons(const Examination& examination) {
  std::vector<std::pair<std::string, const DaemonFacts*>> daemons;
  daemons.emplace_back(kCoordinator, &examination.coordinator);
  for (const NodeFacts* node : Examined(examination)) {
    daemons.emplace_back(node->node, &node->daemon);
  }
  return daemons;
}

// What the helper says to anybody who asks; empty: it is not known.
std::string VersionInStatus(const ClusterStatus& status, const std::string& name) {
  for (const NodeStatus& node : status.nodes) {
    if (node.node == name) return node.counters.version;
  }
  return "";
}

// What else may be wrong with a node that is not heard of.
std::string TlsHint(const DoctorFacts& facts, const std::string& node) {
  const bool fails = facts.examination.ok() &&
                     absl::c_any_of(facts.examination->handshakes,
                                    [&](const HandshakeFacts& each) { return each.node == node; });
  return fails ? "; but something answers at its address, and TLS with it fails: see `tls chain`"
               : "";
}

void JudgeHelpers(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("helpers", findings);
  for (const RefusedNodeStatus& node : facts.status.refused_nodes) {
    report.Add(Severity::kError, node.node, "the coordinator refuses this helper: " + node.reason,
               "give each helper a node_id and addresses of its own, then restart it");
  }
  for (NodeStatus node : facts.status.nodes) {
    // Whether it answers, and what is wrong with its roots, is judged by its examination.
    node.answers = true;
    node.failed_roots.clear();
    const bool bad = node.state == "dead" || !node.silent_because.empty();
    for (const std::string& trouble : TroublesOf(node, HasHdfs(facts.status))) {
      report.Add(bad ? Severity::kError : Severity::kWarning, node.node, trouble,
                 (node.state == "dead"
                      ? "start it again (systemctl start ecpipe-helper), or, if the host is lost, "
                        "`ecpipe recover-node " +
                            node.node + "`"
                      : "the helper's log on that host says why; `ecpipe status` shows its state") +
                     TlsHint(facts, node.node));
    }
  }
  if (facts.status.nodes.empty()) {
    report.Add(Severity::kWarning, "", "no helper has registered",
               "start ecpipe-helper on the nodes; its [helper] coordinator must name this one");
  }
  if (facts.examination.ok()) {
    for (const NodeFacts& node : facts.examination->nodes) {
      if (node.status.ok() || absl::IsUnimplemented(node.status)) continue;
      const bool not_called =
          absl::IsCancelled(node.status) || absl::IsResourceExhausted(node.status);
      report.Add(not_called ? Severity::kNotChecked : Severity::kError, node.node,
                 (not_called ? "it was not examined: " : "it does not answer the coordinator: ") +
                     StatusText(node.status),
                 (not_called ? "mend what is above, then ask again"
                             : "its process hangs or is stopped: look at its log and at "
                               "`systemctl status ecpipe-helper` on that host, restart it if need "
                               "be") +
                     TlsHint(facts, node.node));
    }
  }
  const auto away = std::count_if(facts.status.nodes.begin(), facts.status.nodes.end(),
                                  [](const NodeStatus& node) { return node.Away(); });
  const size_t there = facts.status.nodes.size() - static_cast<size_t>(away);
  report.End(absl::StrFormat("all %d helpers are live and answer", there) +
             (away == 0
                  ? ""
                  : absl::StrFormat(", but for %d away, as a maintenance has announced", away)));
}

void JudgeVersions(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("versions", findings);
  const Examination& examination = *facts.examination;
  std::map<std::string, std::vector<std::string>> daemons_of;
  for (const auto& [name, daemon] : Daemons(examination)) {
    daemons_of[daemon->version].push_back(name);
  }
  for (const NodeFacts& node : examination.nodes) {
    if (!absl::IsUnimplemented(node.status)) continue;
    const std::string version = VersionInStatus(facts.status, node.node);
    report.Add(
        Severity::kWarning, node.node,
        (version.empty() ? "its version" : "version " + version) + " is too old to be examined",
        "upgrade its helper (docs/operations.md, Packages); nothing below is known of it");
  }
  if (daemons_of.size() > 1) {
    std::vector<std::string> texts;
    for (const auto& [version, names] : daemons_of) {
      texts.push_back(version + ": " + NamesText(names));
    }
    report.Add(Severity::kWarning, "",
               "the daemons run different versions: " + absl::StrJoin(texts, "; "),
               "finish the upgrade, one daemon after the other (docs/operations.md, Packages); new "
               "daemons that were installed run only when they are restarted");
  }
  if (facts.own_version != examination.coordinator.version) {
    report.Add(
        Severity::kWarning, kThisCommand,
        "it is " + facts.own_version + ", and the coordinator " + examination.coordinator.version,
        "use the `ecpipe` command of the coordinator's version");
  }
  std::set<std::string> features;
  for (const NodeFacts* node : Examined(examination)) {
    features.insert(node->features.begin(), node->features.end());
  }
  for (const NodeFacts* node : Examined(examination)) {
    std::vector<std::string> lacks;
    for (const std::string& feature : features) {
      const auto& has = node->features;
      if (std::find(has.begin(), has.end(), feature) == has.end()) lacks.push_back(feature);
    }
    if (lacks.empty()) continue;
    report.Add(Severity::kWarning, node->node, "it lacks " + absl::StrJoin(lacks, ", "),
               "repairs that need this leave the node out; upgrade its helper");
  }
  report.End(absl::StrFormat("all %d daemons run %s", Daemons(examination).size(),
                             examination.coordinator.version));
}

void JudgeClocks(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("clocks", findings);
  double most = 0;
  const auto examined = Examined(*facts.examination);
  for (const NodeFacts* node : examined) {
    const double off = std::abs(node->clock_ahead_seconds);
    const double uncertainty = node->clock_uncertainty_seconds;
    most = std::max(most, off + uncertainty);
    if (off - uncertainty > kMostClockSeconds) {
      report.Add(
          Severity::kWarning, node->node,
          absl::StrFormat("its clock is %.2f s %s the coordinator's (± %.2f s)", off,
                          node->clock_ahead_seconds > 0 ? "ahead of" : "behind", uncertainty),
          "synchronise it (chronyc tracking, timedatectl): certificates begin and end by "
          "it, and logs cannot be read side by side; repairs do not depend on it");
    } else if (off + uncertainty > kMostClockSeconds) {
      report.Add(Severity::kNotChecked, node->node,
                 absl::StrFormat("its clock is off by %.2f s, measured to ± %.2f s only", off,
                                 uncertainty),
                 "ask again when the node is less busy");
    }
  }
  if (examined.empty()) return report.EndUnchecked("no helper was examined");
  report.End(absl::StrFormat("those of %d helpers are within %.3f s of the coordinator's",
                             examined.size(), most));
}

void JudgeRoots(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("roots", findings);
  size_t roots = 0;
  std::set<std::string> failed;  // as heartbeats say it: "PATH: reason"
  for (const NodeFacts* node : Examined(*facts.examination)) {
    roots += node->roots.size();
    for (const DirectoryFacts& root : node->roots) {
      if (root.error.empty()) continue;
      failed.insert(node->node + " " + root.path);
      report.Add(Severity::kError, node->node, root.path + ": " + root.error,
                 "see whether its disk is mounted and sound (dmesg), and whether the helper's user "
                 "may use it; the helper notices by itself. `ecpipe catalog check` names blocks "
                 "that are gone");
    }
  }
  for (const NodeStatus& node : facts.status.nodes) {
    if (node.state == "dead") continue;
    for (const std::string& root : node.failed_roots) {
      const std::string path = root.substr(0, root.find(": "));
      if (failed.contains(node.node + " " + path)) continue;
      report.Add(Severity::kError, node.node, root,
                 "mend or replace its disk; the helper notices by itself");
    }
  }
  if (roots == 0) return report.EndUnchecked("no helper was examined");
  report.End(
      absl::StrFormat("all %d can be listed and read, and written where they take blocks", roots));
}

void JudgeStores(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("stores", findings);
  std::map<std::string, std::vector<std::string>> nodes_of;
  for (const NodeFacts* node : Examined(*facts.examination)) {
    nodes_of[node->store].push_back(node->node);
  }
  if (nodes_of.empty()) return report.EndUnchecked("no helper was examined");
  std::vector<std::string> texts;
  for (const auto& [store, names] : nodes_of) texts.push_back(store + ": " + NamesText(names));
  if (nodes_of.size() > 1) {
    report.Add(Severity::kWarning, "",
               "helpers have stores of several kinds: " + absl::StrJoin(texts, "; "),
               "set [helper] store to what each host has, unless this is meant");
  }
  report.End("all helpers have stores of one kind, " + nodes_of.begin()->first);
}

void JudgeRoom(const std::string& where, const DirectoryFacts& directory, CheckReport* report) {
  if (!directory.takes_blocks || directory.total_bytes == 0) return;
  const double free =
      static_cast<double>(directory.free_bytes) / static_cast<double>(directory.total_bytes);
  const bool none = directory.free_bytes < kNoRoomBytes;
  if (!none && free >= kLittleRoom) return;
  report->Add(none ? Severity::kError : Severity::kWarning, where,
              absl::StrFormat("the disk of %s has %s left, %.1f %%", directory.path,
                              FormatSize(directory.free_bytes), 100 * free),
              where == kCoordinator
                  ? "make room: without it no repair is noted down and no backup is made"
                  : "make room or add a root: repairs that store blocks go to other nodes");
}

void JudgeRooms(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("disk room", findings);
  JudgeRoom(kCoordinator, facts.examination->data_directory, &report);
  for (const NodeFacts* node : Examined(*facts.examination)) {
    for (const DirectoryFacts& root : node->roots) JudgeRoom(node->node, root, &report);
  }
  report.End("enough on the disks that take blocks, and on the coordinator's");
}

void JudgeDescriptors(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("descriptors", findings);
  for (const auto& [name, daemon] : Daemons(*facts.examination)) {
    const double used = static_cast<double>(daemon->open_descriptors) /
                        std::max<double>(static_cast<double>(daemon->max_descriptors), 1);
    const bool few = daemon->max_descriptors < kFewDescriptors;
    if (!few && used < kMuchOfDescriptors) continue;
    report.Add(
        used >= kMostOfDescriptors ? Severity::kError : Severity::kWarning, name,
        absl::StrFormat("%d of %d are in use", daemon->open_descriptors, daemon->max_descriptors),
        absl::StrFormat(
            "raise its limit: LimitNOFILE=%d in its unit (systemctl edit), or ulimit -n, "
            "then restart it; without descriptors it refuses connections",
            std::max<uint64_t>(kUsualDescriptors, 2 * daemon->max_descriptors)));
  }
  report.End(absl::StrFormat("each daemon may have %d or more, and has less than half in use",
                             kFewDescriptors));
}

void JudgeCertificate(const std::string& where, int64_t end, int64_t now, CheckReport* report) {
  constexpr int64_t kDay = 86400;
  const int64_t left = end - now;
  if (left > kWarnDays * kDay) return;
  const std::string what = left <= 0 ? "it, or its CA's, has ended"
                                     : absl::StrFormat("it, or its CA's, ends in %.1f days",
                                                       static_cast<double>(left) / kDay);
  report->Add(
      left <= kErrorDays * kDay ? Severity::kError : Severity::kWarning, where, what,
      "renew it with ecpipe-make-certs (docs/operations.md, Security); daemons take new files "
      "without a restart");
}

void JudgeCertificates(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("certificates", findings);
  size_t number = 0;
  int64_t first_end = INT64_MAX;
  const auto judge = [&](const std::string& where, std::optional<int64_t> end) {
    if (!end) return;
    ++number;
    first_end = std::min(first_end, *end);
    JudgeCertificate(where, *end, facts.now_unix_seconds, &report);
  };
  if (facts.examination.ok()) {
    for (const auto& [name, daemon] : Daemons(*facts.examination)) {
      judge(name, daemon->certificate_end);
    }
  }
  judge(kThisCommand, facts.own_certificate_end);
  if (number == 0) {
    return report.EndUnchecked("there are none: nothing is protected by TLS here");
  }
  report.End(absl::StrFormat("of %d the first ends in %d days", number,
                             (first_end - facts.now_unix_seconds) / 86400));
}

void JudgeSources(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("storage systems", findings);
  std::vector<std::string> good;
  for (const SystemStatus& system : facts.status.systems) {
    const SystemWords words = WordsOf(system.system);
    const std::string manager = words.manager;
    if (!system.facts.configured) {
      report.Add(Severity::kWarning, kCoordinator,
                 absl::StrFormat("helpers serve blocks of %s, and no %s is configured", words.name,
                                 manager),
                 absl::StrFormat("set %s in coordinator.toml, unless its clients name each stripe",
                                 words.setting));
    } else if (!system.facts.last_error.empty() || !system.facts.age_seconds) {
      report.Add(Severity::kError, kCoordinator,
                 "the " + manager + " does not answer: " +
                     (system.facts.last_error.empty() ? "there was no answer yet"
                                                      : system.facts.last_error),
                 absl::StrFormat("see whether the %s runs, whether %s names it, and whether the "
                                 "coordinator's host reaches its port",
                                 manager, words.setting));
    } else if (!system.facts.safe_mode.empty()) {
      report.Add(Severity::kWarning, kCoordinator,
                 "the " + manager + " orders no repairs: " + system.facts.safe_mode,
                 "wait for the end of that, or end it there");
    } else {
      good.push_back(
          absl::StrFormat("the %s answered %.0f s ago", manager, *system.facts.age_seconds));
    }
  }
  if (facts.status.systems.empty()) {
    return report.EndUnchecked("neither a NameNode nor a metaserver is configured");
  }
  report.End(absl::StrJoin(good, ", "));
}

void JudgePorts(const DoctorFacts& facts, Findings* findings) {
  CheckReport report("ports", findings);
  const PortFindings ports = FindPortTroubles(*facts.examination);
  for (const PortTrouble& trouble : ports.troubles) {
    report.Add(Severity::kError, trouble.where, trouble.what, trouble.advice);
  }
  if (ports.not_dialled > 0) {
    report.Add(
        Severity::kNotChecked, "",
        absl::StrFormat("%d ways between nodes were not tried for want of time", ports.not_dialled),
        "mend what is above, then ask again");
  }
  report.End(absl::StrFormat("all %d ways between nodes are open", ports.dialled));
}

void JudgeExamination(const DoctorFacts& facts, Findings* findings) {
  JudgeVersions(facts, findings);
  JudgePorts(facts, findings);
  JudgeRoots(facts, findings);
  JudgeStores(facts, findings);
  CheckReport format("store format", findings);
  JudgeStoreFormat(facts, &format);
  JudgeRooms(facts, findings);
  JudgeDescriptors(facts, findings);
  JudgeClocks(facts, findings);
}

// Of a coordinator that examines nothing.
void NoteUnexamined(const DoctorFacts& facts, Findings* findings) {
  const absl::Status& why = facts.examination.status();
  const bool old = absl::IsUnimplemented(why);
  CheckReport("versions", findings)
      .Add(old ? Severity::kWarning : Severity::kError, kCoordinator,
           old ? "version " + facts.status.version + " is too old to be examined"
               : "it examined nothing: " + StatusText(why),
           old ? "upgrade it (docs/operations.md, Packages)"
               : "do what the message says, then ask again");
  for (const char* check :
       {"ports", "roots", "stores", "store format", "disk room", "descriptors", "clocks"}) {
    CheckReport(check, findings).EndUnchecked("the coordinator examined nothing");
  }
}

}  // namespace

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNotChecked:
      return "not checked";
    case Severity::kOk:
      return "ok";
  }
  return "error";
}

std::vector<Finding> Judge(const DoctorFacts& facts) {
  Findings findings;
  JudgeHelpers(facts, &findings);
  facts.examination.ok() ? JudgeExamination(facts, &findings) : NoteUnexamined(facts, &findings);
  JudgeCertificates(facts, &findings);
  CheckReport chain("tls chain", &findings);
  JudgeTlsChain(facts, &chain);
  JudgeSources(facts, &findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return findings;
}

std::string FindingsText(const std::vector<Finding>& findings, bool colours) {
  const OutputStyle style{.colours = colours};
  std::string text;
  for (const Finding& finding : findings) {
    const Tint tint = finding.severity == Severity::kError     ? Tint::kBad
                      : finding.severity == Severity::kWarning ? Tint::kBusy
                      : finding.severity == Severity::kOk      ? Tint::kGood
                                                               : Tint::kFaint;
    text += Tinted(SeverityName(finding.severity), tint, style) + "  " + finding.check + ": " +
            (finding.where.empty() ? "" : finding.where + ": ") + finding.what + "\n";
    if (!finding.advice.empty()) text += "    " + finding.advice + "\n";
  }
  return text;
}

}  // namespace ecpipe
