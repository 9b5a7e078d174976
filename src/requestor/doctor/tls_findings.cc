// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/tls_findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "requestor/doctor/port_findings.h"

namespace ecpipe {
namespace {

// A cluster has one bundle of CAs, and a few more while it goes over to another CA.
constexpr size_t kMostBundles = 16;
constexpr const char* kMakeOne =
    "make one with ecpipe-make-certs, of this name and role, and put it there "
    "(docs/operations.md, Security)";

struct Party {
  std::string name;
  const TlsFacts* tls = nullptr;
  Role role = Role::kHelper;
  TlsEnds ends = TlsEnds::kBoth;
};

// Of one who believes: whose certificates it does not accept, and why.
using Refusals = std::vector<std::pair<const Party*, std::string>>;

std::string DateText(int64_t unix_seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M", absl::FromUnixSeconds(unix_seconds),
                          absl::UTCTimeZone()) +
         " UTC";
}

// Adds what is not known as well.
std::vector<Party> PartiesOf(const DoctorFacts& facts, CheckReport* report) {
  std::vector<Party> parties;
  const auto add = [&](const std::string& name, const DaemonFacts& daemon, Role role) {
    if (daemon.tls) {
      parties.push_back({name, &*daemon.tls, role, TlsEnds::kBoth});
    } else if (daemon.certificate_end) {
      report->Add(Severity::kNotChecked, name,
                  "unknown: an older version, which does not tell its certificates", "upgrade it");
    }
  };
  if (facts.examination.ok()) {
    add(kCoordinator, facts.examination->coordinator, Role::kCoordinator);
    for (const NodeFacts& node : facts.examination->nodes) {
      if (node.status.ok()) add(node.node, node.daemon, Role::kHelper);
    }
  }
  if (facts.own_tls) {
    parties.push_back({kThisCommand, &*facts.own_tls, Role::kOperator, TlsEnds::kDialling});
  }
  return parties;
}

void JudgeNames(const Party& party, int64_t now, CheckReport* report) {
  const auto words = ReadCertificate(party.tls->chain.empty() ? "" : party.tls->chain.front());
  if (!words.ok()) return;  // nobody accepts it
  const PeerIdentity& identity = words->identity;
  if (!identity.roles.contains(party.role)) {
    const std::string has = identity.roles.empty() ? "none" : RoleNames(identity.roles);
    report->Add(Severity::kError, party.name,
                "its certificate lacks the role " + RoleName(party.role) + "; it has " + has,
                kMakeOne);
  }
  if (party.role == Role::kHelper && identity.node != party.name) {
    report->Add(Severity::kError, party.name, "its certificate names node '" + identity.node + "'",
                kMakeOne);
  }
  if (words->begin > now) {
    report->Add(Severity::kError, party.name,
                "its certificate is valid only from " + DateText(words->begin) + " on",
                "see whether the clock of the host that made it, or of this one, is right");
  }
}

void JudgeFiles(const Party& party, CheckReport* report) {
  if (party.tls->refused_files.empty()) return;
  report->Add(Severity::kError, party.name,
              "its files of [tls] have changed and cannot be used: " + party.tls->refused_files,
              "mend them: it goes on with what they were before, and would not start again");
}

// Whose certificates those who believe this bundle do not accept.
Refusals RefusalsOf(const std::vector<std::string>& trusted, const std::vector<Party>& parties) {
  Refusals refusals;
  for (const Party& party : parties) {
    const absl::Status accepted = CheckChain(party.tls->chain, trusted, party.ends);
    if (!accepted.ok()) refusals.emplace_back(&party, std::string(accepted.message()));
  }
  return refusals;
}

std::string IssuerOf(const Party& party) {
  const auto words = ReadCertificate(party.tls->chain.empty() ? "" : party.tls->chain.front());
  if (!words.ok()) return "";
  return " (issued by " + words->issuer +
         (words->issuer_key.empty() ? "" : ", key " + words->issuer_key) + ")";
}

// The CA file of one that refuses most others is at fault.
void ReportRefuser(const Party& refuser, const Refusals& refused, CheckReport* report) {
  std::vector<std::string> names;
  for (const auto& [party, why] : refused) {
    names.push_back(party == &refuser ? "its own" : party->name);
  }
  report->Add(Severity::kError, refuser.name,
              "the CAs that it believes do not accept the certificates of " + NamesText(names) +
                  ": " + refused.front().second,
              "put the CA that issued these" + IssuerOf(*refused.front().first) +
                  " into the file that its [tls] ca names");
}

void JudgePairs(const std::vector<Party>& parties, CheckReport* report) {
  std::map<std::vector<std::string>, Refusals> by_bundle;
  // By whom a certificate is not accepted, and the first reason.
  std::map<const Party*, std::pair<std::vector<std::string>, std::string>> refusers_of;
  for (const Party& party : parties) {
    if (party.tls->trusted_count > party.tls->trusted.size()) {
      report->Add(
          Severity::kNotChecked, party.name,
          absl::StrFormat("it believes %d CAs, too many to be looked at", party.tls->trusted_count),
          "let its [tls] ca name a file with the CA of this cluster alone: whoever has a "
          "certificate of any of these can be any node");
      continue;
    }
    std::vector<std::string> bundle = party.tls->trusted;
    std::sort(bundle.begin(), bundle.end());
    if (!by_bundle.contains(bundle) && by_bundle.size() >= kMostBundles) {
      report->Add(
          Severity::kNotChecked, party.name,
          absl::StrFormat("%d sets of CAs were compared already, and its is another", kMostBundles),
          "give all the same file of CAs, then ask again");
      continue;
    }
    const auto [known, is_new] = by_bundle.try_emplace(bundle);
    if (is_new) known->second = RefusalsOf(bundle, parties);
    const Refusals& refused = known->second;
    if (2 * refused.size() > parties.size()) {
      ReportRefuser(party, refused, report);
      continue;
    }
    for (const auto& [other, why] : refused) {
      auto& [refusers, reason] = refusers_of[other];
      refusers.push_back(other == &party ? "itself" : party.name);
      reason = why;
    }
  }
  for (const Party& party : parties) {
    const auto found = refusers_of.find(&party);
    if (found == refusers_of.end()) continue;
    report->Add(Severity::kError, party.name,
                "its certificate" + IssuerOf(party) + " is not accepted by " +
                    NamesText(found->second.first) + ": " + found->second.second,
                "give it a certificate of the CA that these believe, or put its CA into the files "
                "that their [tls] ca name");
  }
}

// The key of a party's first CA: lists are compared of parties with the same one. Names do not
// tell CAs apart: before and after a change they have the same one.
std::string ListKeyOf(const Party& party) {
  const std::vector<std::string>& trusted = party.tls->trusted;
  const auto words = ReadCertificate(trusted.empty() ? "" : trusted.front());
  return words.ok() ? words->public_key : "";
}

const TlsFacts::RevocationList* NewestOf(const Party& party) {
  const auto& lists = party.tls->lists;
  const auto newest = std::max_element(
      lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.issued < b.issued; });
  return newest == lists.end() ? nullptr : &*newest;
}

