// SPDX-License-Identifier: Apache-2.0
// Reads what a NameNode's fsck says of block groups, as the text of
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
// The last line has no end, or an end. What else is said of a file ("Under replicated ...",
// "CORRUPT ...") stands between its line and its blocks, or behind the colon. A path may hold line
// breaks, but HDFS allows no colon in it, and all that is read here has one before it matters: a
// name can pretend to be neither a file's line nor a block's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/group_table.h"

namespace ecpipe {

// Keeps a line and the groups, whatever else the text has. Used by one thread.
class FsckParser {
 public:
  // HDFS's longest path, 8000 characters, needs 24 KB.
  static constexpr size_t kMaxLineBytes = 64 << 10;

  // The next bytes of the text. RESOURCE_EXHAUSTED: a line, or the number of groups, is beyond the
  // limits; the text is of no use then.
  absl::Status Add(std::string_view text);
  // After the last ones. UNAVAILABLE: the text was cut off, or fsck has failed in the middle.
  // NOT_FOUND: there is no such path.
  absl::StatusOr<GroupTable> Finish();

 private:
  absl::Status TakeLine();
  absl::Status TakeBlock(const std::string& line);
  bool TakeFile(const std::string& line);

  std::string line_;       // as far as it has come
  std::string last_line_;  // the latest one that was not empty
  bool ended_ = false;     // "FSCK ended at" was there
  std::string policy_;     // of the file whose blocks come
  uint64_t blocks_left_ = 0;
  GroupTable groups_;
};

}  // namespace ecpipe
