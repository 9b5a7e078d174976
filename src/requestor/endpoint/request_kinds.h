// SPDX-License-Identifier: Apache-2.0
// What the requests of each storage system say, beside the lines that all have. A new system is a
// function, and a line in RequestKinds().
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "requestor/endpoint/endpoint_wire.h"
#include "requestor/endpoint/request_fields.h"

namespace ecpipe {

struct RequestKind {
  const char* store;  // the value of `store` in such a request
  // Takes the keys that are the system's own, finishes the fields, and fills in `targets`, and
  // `facts` or `claim`; all else is filled in. INVALID_ARGUMENT, naming what is wrong: a key, or a
  // range that is not within its block.
  absl::Status (*read)(RequestFields* fields, EndpointRequest* request);
};

const std::vector<RequestKind>& RequestKinds();

// In hdfs_request.cc.
absl::Status ReadHdfsRequest(RequestFields* fields, EndpointRequest* request);
// In qfs_request.cc.
absl::Status ReadQfsRequest(RequestFields* fields, EndpointRequest* request);

// INVALID_ARGUMENT unless a range of `bytes` bytes from `offset` on is within a block.
absl::Status CheckRangeInBlock(uint64_t offset, uint64_t bytes, int index, uint64_t block_bytes);

}  // namespace ecpipe
