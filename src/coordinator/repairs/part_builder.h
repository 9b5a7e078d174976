// SPDX-License-Identifier: Apache-2.0
// From a plan to what each node is told to run.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/catalog.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

struct PartContext {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  TransportKind transport = TransportKind::kTcp;
  const Stripe* stripe = nullptr;
  // Data address of each node for the transport.
  std::map<std::string, std::string> addresses;
  std::function<EdgeToken()> new_token;
};

// One part for each node of the plan, by node id; a requestor's part stands under its name.
// FAILED_PRECONDITION when a node that must send has no address.
absl::StatusOr<std::map<std::string, RepairPart>> BuildParts(const RepairPlan& plan,
                                                             const PartContext& context);

}  // namespace ecpipe
