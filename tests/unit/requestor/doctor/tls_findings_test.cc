// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/tls_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/net/test_certificates.h"

namespace ecpipe::tls_findings_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kDay = 86400;

const TestCertificates& Ours() {
  static const TestCertificates certificates(
      "coordinator=coordinator node-1=helper node-2=helper node-3=helper ann=operator");
  return certificates;
}
const TestCertificates& Others() {
  static const TestCertificates certificates(
      "coordinator=coordinator node-1=helper node-2=helper node-3=helper");
  return certificates;
}

TlsFacts FactsOf(const TestCertificates& certificates, const std::string& name) {
  return certificates.Context(name)->Facts();
}

class TlsFindings : public ::testing::Test {
 protected:
  TlsFindings() : facts_{.examination = Examination(), .own_tls = FactsOf(Ours(), "ann")} {
    facts_.now_unix_seconds = Clock::System().UnixMillis() / 1000 + 60;
    Coordinator() = Of("coordinator");
    for (const char* name : {"node-1", "node-2", "node-3"}) {
      NodeFacts& node = facts_.examination->nodes.emplace_back();
      node.node = name;
      node.daemon = Of(name);
    }
  }

  DaemonFacts Of(const std::string& name) const {
    DaemonFacts daemon;
    daemon.certificate_end = facts_.now_unix_seconds + 90 * kDay;
    daemon.tls = FactsOf(Ours(), name);
    return daemon;
  }
  DaemonFacts& Coordinator() { return facts_.examination->coordinator; }
  TlsFacts& Tls(size_t node) { return *facts_.examination->nodes[node].daemon.tls; }

  // A line each: "severity where: what".
  std::vector<std::string> Said() const {
    std::vector<Finding> findings;
    CheckReport report("tls chain", &findings);
    JudgeTlsChain(facts_, &report);
    std::vector<std::string> lines;
    for (const Finding& finding : findings) {
      EXPECT_TRUE(finding.severity == Severity::kOk || !finding.advice.empty() ||
                  finding.where.empty())
          << finding.what;
      lines.push_back(std::string(SeverityName(finding.severity)) + " " + finding.where + ": " +
                      finding.what);
    }
    return lines;
  }

  DoctorFacts facts_;
};

TEST_F(TlsFindings, OneCa) {
  EXPECT_THAT(Said(), ElementsAre("ok : each of 5 accepts the certificates of all"));
}

TEST_F(TlsFindings, NoTls) {
  facts_ = {.examination = Examination()};
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("not checked : there are no certificates")));
}

TEST_F(TlsFindings, AnOlderVersionIsUnknown) {
  facts_.examination->nodes[1].daemon.tls.reset();
  EXPECT_THAT(Said(), ElementsAre("not checked node-2: unknown: an older version, which does not "
                                  "tell its certificates"));
}

TEST_F(TlsFindings, OneThatBelievesAnotherCaIsAtFault) {
  Tls(1).trusted = FactsOf(Others(), "node-2").trusted;
  EXPECT_THAT(Said(), ElementsAre(testing::AllOf(HasSubstr(
                          "error node-2: the CAs that it believes do not accept the certificates "
                          "of coordinator, node-1, its own, node-3, this command: "))));
}

TEST_F(TlsFindings, OneWithACertificateOfAnotherCaIsAtFault) {
  Tls(2).chain = FactsOf(Others(), "node-3").chain;
  EXPECT_THAT(
      Said(),
      ElementsAre(HasSubstr("error node-3: its certificate (issued by CN=ECPipe CA, key " +
                            ReadCertificate(Tls(2).chain.front())->issuer_key +
                            ") is not accepted by coordinator, node-1, node-2, itself, this "
                            "command: ")));
  EXPECT_NE(ReadCertificate(Tls(2).chain.front())->issuer_key,
            ReadCertificate(Tls(1).chain.front())->issuer_key);
}

TEST_F(TlsFindings, BothCasInAllFilesAreWell) {
  const std::string other = FactsOf(Others(), "node-3").trusted.front();
  Tls(2).chain = FactsOf(Others(), "node-3").chain;
  for (TlsFacts* tls : {&*Coordinator().tls, &Tls(0), &Tls(1), &Tls(2), &*facts_.own_tls}) {
    tls->trusted.push_back(other);
    tls->trusted_count = 2;
  }
  EXPECT_THAT(Said(), ElementsAre("ok : each of 5 accepts the certificates of all"));
}

TEST_F(TlsFindings, NamesAndRoles) {
  Tls(0).chain = FactsOf(Ours(), "node-2").chain;
  Tls(1).chain = FactsOf(Ours(), "ann").chain;
  EXPECT_THAT(Said(), ElementsAre("error node-1: its certificate names node 'node-2'",
                                  "error node-2: its certificate lacks the role helper; it has "
                                  "operator",
                                  "error node-2: its certificate names node 'ann'"));
}

TEST_F(TlsFindings, ACertificateThatIsNotValidYet) {
  facts_.now_unix_seconds -= kDay;
  const std::vector<std::string> said = Said();
  ASSERT_EQ(said.size(), 4u);
  EXPECT_THAT(said[1], HasSubstr("error node-1: its certificate is valid only from 2"));
}

TEST_F(TlsFindings, FilesThatAreNotUsed) {
  Tls(0).refused_files = "TLS: cannot use the CA file ca.pem: no start line";
  EXPECT_THAT(Said(), ElementsAre("error node-1: its files of [tls] have changed and cannot be "
                                  "used: TLS: cannot use the CA file ca.pem: no start line"));
}

