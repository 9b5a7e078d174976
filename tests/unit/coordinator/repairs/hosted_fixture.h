// SPDX-License-Identifier: Apache-2.0
// Repairs of b0 that node "spare" stores.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe {

class HostedRepairs : public Repairs {
 protected:
  void SetUp() override {
    Repairs::SetUp();
    Register("spare");
  }
  RepairId Begin(const std::string& host = "spare") {
    RepairRequest request = Request("b0");
    request.hosts = {host};
    request.background = true;
    const auto grant = coordinator_.BeginRepair(request, 7);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return journal_.records.empty() ? 0 : journal_.records.rbegin()->first;
  }
  const RepairPart& PartOf(const std::string& node) {
    return std::find_if(helpers_.last.begin(), helpers_.last.end(),
                        [&](const auto& handout) { return handout.helper.node == node; })
        ->part;
  }

  std::vector<HostedEnd>& ends_ = listener_.ends;
};

}  // namespace ecpipe
