// SPDX-License-Identifier: Apache-2.0
// The limits of repairs that operators set while everything runs, and how the cluster's is divided.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"

namespace ecpipe {

// What is not set is as the configuration says. Rates are bytes per second; 0 is no limit.
struct LimitsOfCluster {
  std::optional<double> repair_bytes_per_second;  // of all helpers together
  std::optional<uint32_t> max_running;            // repairs at once

  friend bool operator==(const LimitsOfCluster&, const LimitsOfCluster&) = default;
};
struct LimitsOfNode {
  std::optional<double> repair_bytes_per_second;
  std::optional<uint32_t> max_sessions;

  friend bool operator==(const LimitsOfNode&, const LimitsOfNode&) = default;
};
struct Limits {
  LimitsOfCluster cluster;
  std::map<std::string, LimitsOfNode> nodes;  // by node id; those with anything set

  friend bool operator==(const Limits&, const Limits&) = default;
};

// INVALID_ARGUMENT for what nobody can mean: a rate under 1 Mb/s that is not 0, or no session.
absl::Status CheckLimits(const LimitsOfCluster& limits);
absl::Status CheckLimits(const LimitsOfNode& limits);

// One line for each limit, "cluster NAME VALUE" or "node ID NAME VALUE"; '#' begins a comment.
std::string FormatLimits(const Limits& limits);
// INVALID_ARGUMENT with the line for anything else.
absl::StatusOr<Limits> ParseLimits(const std::string& text);

// What a node may send of the cluster's rate, in the proportion of the streams that repairs under
// way send from it. A node that sends nothing yet has what it would have if all did: it asks again
// when its first session begins. 0 only when `rate` is.
double ShareOfRate(double rate, uint64_t streams_of_node, uint64_t streams_of_all,
                   uint64_t live_nodes);

// Keeps the limits in a file, so that they outlive the coordinator. Thread-safe.
class LimitBook {
 public:
  // Reads the file; there need not be one. Errors name it: the coordinator had better not start
  // than forget a limit.
  static absl::StatusOr<std::unique_ptr<LimitBook>> Open(const std::string& path);

  Limits limits();
  // Replaces the cluster's, or a node's. After an error nothing has changed, except that UNKNOWN
  // says that a crash of the machine may undo it. INVALID_ARGUMENT as in CheckLimits, or for an id
  // that cannot be a node's.
  absl::Status Set(const LimitsOfCluster& limits);
  absl::Status Set(const std::string& node, const LimitsOfNode& limits);

 private:
  explicit LimitBook(std::string path) : path_(std::move(path)) {}
  absl::Status Store(Limits limits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  const std::string path_;
  // Held while the file is written: two writers must not each leave out what the other has set.
  // Readers do not take it.
  Mutex write_mutex_;
  Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
