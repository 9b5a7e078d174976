// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ecpipe/v1/schemes.pb.h"
#include "model/scheme_info.h"

namespace ecpipe {

void SchemesToProto(const std::vector<SchemeInfo>& schemes, v1::ListSchemesResponse* proto);
std::vector<SchemeInfo> SchemesFromProto(const v1::ListSchemesResponse& proto);

}  // namespace ecpipe
