// SPDX-License-Identifier: Apache-2.0
// What is known of the speeds between nodes: what the operator has written down, and what was
// measured. docs/design/005-link-speeds.md has the reasons.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/link_timing.h"
#include "common/mutex.h"
#include "coordinator/cluster_view.h"
#include "coordinator/link_history.h"

namespace ecpipe {

// Thread-safe.
class KnownLinks {
 public:
  // `configured` may be null. `clock` outlives the object.
  KnownLinks(const Clock* clock, std::shared_ptr<const LinkTable> configured)
      : clock_(clock), configured_(std::move(configured)) {}

  // From a stream of a repair. `alone`: it had the links of both nodes for itself. Figures that no
  // stream can have are ignored.
  void Take(const std::string& from, const LinkTiming& timing, bool alone);
  // From a stream whose sender always had something to send.
  void TakeProbe(const std::string& from, const LinkTiming& timing, bool alone);

  // Adds what is known to a view that has its nodes.
  void FillIn(ClusterView* cluster);
  // In the order of their nodes.
  std::vector<LinkEstimate> Measured();
  const std::shared_ptr<const LinkTable>& configured() const { return configured_; }

 private:
  const Clock* const clock_;
  const std::shared_ptr<const LinkTable> configured_;
  Mutex mutex_;
  LinkHistory history_ ABSL_GUARDED_BY(mutex_);
  // What planners see: a copy, made anew when the history has changed, of a large one at most once
  // a second.
  std::shared_ptr<const SpeedTable> table_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
