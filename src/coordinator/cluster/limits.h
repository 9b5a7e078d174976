// SPDX-License-Identifier: Apache-2.0
// The limits on repairs that operators set at run time, and how the limit of the cluster is divided
// among nodes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace ecpipe {

// A limit that is not set is as in the configuration. Rates are in bytes per second; 0 is no limit.
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
  std::map<std::string, LimitsOfNode> nodes;  // by node id; only nodes with a limit that is set

  friend bool operator==(const Limits&, const Limits&) = default;
};

// INVALID_ARGUMENT for a limit that cannot be meant: a rate under 1 Mb/s that is not 0, or 0
// sessions.
absl::Status CheckLimits(const LimitsOfCluster& limits);
absl::Status CheckLimits(const LimitsOfNode& limits);

// One line for each limit, "cluster NAME VALUE" or "node ID NAME VALUE"; '#' begins a comment.
std::string FormatLimits(const Limits& limits);
// INVALID_ARGUMENT with the line for anything else.
absl::StatusOr<Limits> ParseLimits(const std::string& text);

// The share of the cluster's rate that a node may send, in proportion to the streams that running
// repairs send from it. A node that sends nothing yet gets the share that it would have if all
// nodes sent; it asks again when its first session begins. 0 only if `rate` is 0.
double ShareOfRate(double rate, uint64_t streams_of_node, uint64_t streams_of_all,
                   uint64_t live_nodes);

// Keeps the limits in a file, so that they outlive the coordinator. Thread-safe.
class LimitBook {
 public:
  // Reads the file, which need not exist. Errors name it: the coordinator must not start rather
  // than forget a limit.
  static absl::StatusOr<std::unique_ptr<LimitBook>> Open(const std::string& path);

  Limits limits();
  // Replaces the limits of the cluster, or of a node. After an error nothing has changed, with one
  // exception: UNKNOWN says that the limits have changed, but a crash of the machine may undo that.
  // INVALID_ARGUMENT as in CheckLimits, or for a bad node id.
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
