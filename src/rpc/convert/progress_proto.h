// SPDX-License-Identifier: Apache-2.0
// How far a part has come, between the wire and the coordinator and helpers.
#pragma once

#include "ecpipe/v1/helper.pb.h"
#include "model/plan/part_progress.h"

namespace ecpipe {

v1::PartProgress ProgressToProto(const PartProgress& progress);
PartProgress ProgressFromProto(const v1::PartProgress& proto);

}  // namespace ecpipe
