// SPDX-License-Identifier: Apache-2.0
// What a client of a requestor endpoint sends: a frame's header, and a request. Refused, or within
// the limits, with a range within each block.
#include <algorithm>
#include <cstdio>
#include <string>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "model/block_id.h"
#include "model/plan/slice_grid.h"
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
  ECPIPE_CHECK(!request.targets.empty());
  int before = -1;
  uint64_t longest = 0;
  for (const EndpointRequest::Target& target : request.targets) {
    ECPIPE_CHECK(target.index > before && target.index < StripeFacts::kMaxBlocks);
    ECPIPE_CHECK(ValidateBlockId(target.block_id).ok());
    ECPIPE_CHECK(target.bytes >= 1 && target.bytes <= kMaxBlockBytes);
    ECPIPE_CHECK(request.offset <= kMaxBlockBytes - target.bytes);
    before = target.index;
    longest = std::max(longest, target.bytes);
  }
  ECPIPE_CHECK(request.bytes() == longest);
}

// The stripe of a request that describes it, which says how many bytes of data it has.
void CheckFacts(const EndpointRequest& request, const std::string& text) {
  const StripeFacts& facts = *request.facts;
  ECPIPE_CHECK(facts.Validate().ok());
  int n = 0;
  int k = 0;
  ECPIPE_CHECK(std::sscanf(facts.code.c_str(), "%*[a-z-](%d,%d)", &n, &k) == 2);
  ECPIPE_CHECK(facts.blocks.size() == static_cast<size_t>(n));
  ECPIPE_CHECK(request.targets.size() <= static_cast<size_t>(n - k));
  for (const EndpointRequest::Target& target : request.targets) {
    ECPIPE_CHECK(target.index < n);
    const StripeFacts::Block& block = facts.blocks[static_cast<size_t>(target.index)];
    ECPIPE_CHECK(target.block_id == block.name);
    ECPIPE_CHECK(target.bytes <= block.bytes && request.offset <= block.bytes - target.bytes);
  }
  uint64_t data_bytes = 0;
  for (size_t i = 0; i < facts.blocks.size(); ++i) {
    ECPIPE_CHECK(facts.blocks[i].bytes <= facts.blocks[0].bytes);
    if (i < static_cast<size_t>(k)) data_bytes += facts.blocks[i].bytes;
  }
  const std::string key = "group-bytes ";
  const size_t at = text.starts_with(key) ? 0 : text.find("\n" + key) + 1;
  ECPIPE_CHECK(data_bytes == std::stoull(text.substr(at + key.size())));
}

void CheckRequest(const std::string& text) {
  const auto request = ParseEndpointRequest(text);
  if (!request.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(request.status()));
    const std::string told = EndpointErrorText(request.status());
    ECPIPE_CHECK(std::count(told.begin(), told.end(), '\n') == 2);
    return;
  }
  CheckTargets(*request);
  ECPIPE_CHECK(request->timeout > Duration(0) && request->timeout <= std::chrono::minutes(10));
  ECPIPE_CHECK(request->facts.has_value() == request->claim.empty());
  if (request->facts) CheckFacts(*request, text);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, size);
  ecpipe::CheckHeader(input.Bytes(ecpipe::kEndpointFrameHeaderBytes));
  ecpipe::CheckRequest(input.Rest());
  return 0;
}
