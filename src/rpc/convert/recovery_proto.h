// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "ecpipe/v1/coordinator.pb.h"
#include "model/recovery.h"

namespace ecpipe {

v1::RecoveryRequest RecoveryRequestToProto(const RecoveryRequest& request);
// INVALID_ARGUMENT: an unknown policy or transport, or a value that is out of range.
absl::StatusOr<RecoveryRequest> RecoveryRequestFromProto(const v1::RecoveryRequest& proto);

void RecoveryToProto(const RecoveryView& view, v1::ListRecoveriesResponse::Recovery* proto);
// Errors as of RecoveryRequestFromProto.
absl::StatusOr<RecoveryView> RecoveryFromProto(const v1::ListRecoveriesResponse::Recovery& proto);

}  // namespace ecpipe
