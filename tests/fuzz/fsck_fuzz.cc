// SPDX-License-Identifier: Apache-2.0
// A NameNode's fsck, in two pieces: refused, or groups whose facts are valid; and it makes no
// difference where the pieces meet.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "coordinator/sources/fsck_parser.h"
#include "fuzz/fuzz_input.h"
#include "model/systems/hdfs_group.h"

namespace ecpipe {
namespace {

absl::StatusOr<GroupTable> Parse(const std::string& text, size_t meet) {
  FsckParser parser;
  for (const std::string& piece : {text.substr(0, meet), text.substr(meet)}) {
    if (absl::Status added = parser.Add(piece); !added.ok()) return added;
  }
  return parser.Finish();
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ecpipe;
  FuzzInput input(data, size);
  const auto meet = input.Take<uint16_t>();
  const std::string text = input.Rest();
  const auto whole = Parse(text, text.size());
  const auto pieces = Parse(text, std::min<size_t>(meet, text.size()));
  ECPIPE_CHECK(whole.status() == pieces.status());
  if (!whole.ok()) {
    ECPIPE_CHECK(absl::IsUnavailable(whole.status()) || absl::IsNotFound(whole.status()) ||
                 absl::IsResourceExhausted(whole.status()));
    return 0;
  }
  ECPIPE_CHECK(whole->size() == pieces->size());
  const BlockGroup* before = nullptr;
  for (const BlockGroup& group : whole->groups()) {
    ECPIPE_CHECK(group.id < 0 && group.id % HdfsGroup::kMaxBlocks == 0);
    ECPIPE_CHECK(whole->Find(whole->PoolOf(group), group.id) == &group);
    ECPIPE_CHECK(before == nullptr || before->pool < group.pool || before->id < group.id);
    before = &group;
    if (const auto known = whole->GroupOf(group); known.ok()) {
      ECPIPE_CHECK(known->Validate().ok() && known->bytes == group.bytes);
    } else {
      ECPIPE_CHECK(absl::IsFailedPrecondition(known.status()));
    }
  }
  return 0;
}
