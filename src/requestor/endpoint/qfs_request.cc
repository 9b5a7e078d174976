// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "model/systems/qfs_chunk.h"
#include "requestor/endpoint/request_kinds.h"

namespace ecpipe {

absl::Status ReadQfsRequest(RequestFields* fields, EndpointRequest* request) {
  QfsPlace place;
  place.id.file = fields->Number<int64_t>("file");
  place.id.chunk = fields->Number<int64_t>("chunk");
  place.id.version = fields->Number<int64_t>("version");
  place.address = fields->Number<uint64_t>("chunk-offset");
  place.file.file = place.id.file;
  place.file.bytes = fields->Number<uint64_t>("file-size");
  place.file.striper = fields->Number<int>("striper");
  place.file.data = fields->Number<int>("data");
  place.file.parity = fields->Number<int>("parity");
  place.file.cell_bytes = fields->Number<uint64_t>("cell");
  const auto bytes = fields->Number<uint64_t>("bytes");
  ECPIPE_RETURN_IF_ERROR(fields->Finish());
  ECPIPE_RETURN_IF_ERROR(place.Validate());
  ECPIPE_RETURN_IF_ERROR(CheckRangeInBlock(request->offset, bytes, place.index(), place.bytes()));
  request->targets = {{place.index(), bytes, place.id.Name()}};
  request->claim = place.Claim();
  return absl::OkStatus();
}

}  // namespace ecpipe
