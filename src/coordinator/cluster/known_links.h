// SPDX-License-Identifier: Apache-2.0
// The known speeds between nodes: those in the operator's file, and measured ones.
// docs/design/005-link-speeds.md has the reasons.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/cluster/cluster_view.h"
#include "coordinator/cluster/link_history.h"
#include "model/link_timing.h"

namespace ecpipe {

// Thread-safe.
class KnownLinks {
 public:
  // `configured` may be null. `clock` outlives the object.
  KnownLinks(const Clock* clock, std::shared_ptr<const LinkTable> configured) : clock_(clock) {
    SetConfigured(std::move(configured));
  }

  // Takes the timing of a stream of a repair. `alone`: the stream had the links of both nodes to
  // itself. Impossible values are ignored.
  void Record(const std::string& from, const LinkTiming& timing, bool alone);
  // Takes the timing of a stream whose sender always had bytes to send.
  void RecordProbe(const std::string& from, const LinkTiming& timing, bool alone);
  // Takes the speeds of streams that ran at the same time, two and more of which may share a node's
  // link, or what there is from rack to rack. `racks` is by node.
  struct Stream {
    std::string from;
    std::string to;
    double bytes_per_second = 0;
  };
  void RecordTogether(const std::vector<Stream>& streams,
                      const std::map<std::string, std::string>& racks);

  // Adds the known speeds to a view that already has its nodes.
  void FillIn(ClusterView* cluster);
  // How fast the own links of these nodes are, relative to the median of those that are known. A
  // node's is as fast as the fastest of its links in the operator's file, if it has three there, or
  // else as it was when FillIn() last took over what is measured. Other nodes are left out.
  NodeSpeeds SpeedsOf(const std::vector<std::string>& nodes);
  // In the order of their nodes; then what streams share.
  std::vector<LinkEstimate> Measured();
  std::shared_ptr<const LinkTable> configured();
  // For plans from now on. May be null.
  void SetConfigured(std::shared_ptr<const LinkTable> configured);

 private:
  // Makes the table that planners see anew, if that is due and it had so many pairs. They go on
  // with the one before meanwhile.
  void Renew(size_t least_pairs);
  void Changed();

  const Clock* const clock_;
  // Held while a table is made, by those who have something to record.
  Mutex history_mutex_;
  LinkHistory history_ ABSL_GUARDED_BY(history_mutex_);
  Mutex mutex_;  // what planners wait for: held for moments
  std::shared_ptr<const LinkTable> configured_ ABSL_GUARDED_BY(mutex_);
  // In bytes a second, by names in that table; 0: too few of its links show what a node has.
  NodeSpeeds configured_nodes_ ABSL_GUARDED_BY(mutex_);
  // What planners see of the history. It is renewed when the history has changed; that of a large
  // history at most once a second.
  std::shared_ptr<const SpeedTable> table_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool renewing_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
