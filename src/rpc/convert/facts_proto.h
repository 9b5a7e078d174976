// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "ecpipe/v1/sources.pb.h"
#include "model/stripe_facts.h"

namespace ecpipe {

// Sources that no facts may have stay such.
std::vector<StripeFacts::Source> SourcesFromProto(
    const google::protobuf::RepeatedPtrField<v1::StripeFacts::Source>& proto);
void SourcesToProto(const std::vector<StripeFacts::Source>& sources,
                    google::protobuf::RepeatedPtrField<v1::StripeFacts::Source>* proto);
v1::StripeFacts FactsToProto(const StripeFacts& facts);

// INVALID_ARGUMENT for anything that StripeFacts::Validate refuses.
absl::StatusOr<StripeFacts> FactsFromProto(const v1::StripeFacts& proto);

}  // namespace ecpipe
