// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes/utf8_text.h"

namespace ecpipe::findings_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kDay = 86400;

DaemonFacts GoodDaemon() {
  return {.version = "1.2.0",
          .certificate_end = kNow + 90 * kDay,
          .open_descriptors = 40,
          .max_descriptors = 65536,
          .tls = {}};
}

DirectoryFacts GoodRoot() {
  return {.path = "/blocks",
          .error = "",
          .takes_blocks = true,
          .free_bytes = 600ull << 30,
          .total_bytes = 1000ull << 30,
          .format = FormatFacts{.names = 20,
                                .more = false,
                                .headers = 10,
                                .unreadable = {},
                                .unreadable_count = 0,
                                .foreign = {},
                                .foreign_count = 0,
                                .wrong = "",
                                .error = ""}};
}

NodeFacts GoodNode(const std::string& name) {
  return {.node = name,
          .status = absl::OkStatus(),
          .clock_ahead_seconds = 0.002,
          .clock_uncertainty_seconds = 0.001,
          .daemon = GoodDaemon(),
          .store = "plain",
          .roots = {GoodRoot()},
          .dials = {.dialled = 5, .failed = 0, .not_dialled = 0, .failures = {}},
          .features = {"raw-rows"}};
}

DoctorFacts GoodCluster() {
  ClusterStatus status;
  status.version = "1.2.0";
  Examination examination{.coordinator = GoodDaemon(),
                          .data_directory = GoodRoot(),
                          .dials = {.dialled = 6, .failed = 0, .not_dialled = 0, .failures = {}},
                          .nodes = {},
                          .handshakes = {},
                          .handshakes_unknown = 0};
  for (const char* name : {"node-1", "node-2", "node-3"}) {
    NodeStatus node;
    node.node = name;
    node.state = "live";
    status.nodes.push_back(node);
    examination.nodes.push_back(GoodNode(name));
  }
  return {.status = status,
          .examination = examination,
          .own_version = "1.2.0",
          .own_certificate_end = kNow + 60 * kDay,
          .own_tls = {},
          .now_unix_seconds = kNow};
}

NodeFacts* Node(DoctorFacts* facts, size_t index) { return &facts->examination->nodes[index]; }

// Those of this check, a line each: "severity where: what".
std::vector<std::string> Of(const DoctorFacts& facts, const std::string& check) {
  std::vector<std::string> lines;
  for (const Finding& finding : Judge(facts)) {
    if (finding.check != check) continue;
    lines.push_back(std::string(SeverityName(finding.severity)) + " " + finding.where + ": " +
                    finding.what);
    const bool trouble =
        finding.severity == Severity::kError || finding.severity == Severity::kWarning;
    EXPECT_TRUE(!trouble || !finding.advice.empty()) << lines.back();
  }
  return lines;
}

// The only finding of this check.
std::string The(const DoctorFacts& facts, const std::string& check) {
  const std::vector<std::string> lines = Of(facts, check);
  EXPECT_EQ(lines.size(), 1u) << check;
  return lines.empty() ? "" : lines.front();
}

TEST(Findings, OfAHealthyClusterAllIsWell) {
  const std::vector<Finding> findings = Judge(GoodCluster());
  for (const Finding& finding : findings) {
    if (finding.check == "storage systems" || finding.check == "tls chain") continue;
    EXPECT_EQ(finding.severity, Severity::kOk) << finding.check << ": " << finding.what;
  }
  EXPECT_EQ(The(GoodCluster(), "versions"), "ok : all 4 daemons run 1.2.0");
  EXPECT_EQ(The(GoodCluster(), "ports"), "ok : all 21 ways between nodes are open");
  EXPECT_EQ(The(GoodCluster(), "certificates"), "ok : of 5 the first ends in 60 days");
  EXPECT_THAT(The(GoodCluster(), "storage systems"), HasSubstr("not checked"));
}

