// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/store/catalog.h"

namespace ecpipe {

// Between two looks: a node that is not there has been so for seconds, and its blocks are counted
// each time, 5 ms for 100,000.
inline constexpr Duration kLookForAbsentNodes = std::chrono::seconds(5);

// Tells the registry which nodes have blocks by the catalog, but have not registered: they may have
// died before this process began. Fails as the catalog does; the registry then knows what it knew.
absl::Status TellAbsentNodes(Catalog* catalog, NodeRegistry* nodes);

}  // namespace ecpipe