TEST_F(TlsFindings, MoreCasThanAreToldAreNotChecked) {
  Tls(0).trusted_count = 140;
  EXPECT_THAT(Said(), ElementsAre("not checked node-1: it believes 140 CAs, too many to be looked "
                                  "at"));
}

TEST_F(TlsFindings, ManySetsOfCasAreNotAllCompared) {
  for (int i = 0; i < 20; ++i) {
    NodeFacts& node = facts_.examination->nodes.emplace_back(facts_.examination->nodes[0]);
    node.daemon.tls->trusted.push_back("another " + std::to_string(i));
    node.daemon.tls->trusted_count = 2;
  }
  const std::vector<std::string> said = Said();
  ASSERT_EQ(said.size(), 5u);  // 15 sets beside that of the first
  for (const std::string& each : said) {
    EXPECT_EQ(each, "not checked node-1: 16 sets of CAs were compared already, and its is another");
  }
}

TEST_F(TlsFindings, ListsOfRevokedCertificates) {
  const TlsFacts::RevocationList list{
      .issuer = "CN=ECPipe CA", .issued = 1'800'000'000, .due = 1'900'000'000, .revoked = 1};
  facts_.now_unix_seconds = 1'850'000'000;
  for (TlsFacts* tls : {&*Coordinator().tls, &Tls(0), &Tls(1)}) tls->lists = {list};
  Tls(2).lists = {list};
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("ok ")));  // the command needs none
  Tls(1).lists[0].issued -= 40 * kDay;
  Tls(2).lists.clear();
  EXPECT_THAT(Said(),
              ElementsAre("warning node-2: its list of revoked certificates of CN=ECPipe CA is of "
                          "2026-12-06 08:00 UTC, and others have one of 2027-01-15 08:00 UTC",
                          "warning node-3: it has no list of revoked certificates of CN=ECPipe CA, "
                          "and others have one of 2027-01-15 08:00 UTC"));
  Tls(1) = Tls(0);
  Tls(2) = Tls(0);
  Tls(1).chain = FactsOf(Ours(), "node-2").chain;
  Tls(2).chain = FactsOf(Ours(), "node-3").chain;
  Tls(2).lists[0].due = 1'840'000'000;
  EXPECT_THAT(Said(),
              ElementsAre(HasSubstr("warning node-3: its list of revoked certificates of "
                                    "CN=ECPipe CA is of 2027-01-15 08:00 UTC, and a newer one was "
                                    "due on 2028-04-22")));
}

// Both CAs have the same name. Who has the old one first in its file can use its list alone.
TEST_F(TlsFindings, ListsOfTwoCasAreNotCompared) {
  facts_.now_unix_seconds = 1'850'000'000;
  const TlsFacts::RevocationList old_list{
      .issuer = "CN=ECPipe CA", .issued = 1'800'000'000, .due = 1'900'000'000, .revoked = 1};
  TlsFacts::RevocationList new_list = old_list;
  new_list.issued += 30 * kDay;
  const std::string other = FactsOf(Others(), "node-3").trusted.front();
  for (TlsFacts* tls : {&*Coordinator().tls, &Tls(0), &Tls(1), &Tls(2)}) {
    tls->trusted.push_back(other);
    tls->trusted_count = 2;
    tls->lists = {old_list};
  }
  std::swap(Tls(2).trusted[0], Tls(2).trusted[1]);
  Tls(2).lists = {new_list};
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("ok ")));
  Tls(1).lists.clear();
  EXPECT_THAT(Said(), ElementsAre("warning node-2: it has no list of revoked certificates of "
                                  "CN=ECPipe CA, and others have one of 2027-01-15 08:00 UTC"));
  Tls(2).lists.clear();
  Tls(1).lists = {old_list};
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("ok "))) << "nobody has a list that it could use";
}

TEST_F(TlsFindings, HandshakesOfWhichNothingIsKnownAreSaid) {
  facts_.examination->handshakes_unknown = 3;
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("not checked : TLS with 3 helpers")));
}

TEST_F(TlsFindings, HandshakesThatFail) {
  facts_.examination->handshakes = {{"node-4", "TLS: it is of node 'x'", "", ""},
                                    {"node-5", "", "TLS: alert unknown ca", ""},
                                    {"node-6", "", "", "TLS: wrong version number"}};
  EXPECT_THAT(Said(), ElementsAre("error node-4: the coordinator refuses its certificate: TLS: it "
                                  "is of node 'x'",
                                  "error node-5: it refuses the coordinator's TLS connections: "
                                  "TLS: alert unknown ca",
                                  "error node-6: there is no TLS handshake with it: TLS: wrong "
                                  "version number"));
  DoctorFacts whole = facts_;
  whole.status.nodes.resize(1);
  whole.status.nodes[0].node = "node-5";
  whole.status.nodes[0].state = "dead";
  std::string advice;
  for (const Finding& finding : Judge(whole)) {
    if (finding.check == "helpers") advice += finding.advice;
  }
  EXPECT_THAT(advice, HasSubstr("`ecpipe recover-node node-5`; but something answers"));
  EXPECT_THAT(advice, HasSubstr("see `tls chain`"));
}

}  // namespace
}  // namespace ecpipe::tls_findings_test