TEST(Findings, VersionsThatDiffer) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 1)->daemon.version = "1.3.0";
  EXPECT_EQ(The(facts, "versions"),
            "warning : the daemons run different versions: 1.2.0: coordinator, node-1, node-3; "
            "1.3.0: node-2");
  facts = GoodCluster();
  facts.own_version = "1.1.0";
  EXPECT_EQ(The(facts, "versions"), "warning this command: it is 1.1.0, and the coordinator 1.2.0");
  facts = GoodCluster();
  Node(&facts, 0)->features = {};
  EXPECT_EQ(The(facts, "versions"), "warning node-1: it lacks raw-rows");
}

TEST(Findings, AHelperThatIsTooOldIsNoFailure) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 2)->status = absl::UnimplementedError("");
  facts.status.nodes[2].counters.version = "0.9.0";
  EXPECT_EQ(The(facts, "versions"), "warning node-3: version 0.9.0 is too old to be examined");
  EXPECT_THAT(The(facts, "helpers"), HasSubstr("ok"));
}

TEST(Findings, ACoordinatorThatIsTooOldLeavesThingsUnchecked) {
  DoctorFacts facts = GoodCluster();
  facts.examination = absl::UnimplementedError("too old");
  EXPECT_EQ(The(facts, "versions"), "warning coordinator: version 1.2.0 is too old to be examined");
  EXPECT_THAT(The(facts, "ports"), HasSubstr("not checked"));
  EXPECT_EQ(The(facts, "certificates"), "ok : of 1 the first ends in 60 days");
}

TEST(Findings, AHelperThatHangsIsNamed) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 0)->status = absl::DeadlineExceededError("Deadline Exceeded");
  EXPECT_THAT(The(facts, "helpers"), HasSubstr("error node-1: it does not answer the coordinator"));
  Node(&facts, 0)->status = absl::CancelledError("no time");
  EXPECT_THAT(The(facts, "helpers"), HasSubstr("not checked node-1: it was not examined"));
}

TEST(Findings, ADeadNodeIsAnError) {
  DoctorFacts facts = GoodCluster();
  facts.status.nodes[1].state = "dead";
  facts.examination->nodes.erase(facts.examination->nodes.begin() + 1);
  EXPECT_THAT(The(facts, "helpers"), HasSubstr("error node-2: no heartbeat for"));
  facts.status.nodes[1].kept_out = "in maintenance";
  EXPECT_EQ(
      The(facts, "helpers"),
      "ok : all 2 helpers are live and answer, but for 1 away, as a maintenance has announced");
}

TEST(Findings, AClockCountsBeyondTheUncertainty) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 0)->clock_ahead_seconds = -1.5;
  EXPECT_EQ(The(facts, "clocks"),
            "warning node-1: its clock is 1.50 s behind the coordinator's (± 0.00 s)");
  Node(&facts, 0)->clock_uncertainty_seconds = 0.6;
  EXPECT_EQ(The(facts, "clocks"),
            "not checked node-1: its clock is off by 1.50 s, measured to ± 0.60 s only");
  Node(&facts, 0)->clock_ahead_seconds = 0.3;
  EXPECT_EQ(The(facts, "clocks"),
            "ok : those of 3 helpers are within 0.900 s of the coordinator's");
}

TEST(Findings, RootsByExaminationAndByHeartbeatOnce) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 1)->roots[0].error = "open the directory: No such file or directory";
  facts.status.nodes[1].failed_roots = {"/blocks: it has gone", "/other: it hangs"};
  EXPECT_THAT(
      Of(facts, "roots"),
      testing::ElementsAre("error node-2: /blocks: open the directory: No such file or directory",
                           "error node-2: /other: it hangs"));
}

TEST(Findings, RoomOfDisksThatTakeBlocks) {
  DoctorFacts facts = GoodCluster();
  DirectoryFacts& root = Node(&facts, 0)->roots[0];
  root.free_bytes = 50ull << 30;
  EXPECT_EQ(The(facts, "disk room"), "warning node-1: the disk of /blocks has 50 GiB left, 5.0 %");
  root.free_bytes = 1 << 20;
  EXPECT_THAT(The(facts, "disk room"), HasSubstr("error node-1"));
  root.takes_blocks = false;
  EXPECT_THAT(The(facts, "disk room"), HasSubstr("ok"));
  facts.examination->data_directory.free_bytes = 0;
  EXPECT_THAT(The(facts, "disk room"), HasSubstr("error coordinator"));
}

