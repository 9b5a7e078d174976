// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/limits.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/file_io.h"
#include "base/status.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

constexpr char kRate[] = "repair_bytes_per_second";
constexpr char kMaxRunning[] = "max_running";
constexpr char kMaxSessions[] = "max_sessions";

// Below 1 Mb/s a slice takes so long that the next node takes it for a stall.
constexpr double kLeastRate = 1e6 / 8;
constexpr double kMostRate = 1e13 / 8;
// As in the configurations.
constexpr uint32_t kMostRunning = 1'000'000;
constexpr uint32_t kMostSessions = 4096;

absl::Status CheckRate(const std::optional<double>& rate) {
  if (!rate || *rate == 0 || (*rate >= kLeastRate && *rate <= kMostRate)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a rate limit must be 0 for no limit, or from 1 to 10000000 Mb/s");
}

absl::Status CheckCount(const char* name, const std::optional<uint32_t>& count, uint32_t most) {
  if (!count || (*count >= 1 && *count <= most)) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(name) + " must be from 1 to " +
                                    std::to_string(most));
}

absl::Status CheckNode(const std::string& node) {
  // Node ids are made of the same characters as block ids.
  return Annotate(ValidateBlockId(node), "node id");
}

template <typename Number>
std::optional<Number> NumberOf(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// False when the name or the value is not one.
bool TakeLimit(const std::string& name, const std::string& value, LimitsOfCluster* limits) {
  if (name == kRate) return (limits->repair_bytes_per_second = NumberOf<double>(value)).has_value();
  if (name == kMaxRunning) return (limits->max_running = NumberOf<uint32_t>(value)).has_value();
  return false;
}
bool TakeLimit(const std::string& name, const std::string& value, LimitsOfNode* limits) {
  if (name == kRate) return (limits->repair_bytes_per_second = NumberOf<double>(value)).has_value();
  if (name == kMaxSessions) return (limits->max_sessions = NumberOf<uint32_t>(value)).has_value();
  return false;
}

bool TakeLine(const std::vector<std::string>& words, Limits* limits) {
  if (words.size() == 3 && words[0] == "cluster") {
    return TakeLimit(words[1], words[2], &limits->cluster) && CheckLimits(limits->cluster).ok();
  }
  if (words.size() != 4 || words[0] != "node" || !CheckNode(words[1]).ok()) return false;
  LimitsOfNode& node = limits->nodes[words[1]];
  return TakeLimit(words[2], words[3], &node) && CheckLimits(node).ok();
}

}  // namespace

absl::Status CheckLimits(const LimitsOfCluster& limits) {
  ECPIPE_RETURN_IF_ERROR(CheckRate(limits.repair_bytes_per_second));
  return CheckCount(kMaxRunning, limits.max_running, kMostRunning);
}

absl::Status CheckLimits(const LimitsOfNode& limits) {
  ECPIPE_RETURN_IF_ERROR(CheckRate(limits.repair_bytes_per_second));
  return CheckCount(kMaxSessions, limits.max_sessions, kMostSessions);
}

std::string FormatLimits(const Limits& limits) {
  std::ostringstream text;
  text.precision(17);  // enough for every double to come back as it was
  text << "# Written by ecpipe-coordinator; `ecpipe limits` shows and changes it.\n";
  const auto add = [&](const std::string& of, const char* name, const auto& value) {
    if (value) text << of << ' ' << name << ' ' << *value << '\n';
  };
  add("cluster", kRate, limits.cluster.repair_bytes_per_second);
  add("cluster", kMaxRunning, limits.cluster.max_running);
  for (const auto& [id, node] : limits.nodes) {
    add("node " + id, kRate, node.repair_bytes_per_second);
    add("node " + id, kMaxSessions, node.max_sessions);
  }
  return text.str();
}

absl::StatusOr<Limits> ParseLimits(const std::string& text) {
  Limits limits;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream stream(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty() || TakeLine(words, &limits)) continue;
    return absl::InvalidArgumentError("line " + std::to_string(number) + ": '" + line +
                                      "' is not a limit");
  }
  return limits;
}

double ShareOfRate(double rate, uint64_t streams_of_node, uint64_t streams_of_all,
                   uint64_t live_nodes) {
  if (streams_of_node == 0) {
    return rate / static_cast<double>(std::max({streams_of_all, live_nodes, uint64_t{1}}));
  }
  return rate * static_cast<double>(streams_of_node) / static_cast<double>(streams_of_all);
}

absl::StatusOr<std::unique_ptr<LimitBook>> LimitBook::Open(const std::string& path) {
  std::unique_ptr<LimitBook> book(new LimitBook(path));
  std::ifstream file(path);
  if (!file.is_open()) {
    if (errno == ENOENT) return book;
    return ErrnoStatus(errno, "open " + path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return absl::DataLossError("read " + path);
  absl::StatusOr<Limits> limits = ParseLimits(text.str());
  if (!limits.ok()) return Annotate(limits.status(), path);
  MutexLock lock(&book->mutex_);
  book->limits_ = *std::move(limits);
  return book;
}

Limits LimitBook::limits() {
  MutexLock lock(&mutex_);
  return limits_;
}

absl::Status LimitBook::Store(Limits limits) {
  const std::string text = FormatLimits(limits);
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile file,
                          AtomicFile::Create(path_, {.access = AtomicFile::Access::kService}));
  ECPIPE_RETURN_IF_ERROR(
      file.WriteAt(0, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  const absl::Status committed = file.Commit();
  if (!committed.ok() && !absl::IsUnknown(committed)) return committed;
  MutexLock lock(&mutex_);
  limits_ = std::move(limits);
  return committed;
}

absl::Status LimitBook::Set(const LimitsOfCluster& cluster) {
  ECPIPE_RETURN_IF_ERROR(CheckLimits(cluster));
  MutexLock write_lock(&write_mutex_);
  Limits changed = limits();
  changed.cluster = cluster;
  return Store(std::move(changed));
}

absl::Status LimitBook::Set(const std::string& node, const LimitsOfNode& limits_of_node) {
  ECPIPE_RETURN_IF_ERROR(CheckNode(node));
  ECPIPE_RETURN_IF_ERROR(CheckLimits(limits_of_node));
  MutexLock write_lock(&write_mutex_);
  Limits changed = limits();
  if (limits_of_node == LimitsOfNode{}) {
    changed.nodes.erase(node);
  } else {
    changed.nodes[node] = limits_of_node;
  }
  return Store(std::move(changed));
}

}  // namespace ecpipe
