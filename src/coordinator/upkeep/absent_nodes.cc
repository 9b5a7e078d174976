// SPDX-License-Identifier: Apache-2.0
#include "coordinator/upkeep/absent_nodes.h"

#include <set>
#include <string>

#include "base/status.h"

namespace ecpipe {

absl::Status TellAbsentNodes(Catalog* catalog, NodeRegistry* nodes) {
  std::set<std::string> known;
  for (const NodeView& view : nodes->All()) {
    if (!view.heartbeat_unknown) known.insert(view.record.node_id);
  }
  ECPIPE_ASSIGN_OR_RETURN(auto absent, catalog->CountBlocksBut(known));
  nodes->SetAbsent(std::move(absent));
  return absl::OkStatus();
}

}  // namespace ecpipe
