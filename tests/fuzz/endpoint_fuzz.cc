// SPDX-License-Identifier: Apache-2.0
// What a client of a requestor endpoint sends: a frame's header, and a request. Refused, or within
// the limits, with a range within each block.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "model/block_id.h"
#include "requestor/endpoint/endpoint_wire.h"

namespace ecpipe {
namespace {

void CheckHeader(std::span<const uint8_t> bytes) {
  const auto header = DecodeEndpointHeader(bytes);
  if (!header.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(header.status()));
    return;
  }
  const uint32_t most =
      header->type == EndpointFrame::kData ? kMaxEndpointDataBytes : kMaxEndpointTextBytes;
  ECPIPE_CHECK(header->bytes <= most);
  ECPIPE_CHECK(header->target == 0 || header->type == EndpointFrame::kData);
}

void CheckTargets(const EndpointRequest& request) {
  const StripeFacts& facts = request.facts;
  ECPIPE_CHECK(!request.targets.empty());
  ECPIPE_CHECK(request.targets.size() <= static_cast<size_t>(facts.parity));
  int before = -1;
  uint64_t longest = 0;
  for (const EndpointRequest::Target& target : request.targets) {
    ECPIPE_CHECK(target.index > before && target.index < facts.blocks());
    const uint64_t block_bytes = facts.BlockBytes(target.index);
    ECPIPE_CHECK(target.bytes >= 1 && target.bytes <= block_bytes);
    ECPIPE_CHECK(request.offset <= block_bytes - target.bytes);
    before = target.index;
    longest = std::max(longest, target.bytes);
  }
  ECPIPE_CHECK(request.bytes() == longest);
}

void CheckRequest(const std::string& text) {
  const auto request = ParseEndpointRequest(text);
  if (!request.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(request.status()));
    const std::string told = EndpointErrorText(request.status());
    ECPIPE_CHECK(std::count(told.begin(), told.end(), '\n') == 2);
    return;
  }
  const StripeFacts& facts = request->facts;
  ECPIPE_CHECK(facts.Validate().ok() && facts.blocks() <= StripeFacts::kMaxBlocks);
  CheckTargets(*request);
  ECPIPE_CHECK(request->timeout > Duration(0) && request->timeout <= std::chrono::minutes(10));
  uint64_t data_bytes = 0;
  for (int i = 0; i < facts.blocks(); ++i) {
    ECPIPE_CHECK(ValidateBlockId(facts.BlockName(i)).ok());
    ECPIPE_CHECK(facts.BlockBytes(i) <= facts.BlockBytes(0));
    if (i < facts.data) data_bytes += facts.BlockBytes(i);
  }
  ECPIPE_CHECK(data_bytes == facts.bytes);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, size);
  ecpipe::CheckHeader(input.Bytes(ecpipe::kEndpointFrameHeaderBytes));
  ecpipe::CheckRequest(input.Rest());
  return 0;
}