TEST(Findings, Descriptors) {
  DoctorFacts facts = GoodCluster();
  facts.examination->coordinator.max_descriptors = 1024;
  EXPECT_EQ(The(facts, "descriptors"), "warning coordinator: 40 of 1024 are in use");
  facts = GoodCluster();
  Node(&facts, 2)->daemon.open_descriptors = 33'000;
  EXPECT_EQ(The(facts, "descriptors"), "warning node-3: 33000 of 65536 are in use");
  Node(&facts, 2)->daemon.open_descriptors = 65'000;
  EXPECT_EQ(The(facts, "descriptors"), "error node-3: 65000 of 65536 are in use");
  for (const Finding& finding : Judge(facts)) {
    if (finding.check != "descriptors") continue;
    EXPECT_THAT(finding.advice, HasSubstr("LimitNOFILE=131072")) << "more than it has";
  }
}

TEST(Findings, CertificatesNearTheirEnd) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 0)->daemon.certificate_end = kNow + 20 * kDay;
  EXPECT_EQ(The(facts, "certificates"), "warning node-1: it, or its CA's, ends in 20.0 days");
  facts.own_certificate_end = kNow + 7 * kDay;
  EXPECT_THAT(Of(facts, "certificates"),
              testing::ElementsAre("error this command: it, or its CA's, ends in 7.0 days",
                                   "warning node-1: it, or its CA's, ends in 20.0 days"));
  facts = GoodCluster();
  facts.examination->coordinator.certificate_end = kNow - 1;
  EXPECT_EQ(The(facts, "certificates"), "error coordinator: it, or its CA's, has ended");
}

TEST(Findings, WithoutTlsCertificatesAreNotChecked) {
  DoctorFacts facts = GoodCluster();
  facts.own_certificate_end.reset();
  facts.examination->coordinator.certificate_end.reset();
  for (NodeFacts& node : facts.examination->nodes) node.daemon.certificate_end.reset();
  EXPECT_THAT(The(facts, "certificates"), HasSubstr("not checked"));
}

TEST(Findings, WhatLiesInRootsIsOfTheirKind) {
  DoctorFacts facts = GoodCluster();
  EXPECT_EQ(The(facts, "store format"),
            "ok : the 3 roots have what their kind of store has: 60 names were looked at and 30 "
            "headers read, which is all of them");
  FormatFacts& format = *Node(&facts, 1)->roots[0].format;
  format.more = true;
  EXPECT_THAT(The(facts, "store format"), HasSubstr("which is a part of them"));
  format.unreadable = {{"b1", "its header is damaged"}};
  format.unreadable_count = 3;
  EXPECT_EQ(The(facts, "store format"),
            "error node-2: /blocks: of 10 headers, and the directories that they lie in, 3 cannot "
            "be read: b1: its header is damaged; and 2 others");
  format.unreadable_count = 0;
  format.foreign = {{"x y", "no block's name"}};
  format.foreign_count = 1;
  EXPECT_EQ(The(facts, "store format"),
            "warning node-2: /blocks: of 20 names 1 are none that a store of kind plain has: x y: "
            "no block's name");
  format.foreign_count = 0;
  format.wrong = "it is a volume of an HDFS DataNode";
  EXPECT_EQ(The(facts, "store format"),
            "error node-2: /blocks: it is a volume of an HDFS DataNode");
}

TEST(Findings, RootsThatOlderHelpersDoNotLookAtAreUnknown) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 2)->roots[0].format.reset();
  EXPECT_EQ(The(facts, "store format"),
            "not checked node-3: /blocks: unknown: an older version, which does not look at it");
}

