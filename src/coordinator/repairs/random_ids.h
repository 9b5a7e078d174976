// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan/repair_plan.h"

namespace ecpipe {

// Nobody can guess them. Any thread.
EdgeToken RandomToken();
RepairId RandomRepairId();  // not 0

}  // namespace ecpipe
