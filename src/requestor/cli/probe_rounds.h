// SPDX-License-Identifier: Apache-2.0
// Which links are probed at the same time to learn what they share. Pure.
// docs/design/005-link-speeds.md has the reasons.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "requestor/client/coordinator_api.h"

namespace ecpipe {

using ProbeLinksOfRound = std::vector<std::pair<std::string, std::string>>;

// For each node the two fastest links into it together, and the two fastest out of it. For each two
// racks (`racks` is by node) two links between four nodes: each alone, and together. A node is in
// one of these at most in a round. `measured`: each link alone.
std::vector<ProbeLinksOfRound> RoundsAboutSharing(const std::vector<LinkSpeed>& measured,
                                                  const std::map<std::string, std::string>& racks);

}  // namespace ecpipe
