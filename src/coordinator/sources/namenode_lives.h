// SPDX-License-Identifier: Apache-2.0
// Which DataNodes live, as the NameNode sees it, by its /jmx.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "coordinator/sources/namenode_answers.h"
#include "coordinator/sources/namenode_groups.h"

namespace ecpipe {

struct DataNodeLife {
  bool dead = false;
  double silent_seconds = 0;  // since the NameNode heard of it last, when the NameNode was asked

  friend bool operator==(const DataNodeLife&, const DataNodeLife&) = default;
};

// An answer of the NameNode. Immutable.
class DataNodeLives {
 public:
  // The text of /jmx?qry=Hadoop:service=NameNode,name=NameNode*. UNAVAILABLE: the NameNode is not
  // the active one, or says nothing of DataNodes.
  static absl::StatusOr<DataNodeLives> Parse(std::string_view text);

  // The DataNode of this UUID. NameNodes before Hadoop 3.4 do not tell UUIDs; then it is the one on
  // this host (a name or an address), if there is only one. Nullopt: there is no such DataNode.
  std::optional<DataNodeLife> Of(const std::string& uuid, const std::string& host) const;
  // Why the NameNode orders no repairs; empty: it is not in safe mode.
  const std::string& safe_mode() const { return safe_mode_; }
  size_t size() const { return size_; }  // DataNodes

 private:
  absl::Status Add(std::string_view text, bool dead);

  std::map<std::string, DataNodeLife> by_uuid_;
  std::map<std::string, std::vector<DataNodeLife>> by_host_;  // without those with a UUID
  std::string safe_mode_;
  size_t size_ = 0;
};

using NameNodeLives = NameNodeAnswers<DataNodeLives>;
using KnownLives = KnownAnswer<DataNodeLives>;

// If the NameNode's word on DataNodes is older than this, it does not count.
inline constexpr Duration kLivesAge = std::chrono::seconds(60);
// The latest answer; null: there is none that counts.
const DataNodeLives* CountingLives(const KnownLives& lives);
// As in DataNodeLives, by an answer that counts.
std::string SafeModeIn(const KnownLives& lives);

// Asks the NameNodes in turn; the active one counts. `stop`: as in HttpGetOptions.
absl::StatusOr<DataNodeLives> FetchLives(const NameNodeOptions& options,
                                         const std::function<bool()>& stop);

}  // namespace ecpipe
