// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {

extern const Scheme pipe_b = {.name = "pipe-b",
                              .help = "rp with the whole range as one slice; to compare with",
                              .timeslots = "k",
                              .source = "§6.4",
                              .kind = SchemeKind::kBaseline,
                              .flow = SchemeFlow::kWholeBlock,
                              .rank = 90,
                              .plan = PlanPath};

}  // namespace ecpipe::schemes
