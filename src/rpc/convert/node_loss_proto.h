// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ecpipe/v1/sources.pb.h"
#include "model/node_loss.h"

namespace ecpipe {

v1::SourceFacts SourceFactsToProto(const SourceFacts& facts);
SourceFacts SourceFactsFromProto(const v1::SourceFacts& proto);

void NodeLossToProto(const NodeLoss& loss, v1::GetNodeLossResponse* proto);
// Nothing if the node belongs to no storage system. `node` is the one that was asked for.
std::optional<NodeLoss> NodeLossFromProto(const std::string& node,
                                          const v1::GetNodeLossResponse& proto);

}  // namespace ecpipe
