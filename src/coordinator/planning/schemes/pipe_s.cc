// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {

extern const Scheme pipe_s = {
    .name = "pipe-s",
    .help = "rp whose helpers handle one slice at a time; to compare with",
    .timeslots = "more than 1 + (k-1)/s",
    .source = "§6.4",
    .kind = SchemeKind::kBaseline,
    .flow = SchemeFlow::kSerial,
    .rank = 100,
    .plan = PlanPath};

}  // namespace ecpipe::schemes