// The newest of each CA counts; the command dials, and may go without. Who has another CA first may
// not believe the one that has signed that list, and would refuse its whole [tls] with it.
void JudgeLists(const std::vector<Party>& parties, int64_t now, CheckReport* report) {
  std::map<std::string, const TlsFacts::RevocationList*> newest_of;
  for (const Party& party : parties) {
    const TlsFacts::RevocationList* const list = NewestOf(party);
    if (list == nullptr) continue;
    const TlsFacts::RevocationList*& newest = newest_of[ListKeyOf(party)];
    if (newest == nullptr || newest->issued < list->issued) newest = list;
  }
  for (const Party& party : parties) {
    if (party.role == Role::kOperator) continue;
    for (const TlsFacts::RevocationList& list : party.tls->lists) {
      if (!list.due || *list.due >= now) continue;
      report->Add(Severity::kWarning, party.name,
                  "its list of revoked certificates of " + list.issuer + " is of " +
                      DateText(list.issued) + ", and a newer one was due on " + DateText(*list.due),
                  "copy the newest list to it, into the file that its [tls] crl names; until then "
                  "it goes by the old one");
    }
    const auto found = newest_of.find(ListKeyOf(party));
    if (found == newest_of.end()) continue;
    const TlsFacts::RevocationList& newest = *found->second;
    const TlsFacts::RevocationList* const own = NewestOf(party);
    if (own != nullptr && own->issued == newest.issued) continue;
    report->Add(Severity::kWarning, party.name,
                (own == nullptr ? "it has no list of revoked certificates of " + newest.issuer
                                : "its list of revoked certificates of " + newest.issuer +
                                      " is of " + DateText(own->issued)) +
                    ", and others have one of " + DateText(newest.issued),
                "copy that list to it, into the file that its [tls] crl names: whom it revokes "
                "this one still lets in");
  }
}

size_t JudgeHandshakes(const DoctorFacts& facts, CheckReport* report) {
  if (!facts.examination.ok()) return 0;
  for (const HandshakeFacts& handshake : facts.examination->handshakes) {
    if (!handshake.coordinator_refuses.empty()) {
      report->Add(Severity::kError, handshake.node,
                  "the coordinator refuses its certificate: " + handshake.coordinator_refuses,
                  "give it a certificate of this name with the role helper, of a CA that is in the "
                  "file that [tls] ca of coordinator.toml names");
    } else if (!handshake.no_handshake.empty()) {
      report->Add(Severity::kError, handshake.node,
                  "there is no TLS handshake with it: " + handshake.no_handshake,
                  "see whether its helper.toml has a [tls] whose files can be used, and whether "
                  "its control address leads to this helper");
    } else {
      report->Add(Severity::kError, handshake.node,
                  "it refuses the coordinator's TLS connections: " + handshake.helper_refuses,
                  "see whether the files that its [tls] names can be used, and whether that of ca "
                  "has the CA of the coordinator's certificate; its log says more (tls.)");
    }
  }
  if (facts.examination->handshakes_unknown > 0) {
    report->Add(Severity::kNotChecked, "",
                absl::StrFormat("TLS with %d helpers that tell nothing is unknown: they did not "
                                "answer in time, or there was none left",
                                facts.examination->handshakes_unknown),
                "mend what is above, then ask again");
  }
  return facts.examination->handshakes.size();
}

}  // namespace

void JudgeTlsChain(const DoctorFacts& facts, CheckReport* report) {
  const std::vector<Party> parties = PartiesOf(facts, report);
  const size_t handshakes = JudgeHandshakes(facts, report);
  for (const Party& party : parties) {
    JudgeFiles(party, report);
    if (party.role != Role::kOperator) JudgeNames(party, facts.now_unix_seconds, report);
  }
  JudgePairs(parties, report);
  JudgeLists(parties, facts.now_unix_seconds, report);
  if (parties.empty() && handshakes == 0) {
    return report->EndUnchecked("there are no certificates: nothing is protected by TLS here");
  }
  report->End(absl::StrFormat("each of %d accepts the certificates of all", parties.size()));
}

}  // namespace ecpipe
