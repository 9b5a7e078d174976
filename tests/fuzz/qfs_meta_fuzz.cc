// SPDX-License-Identifier: Apache-2.0
// A metaserver's answer, in two pieces, and what a request says of a chunk: refused, or facts that
// are valid; and it makes no difference where the pieces meet.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "coordinator/sources/qfs/metaserver_wire.h"
#include "coordinator/sources/qfs/qfs_source.h"
#include "fuzz/fuzz_input.h"

namespace ecpipe {
namespace {

// Nothing: it is not complete.
absl::StatusOr<std::optional<MetaAnswer>> Parse(const std::string& bytes, size_t meet) {
  MetaAnswerParser parser(1);
  bool complete = false;
  for (const std::string& piece : {bytes.substr(0, meet), bytes.substr(meet)}) {
    const auto added = parser.Add(piece);
    if (!added.ok()) return added.status();
    complete = *added;
  }
  return complete ? std::optional(parser.answer()) : std::nullopt;
}

void CheckClaim(const std::string& claim) {
  const auto place = QfsPlace::OfClaim(claim);
  if (!place.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(place.status()));
    return;
  }
  ECPIPE_CHECK(place->Claim() == claim && place->Validate().ok());
  ECPIPE_CHECK(place->bytes() >= 1 && place->bytes() <= kQfsChunkBytes);
  ECPIPE_CHECK(place->index() < place->file.blocks());
  uint64_t data_bytes = 0;
  for (int i = 0; i < place->file.data; ++i) {
    data_bytes += place->file.ChunkBytes(place->group(), i);
  }
  const uint64_t group_bytes = static_cast<uint64_t>(place->file.data) * kQfsChunkBytes;
  const uint64_t begin = place->group() * group_bytes;
  ECPIPE_CHECK(data_bytes == std::min(group_bytes, place->file.bytes - begin));
}

void CheckAnswer(const MetaAnswer& answer) {
  ECPIPE_CHECK(answer.content.size() <= MetaAnswerParser::kMaxContentBytes);
  const auto file = QfsFileOf(answer);
  if (file.ok()) ECPIPE_CHECK(file->Validate().ok());
  const auto layout = ParseQfsLayout(answer.content);
  if (!layout.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(layout.status()));
    return;
  }
  for (const QfsLayoutChunk& chunk : *layout) {
    const QfsPlace place{
        {5, 10'007, 2, 6, 3, 65536}, {5, chunk.chunk, chunk.version}, chunk.address};
    if (!place.Validate().ok()) continue;
    const auto facts = QfsFacts(place, *layout);
    if (!facts.ok()) continue;
    ECPIPE_CHECK(facts->Validate().ok() && facts->blocks.size() == 9);
    ECPIPE_CHECK(facts->blocks[static_cast<size_t>(place.index())].name == place.id.Name());
  }
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ecpipe;
  FuzzInput input(data, size);
  const auto meet = input.Take<uint16_t>();
  CheckClaim(input.Text());
  const std::string bytes = input.Rest();
  const auto whole = Parse(bytes, bytes.size());
  const auto pieces = Parse(bytes, std::min<size_t>(meet, bytes.size()));
  // An answer that is complete in its first piece ends there, and what follows is too much.
  if (whole.ok() != pieces.ok()) {
    ECPIPE_CHECK(absl::IsResourceExhausted(whole.status()) ||
                 absl::IsResourceExhausted(pieces.status()));
    return 0;
  }
  if (!whole.ok()) return 0;
  ECPIPE_CHECK(whole->has_value() == pieces->has_value());
  if (!whole->has_value()) return 0;
  ECPIPE_CHECK((*whole)->fields == (*pieces)->fields && (*whole)->content == (*pieces)->content);
  CheckAnswer(**whole);
  return 0;
}
