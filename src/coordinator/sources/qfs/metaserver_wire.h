// SPDX-License-Identifier: Apache-2.0
// The text protocol of a QFS metaserver, as far as the coordinator speaks it:
//
//   request: NAME \r\n, "Key: value \r\n" each, \r\n
//   answer:  OK \r\n, "Key: value \r\n" each, \r\n, then Content-length bytes
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {

using MetaFields = std::vector<std::pair<std::string, std::string>>;

// The text of a request with this sequence number.
std::string MetaRequest(const std::string& name, uint64_t sequence, const MetaFields& fields);

struct MetaAnswer {
  std::map<std::string, std::string> fields;
  std::string content;

  // INVALID_ARGUMENT: the field is missing, or is no number of this range.
  absl::StatusOr<int64_t> Number(const std::string& key, int64_t least = 0) const;
};

// Takes an answer as its bytes come.
class MetaAnswerParser {
 public:
  // The headers of an answer have some 500 bytes and a path; a layout has some 40 a replica.
  static constexpr size_t kMaxHeaderBytes = 64 << 10;
  static constexpr size_t kMaxContentBytes = 1 << 20;

  // `sequence` is that of the request.
  explicit MetaAnswerParser(uint64_t sequence) : sequence_(sequence) {}

  // True when the answer is complete. INVALID_ARGUMENT: the bytes are no answer to this request.
  // RESOURCE_EXHAUSTED: it is over a limit.
  absl::StatusOr<bool> Add(std::string_view bytes);
  // Requires a complete answer.
  const MetaAnswer& answer() const { return answer_; }

 private:
  absl::Status ParseHeader(std::string_view header);

  const uint64_t sequence_;
  std::string bytes_;
  size_t content_at_ = 0;  // 0: the header is not complete
  size_t content_bytes_ = 0;
  MetaAnswer answer_;
};

// OK, or the error that the metaserver answers: NOT_FOUND for -2 (no such file or chunk),
// UNAVAILABLE for what may pass or what another metaserver may answer, otherwise
// FAILED_PRECONDITION. `what` was asked for.
absl::Status StatusOfAnswer(const MetaAnswer& answer, const std::string& what);

// The striping that an answer to GETPATHNAME or LOOKUP_PATH has. FAILED_PRECONDITION: the file has
// none, or one that ECPipe cannot repair. INVALID_ARGUMENT: fields are missing or no numbers.
absl::StatusOr<QfsFile> QfsFileOf(const MetaAnswer& answer);

// A chunk in an answer to GETLAYOUT.
struct QfsLayoutChunk {
  uint64_t address = 0;
  int64_t chunk = 0;
  int64_t version = 0;
  std::vector<std::string> servers;  // host:port; empty: no chunkserver has it

  friend bool operator==(const QfsLayoutChunk&, const QfsLayoutChunk&) = default;
};
// INVALID_ARGUMENT: the content is no layout: entries that are cut off, numbers out of their range,
// or addresses that do not ascend.
absl::StatusOr<std::vector<QfsLayoutChunk>> ParseQfsLayout(std::string_view content);

}  // namespace ecpipe
