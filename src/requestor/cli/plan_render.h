// SPDX-License-Identifier: Apache-2.0
// A plan for people (text), for scripts (JSON) and for Graphviz (dot).
#pragma once

#include <string>

#include "requestor/client/coordinator_api.h"

namespace ecpipe {

std::string PlanAsText(const ExplainedRepair& repair);
std::string PlanAsJson(const ExplainedRepair& repair);
std::string PlanAsDot(const ExplainedRepair& repair);

}  // namespace ecpipe
