// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/request_kinds.h"

namespace ecpipe {

const std::vector<RequestKind>& RequestKinds() {
  static const std::vector<RequestKind> kinds = {
      {"hdfs", ReadHdfsRequest},
      {"qfs", ReadQfsRequest},
  };
  return kinds;
}

absl::Status CheckRangeInBlock(uint64_t offset, uint64_t bytes, int index, uint64_t block_bytes) {
  if (bytes > 0 && offset < block_bytes && bytes <= block_bytes - offset) return absl::OkStatus();
  return absl::InvalidArgumentError("the range is not within the " + std::to_string(block_bytes) +
                                    " bytes of block " + std::to_string(index));
}

}  // namespace ecpipe
