// SPDX-License-Identifier: Apache-2.0
// Reads block groups from the answer of a NameNode's fsck, which is the text of
// /fsck?ugi=USER&files=1&blocks=1&openforwrite=1&path=PATH of Hadoop 3:
//
//   FSCK started by hdfs (auth:SIMPLE) from /127.0.0.1 for path / at Sun Nov 22 02:00:00 UTC 2026
//
//   /ec <dir>
//   /ec/a 13300001 bytes, erasure-coded: policy=RS-6-3-1024k, 1 block(s):  OK
//   0. BP-1-127.0.0.1-17:blk_-9223372036854775792_1001 len=13300001 Live_repl=9
//
//   /ec/open 12582912 bytes, erasure-coded: policy=RS-6-3-1024k, 2 block(s), OPENFORWRITE:  OK
//   0. BP-1-127.0.0.1-17:blk_-9223372036854775776_1003 len=12582912 Live_repl=9
//
//   Under Construction Block:
//   1. BP-1-127.0.0.1-17:blk_-9223372036854775760_1004 len=0 Expected_repl=9
//
//   /b 5 bytes, replicated: replication=3, 1 block(s):  OK
//   0. BP-1-127.0.0.1-17:blk_1073741825_1002 len=5 Live_repl=3
//   ...
//   FSCK ended at Sun Nov 22 02:00:01 UTC 2026 in 12 milliseconds
//
//
//   The filesystem under path '/' is HEALTHY
//
// The last line may lack its line end. Other remarks about a file ("Under replicated ...", "CORRUPT
// ...") stand between its line and its blocks, or after the colon. A path may contain line breaks
// but no colon, and every line that is read here has a colon before the part that matters: so no
// path can pass for the line of a file or of a block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/sources/group_table.h"

namespace ecpipe {

// Keeps only the current line and the groups in memory. Used by one thread.
class FsckParser {
 public:
  // HDFS's longest path, 8000 characters, needs 24 KB.
  static constexpr size_t kMaxLineBytes = 64 << 10;

  // Takes the next bytes of the text. RESOURCE_EXHAUSTED: a line, or the number of groups, is over
  // the limit; the whole text must be dropped then.
  absl::Status Add(std::string_view text);
  // Call it after the last bytes. UNAVAILABLE: the text was cut off, or fsck failed in the middle.
  // NOT_FOUND: the path does not exist.
  absl::StatusOr<GroupTable> Finish();

 private:
  absl::Status TakeLine();
  absl::Status TakeBlock(const std::string& line);
  bool TakeFile(const std::string& line);

  std::string line_;       // the current line so far
  std::string last_line_;  // the latest line that was not empty
  bool ended_ = false;     // the line "FSCK ended at" has come
  std::string policy_;     // the policy of the file whose blocks come
  uint64_t blocks_left_ = 0;
  GroupTable groups_;
};

}  // namespace ecpipe
