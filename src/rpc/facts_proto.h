// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/stripe_facts.h"
#include "ecpipe/v1/hdfs.pb.h"

namespace ecpipe {

v1::StripeFacts FactsToProto(const StripeFacts& facts);

// INVALID_ARGUMENT for anything that StripeFacts::Validate refuses.
absl::StatusOr<StripeFacts> FactsFromProto(const v1::StripeFacts& proto);

}  // namespace ecpipe
