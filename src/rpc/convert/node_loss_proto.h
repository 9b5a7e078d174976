// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ecpipe/v1/hdfs.pb.h"
#include "model/node_loss.h"

namespace ecpipe {

v1::HdfsFacts HdfsFactsToProto(const HdfsFacts& facts);
HdfsFacts HdfsFactsFromProto(const v1::HdfsFacts& proto);

void NodeLossToProto(const NodeLoss& loss, v1::GetNodeLossResponse* proto);
// Nothing if the node is not a DataNode. `node` is the one that was asked for.
std::optional<NodeLoss> NodeLossFromProto(const std::string& node,
                                          const v1::GetNodeLossResponse& proto);

}  // namespace ecpipe
