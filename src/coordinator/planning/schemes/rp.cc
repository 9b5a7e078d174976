// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {

extern const Scheme rp = {.name = "rp",
                          .help = "a path through k helpers; for equal links",
                          .timeslots = "1 + (k-1)/s",
                          .source = "§3.2, §4.4",
                          .rank = 10,
                          .plan = PlanPath};

}  // namespace ecpipe::schemes
