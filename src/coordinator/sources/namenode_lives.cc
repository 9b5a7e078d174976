// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/namenode_lives.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "coordinator/sources/http_get.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

using Json = nlohmann::json;

// 10,000 DataNodes take some 6 MB.
constexpr size_t kMaxAnswerBytes = 64 << 20;
constexpr size_t kMaxSafeModeBytes = 500;

// The member's text; empty: there is none.
std::string TextOf(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

std::string HostOf(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  return parsed.ok() ? parsed->host : "";
}

absl::StatusOr<DataNodeLives> FetchFrom(const std::string& server,
                                        const std::function<bool()>& stop) {
  HttpGetOptions http;
  http.stop = stop;
  http.timeout = std::chrono::seconds(30);
  std::string text;
  const std::string url =
      server + "/jmx?qry=" + EscapedForUrl("Hadoop:service=NameNode,name=NameNode*");
  ECPIPE_RETURN_IF_ERROR(HttpGet(url, http, [&](std::string_view bytes) {
    if (text.size() + bytes.size() > kMaxAnswerBytes) {
      return absl::ResourceExhaustedError(server + "/jmx answers with more than 64 MiB");
    }
    text += bytes;
    return absl::OkStatus();
  }));
  absl::StatusOr<DataNodeLives> lives = DataNodeLives::Parse(text);
  if (!lives.ok()) return Annotate(lives.status(), server);
  return lives;
}

}  // namespace

absl::StatusOr<DataNodeLives> DataNodeLives::Parse(std::string_view text) {
  const Json answer = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto beans = answer.is_object() ? answer.find("beans") : answer.end();
  if (beans == answer.end() || !beans->is_array()) {
    return absl::UnavailableError("the answer of /jmx is not a list of beans");
  }
  DataNodeLives lives;
  bool told = false;
  for (const Json& bean : *beans) {
    if (!bean.is_object()) continue;
    const std::string name = TextOf(bean, "name");
    const std::string state = TextOf(bean, "State");
    if (name == "Hadoop:service=NameNode,name=NameNodeStatus" && state != "active") {
      return absl::UnavailableError("the NameNode is in state " + CleanText(state));
    }
    if (name != "Hadoop:service=NameNode,name=NameNodeInfo") continue;
    told = true;
    ECPIPE_RETURN_IF_ERROR(lives.Add(TextOf(bean, "LiveNodes"), /*dead=*/false));
    ECPIPE_RETURN_IF_ERROR(lives.Add(TextOf(bean, "DeadNodes"), /*dead=*/true));
    lives.safe_mode_ = CleanText(CutText(TextOf(bean, "Safemode"), kMaxSafeModeBytes));
  }
  if (!told) return absl::UnavailableError("the answer of /jmx tells nothing of DataNodes");
  return lives;
}

// A text within the text: {"host:9866": {"lastContact": 1, "xferaddr": "10.0.0.1:9866", ...}, ...}.
absl::Status DataNodeLives::Add(std::string_view text, bool dead) {
  const Json nodes = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!nodes.is_object()) {
    return absl::UnavailableError("the answer of /jmx has no list of DataNodes");
  }
  for (const auto& [name, facts] : nodes.items()) {
    if (!facts.is_object()) continue;
    DataNodeLife life{dead, 0};
    const auto contact = facts.find("lastContact");
    if (contact != facts.end() && contact->is_number()) {
      life.silent_seconds = contact->get<double>();
    }
    ++size_;
    if (const std::string uuid = TextOf(facts, "uuid"); !uuid.empty()) {
      // One that has come back with another address is listed twice.
      const auto [known, added] = by_uuid_.try_emplace(uuid, life);
      if (!added && known->second.dead) known->second = life;
      continue;
    }
    const std::set<std::string> hosts = {HostOf(name), HostOf(TextOf(facts, "xferaddr"))};
    for (const std::string& host : hosts) {
      if (!host.empty()) by_host_[host].push_back(life);
    }
  }
  return absl::OkStatus();
}

std::optional<DataNodeLife> DataNodeLives::Of(const std::string& uuid,
                                              const std::string& host) const {
  if (const auto known = by_uuid_.find(uuid); known != by_uuid_.end()) return known->second;
  const auto there = by_host_.find(host);
  if (there == by_host_.end() || there->second.size() != 1) return std::nullopt;
  return there->second.front();
}

const DataNodeLives* CountingLives(const KnownLives& lives) {
  return lives.age_seconds <= Seconds(kLivesAge) ? lives.table.get() : nullptr;
}

std::string SafeModeIn(const KnownLives& lives) {
  const DataNodeLives* const counting = CountingLives(lives);
  return counting == nullptr ? "" : counting->safe_mode();
}

absl::StatusOr<DataNodeLives> FetchLives(const NameNodeOptions& options,
                                         const std::function<bool()>& stop) {
  return AskInTurn<DataNodeLives>(
      options.urls, [&](const std::string& server) { return FetchFrom(server, stop); });
}

}  // namespace ecpipe
