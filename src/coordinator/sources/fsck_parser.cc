// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/fsck_parser.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/status.h"
#include "model/systems/hdfs_block.h"

namespace ecpipe {
namespace {

constexpr std::string_view kEnded = "FSCK ended at ";
constexpr std::string_view kVerdict = "The filesystem under path '";
// Before the last group of a file that is being written: it has no length yet.
constexpr std::string_view kGrowing = "Under Construction Block:";
constexpr std::string_view kPolicy = " bytes, erasure-coded: policy=";
constexpr std::string_view kReplicated = " bytes, replicated: replication=";
constexpr std::string_view kBlockMark = ":blk_";
constexpr std::string_view kLength = " len=";

// Takes a number from the front of the text.
template <typename Integer>
std::optional<Integer> TakeNumber(std::string_view* text) {
  Integer value = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(rest - text->data()));
  return value;
}

bool TakePrefix(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// What people are shown of a line that may be anything.
std::string Shown(const std::string& line) {
  constexpr size_t kMost = 200;
  std::string shown = line.substr(0, kMost);
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

}  // namespace

absl::Status FsckParser::Add(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    if (line_.size() + piece.size() > kMaxLineBytes) {
      return absl::ResourceExhaustedError("the NameNode's fsck answer has a line of more than " +
                                          std::to_string(kMaxLineBytes) + " bytes");
    }
    line_ += piece;
    if (end == std::string_view::npos) return absl::OkStatus();
    text.remove_prefix(end + 1);
    ECPIPE_RETURN_IF_ERROR(TakeLine());
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupTable> FsckParser::Finish() {
  ECPIPE_RETURN_IF_ERROR(TakeLine());
  if (last_line_.ends_with("' does not exist")) return absl::NotFoundError(Shown(last_line_));
  const bool verdict = last_line_.starts_with(kVerdict) && (last_line_.ends_with("' is HEALTHY") ||
                                                            last_line_.ends_with("' is CORRUPT"));
  if (!ended_ || !verdict) {
    return absl::UnavailableError("the NameNode's fsck answer is incomplete; it ends with '" +
                                  Shown(last_line_) + "'");
  }
  groups_.Seal();
  return std::move(groups_);
}

absl::Status FsckParser::TakeLine() {
  const std::string line = std::exchange(line_, "");
  if (line.empty()) return absl::OkStatus();
  last_line_ = line;
  if (line.starts_with(kEnded)) ended_ = true;
  if (line == kGrowing) blocks_left_ = 0;
  if (TakeFile(line)) return absl::OkStatus();
  return blocks_left_ == 0 ? absl::OkStatus() : TakeBlock(line);
}

bool FsckParser::TakeFile(const std::string& line) {
  if (line.find(kReplicated) != std::string::npos) {
    blocks_left_ = 0;
    return true;
  }
  const size_t mark = line.find(kPolicy);
  if (mark == std::string::npos) return false;
  std::string_view rest = std::string_view(line).substr(mark + kPolicy.size());
  const size_t comma = rest.find(", ");
  policy_ = std::string(rest.substr(0, comma));
  rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 2);
  blocks_left_ = TakeNumber<uint64_t>(&rest).value_or(0);
  constexpr std::string_view kClosed = " block(s): ";
  constexpr std::string_view kOpen = " block(s), OPENFORWRITE: ";
  if (!rest.starts_with(kClosed) && !rest.starts_with(kOpen)) blocks_left_ = 0;
  return true;
}

absl::Status FsckParser::TakeBlock(const std::string& line) {
  std::string_view rest = line;
  const size_t mark = rest.find(kBlockMark);
  if (!TakeNumber<uint64_t>(&rest) || !TakePrefix(". ", &rest) || mark == std::string::npos) {
    return absl::OkStatus();
  }
  const size_t pool_bytes = rest.find(kBlockMark);
  const std::string pool(rest.substr(0, pool_bytes));
  rest.remove_prefix(pool_bytes + kBlockMark.size());
  const auto id = TakeNumber<int64_t>(&rest);
  if (!id || !TakePrefix("_", &rest)) return absl::OkStatus();
  const auto stamp = TakeNumber<uint64_t>(&rest);
  if (!stamp || !TakePrefix(kLength, &rest)) return absl::OkStatus();
  const auto bytes = TakeNumber<uint64_t>(&rest);
  if (!bytes) return absl::OkStatus();
  --blocks_left_;
  const bool group = *id < 0 && *id % HdfsGroup::kMaxBlocks == 0;
  if (!group || *stamp > static_cast<uint64_t>(INT64_MAX) || !ValidateHdfsPool(pool).ok()) {
    return absl::OkStatus();
  }
  return groups_.Add(pool, *id, *stamp, *bytes, policy_);
}

}  // namespace ecpipe