TEST(Findings, StorageSystems) {
  DoctorFacts facts = GoodCluster();
  SystemStatus& system = facts.status.systems.emplace_back();
  system.system = "qfs";
  EXPECT_THAT(The(facts, "storage systems"), HasSubstr("warning coordinator: helpers serve"));
  system.facts.configured = true;
  EXPECT_EQ(The(facts, "storage systems"),
            "error coordinator: the metaserver does not answer: there was no answer yet");
  system.facts.last_error = "connection refused";
  EXPECT_EQ(The(facts, "storage systems"),
            "error coordinator: the metaserver does not answer: connection refused");
  system.facts.last_error.clear();
  system.facts.age_seconds = 3;
  EXPECT_EQ(The(facts, "storage systems"), "ok : the metaserver answered 3 s ago");
}

TEST(Findings, APortThatNobodyReachesIsOneFinding) {
  DoctorFacts facts = GoodCluster();
  const DialFacts::Failure failure{"node-3", "data", "10.0.0.3:7712", "connection refused"};
  for (DialFacts* dials :
       {&facts.examination->dials, &Node(&facts, 0)->dials, &Node(&facts, 1)->dials}) {
    dials->failed = 1;
    dials->failures = {failure};
  }
  EXPECT_EQ(The(facts, "ports"),
            "error node-3: its data port 10.0.0.3:7712 is not reached by coordinator, node-1, "
            "node-2: connection refused");
}

TEST(Findings, ANodeThatReachesNobodyIsOneFinding) {
  DoctorFacts facts = GoodCluster();
  DialFacts& dials = Node(&facts, 1)->dials;
  dials.failed = 5;
  for (const char* node : {"", "node-1", "node-3"}) {
    dials.failures.push_back({node, "control", "10.0.0.1:7711", "no route"});
  }
  EXPECT_EQ(The(facts, "ports"),
            "error node-2: it reaches none of 5 ports of the others, such as 10.0.0.1:7711: no "
            "route");
}

TEST(Findings, WhatWasNotDialledIsSaid) {
  DoctorFacts facts = GoodCluster();
  Node(&facts, 1)->dials.not_dialled = 7;
  EXPECT_EQ(The(facts, "ports"),
            "not checked : 7 ways between nodes were not tried for want of time");
}

// JSON takes no other text, and a terminal obeys some of it.
TEST(Findings, WhatDaemonsSayIsCleaned) {
  const std::string dirty = "\x1b]0;\xff";
  DoctorFacts facts = GoodCluster();
  facts.status.nodes[0].node = dirty;
  facts.status.nodes[0].state = "dead";
  Node(&facts, 1)->status = absl::UnavailableError(dirty);
  facts.examination->handshakes = {{"node-3", dirty, "", ""}};
  DoctorFacts unexamined = GoodCluster();
  unexamined.examination = absl::InternalError(dirty);
  for (const DoctorFacts& each : {facts, unexamined}) {
    size_t cleaned = 0;
    for (const Finding& finding : Judge(each)) {
      const std::string text = finding.where + finding.what + finding.advice;
      EXPECT_TRUE(IsCleanText(text)) << text;
      cleaned += text.find("?]0;?") != std::string::npos ? 1 : 0;
    }
    EXPECT_GT(cleaned, 0u);
  }
}

TEST(Findings, TheWorstComesFirst) {
  DoctorFacts facts = GoodCluster();
  facts.own_version = "1.1.0";
  facts.status.nodes[2].state = "dead";
  const std::vector<Finding> findings = Judge(facts);
  EXPECT_EQ(findings.front().check, "helpers");
  EXPECT_EQ(findings[1].check, "versions");
  const std::string text = FindingsText(findings, /*colours=*/false);
  EXPECT_EQ(text.find("error  helpers: node-3: no heartbeat"), 0u) << text;
  EXPECT_THAT(text, HasSubstr("\nok  ports: all 21 ways between nodes are open\n"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(FindingsText(findings, /*colours=*/true).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ecpipe::findings_test
