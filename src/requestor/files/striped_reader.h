// SPDX-License-Identifier: Apache-2.0
// Puts a file together from ranges of its data blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "model/striped_file.h"

namespace ecpipe {

// The range of a data block that has the bytes [begin, end) of a part, as positions in the part.
// Empty: it has none of them.
struct BlockRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};
BlockRange RangeInBlock(const StripedFile::Part& part, size_t block, uint64_t begin, uint64_t end);

// Fills `out` with a range of the named block. Called by several threads at once.
using ReadBlockFn = std::function<absl::Status(const std::string& block_id, uint64_t offset,
                                               std::span<uint8_t> out)>;
// Reads blocks from where they are, and rebuilds what cannot be read there. A block that the
// coordinator says nobody can give, because it is on no node that can be used or is corrupt, is
// rebuilt from then on; one that could not be read for another reason, such as a node that is busy,
// is read again for its next range. Thread-safe.
class DirectOrRebuilt {
 public:
  DirectOrRebuilt(ReadBlockFn direct, ReadBlockFn rebuild)
      : direct_(std::move(direct)), rebuild_(std::move(rebuild)) {}

  absl::Status Read(const std::string& block_id, uint64_t offset, std::span<uint8_t> out);
  // Blocks of which a range was rebuilt.
  size_t rebuilt() const;

 private:
  const ReadBlockFn direct_;
  const ReadBlockFn rebuild_;
  mutable Mutex mutex_;
  std::map<std::string, bool> rebuilt_ ABSL_GUARDED_BY(mutex_);  // and whether it is lost
};

// Takes the file's bytes in order.
using TakeBytesFn = std::function<absl::Status(std::span<const uint8_t> bytes)>;

// Bytes that are held at a time, in whole rows of cells where a row is not longer.
inline constexpr uint64_t kStripedWindowBytes = uint64_t{32} << 20;

// Hands over the bytes [begin, end) of the file that the part has.
absl::Status ReadPart(const StripedFile::Part& part, uint64_t begin, uint64_t end,
                      const ReadBlockFn& read, const TakeBytesFn& take);

// What of a file is wanted.
struct FileRange {
  std::string path;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // 0: to the end
};
// The file, as StripeSource::FileAt tells it.
using FileAtFn = std::function<absl::StatusOr<StripedFile>(uint64_t offset)>;

// Hands over the range's bytes, and returns how many these are. The file is asked for as often as
// one answer has too few parts. INVALID_ARGUMENT: the range is not within the file.
// FAILED_PRECONDITION: between two answers the path became that of another file, or the file's
// length changed.
absl::StatusOr<uint64_t> ReadFileRange(const FileRange& range, const FileAtFn& file_at,
                                       const ReadBlockFn& read, const TakeBytesFn& take);

}  // namespace ecpipe
