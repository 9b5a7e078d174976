// SPDX-License-Identifier: Apache-2.0
#include "rpc/examine/self_facts.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/bytes/utf8_text.h"
#include "base/process/process_stats.h"
#include "base/process/version.h"
#include "base/status.h"
#include "rpc/examine/port_check.h"

namespace ecpipe {
namespace {

constexpr size_t kMostAtOnce = 64;
constexpr size_t kLeastAtOnce = 4;
constexpr uint64_t kDescriptorsOfADial = 10;         // of a host with many addresses, for a moment
constexpr auto kPatience = std::chrono::seconds(2);  // as of `ecpipe status`
constexpr auto kMostPatience = std::chrono::seconds(20);
constexpr size_t kRoundsThatHang = 8;
// Of one node: they are for people, and 500 nodes answer.
constexpr int kMostNamed = 50;

// Half of what is left of the descriptors may be used.
size_t DialsAtOnce() {
  const uint64_t open = OpenDescriptors();
  const uint64_t most = DescriptorLimit();
  const uint64_t left = most > open ? most - open : 0;
  return std::clamp<size_t>(left / 2 / kDescriptorsOfADial, kLeastAtOnce, kMostAtOnce);
}

void Note(const DialTarget& target, const absl::Status& answer, v1::DialFacts* facts) {
  facts->set_dialled(facts->dialled() + 1);
  if (answer.ok()) return;
  facts->set_failed(facts->failed() + 1);
  if (facts->failures_size() >= kMostNamed) return;
  v1::DialFacts::Failure* const failure = facts->add_failures();
  failure->set_node_id(target.node);
  failure->set_port(target.port);
  failure->set_address(target.address);
  failure->set_error(CleanText(std::string(answer.message())));
}

void FillTlsFacts(const TlsFacts& from, v1::TlsFacts* facts) {
  for (const std::string& der : from.chain) facts->add_chain(der);
  for (const std::string& der : from.trusted) facts->add_trusted(der);
  facts->set_trusted_count(from.trusted_count);
  facts->set_refused_files(CleanText(from.refused_files));
  for (const TlsFacts::RevocationList& each : from.lists) {
    v1::TlsFacts::RevocationList* const list = facts->add_lists();
    list->set_issuer(CleanText(each.issuer));
    list->set_issued(each.issued);
    if (each.due) list->set_due(*each.due);
    list->set_revoked(each.revoked);
  }
}

}  // namespace

void FillDaemonFacts(TlsContext* tls, v1::DaemonFacts* facts) {
  facts->set_version(Version());
  facts->set_open_descriptors(OpenDescriptors());
  facts->set_max_descriptors(DescriptorLimit());
  if (tls != nullptr) {
    tls->LookAtFiles();
    facts->set_certificate_end(tls->ExpiryUnixSeconds());
    FillTlsFacts(tls->Facts(), facts->mutable_tls());
  }
  facts->set_unix_micros(std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count());
}

v1::DirectoryFacts RoomOf(const std::string& path) {
  v1::DirectoryFacts facts;
  facts.set_path(CleanText(path));
  struct statvfs room{};
  if (::statvfs(path.c_str(), &room) != 0) {
    facts.set_error(CleanText(std::string(ErrnoStatus(errno, "look at its disk").message())));
    return facts;
  }
  facts.set_free_bytes(uint64_t{room.f_bavail} * room.f_frsize);
  facts.set_total_bytes(uint64_t{room.f_blocks} * room.f_frsize);
  return facts;
}

void DialAll(const std::vector<DialTarget>& targets, TimePoint end, v1::DialFacts* facts) {
  size_t next = 0;
  while (next < targets.size()) {
    const Duration left = end - Clock::System().Now();
    if (left <= Duration(0)) break;
    const size_t count = std::min(DialsAtOnce(), targets.size() - next);
    std::vector<std::string> addresses;
    for (size_t i = 0; i < count; ++i) addresses.push_back(targets[next + i].address);
    const std::vector<absl::Status> answers =
        CheckPorts(addresses, std::min<Duration>(left, kPatience));
    for (size_t i = 0; i < count; ++i) Note(targets[next + i], answers[i], facts);
    next += count;
  }
  facts->set_not_dialled(facts->not_dialled() + static_cast<uint32_t>(targets.size() - next));
}

Duration DialPatience(size_t targets) {
  const size_t rounds = std::min(targets / kMostAtOnce + 1, kRoundsThatHang);
  return std::min<Duration>(rounds * kPatience, kMostPatience);
}

}  // namespace ecpipe
