// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/qfs/metaserver_wire.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/status.h"

namespace ecpipe {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
// Replication beyond this is refused by QFS's own tools.
constexpr int64_t kMostReplicas = 64;
constexpr int64_t kNoEntry = -2;
// What may pass, or what another metaserver may answer: EAGAIN, ETIMEDOUT, EHOSTUNREACH, and QFS's
// own for a metaserver that is not the primary or cannot write its log.
constexpr int64_t kAskAgain[] = {-11, -110, -113, -1008, -1009, -1010};

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError("the metaserver's answer " + what);
}

std::optional<int64_t> NumberIn(std::string_view text) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// Words between blanks and line ends.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  // Empty: there is none left.
  std::string_view Next() {
    constexpr std::string_view kBlanks = " \t\r\n";
    const size_t begin = std::min(text_.find_first_not_of(kBlanks), text_.size());
    const size_t end = std::min(text_.find_first_of(kBlanks, begin), text_.size());
    const std::string_view word = text_.substr(begin, end - begin);
    text_.remove_prefix(end);
    return word;
  }

 private:
  std::string_view text_;
};

}  // namespace

std::string MetaRequest(const std::string& name, uint64_t sequence, const MetaFields& fields) {
  std::string text = name + "\r\nCseq: " + std::to_string(sequence) +
                     "\r\nVersion: KFS/1.0\r\nClient-Protocol-Version: 116\r\n"
                     "UserId: 0\r\nGroupId: 0\r\n";
  for (const auto& [key, value] : fields) text += key + ": " + value + "\r\n";
  return text + "\r\n";
}

absl::StatusOr<int64_t> MetaAnswer::Number(const std::string& key, int64_t least) const {
  const auto found = fields.find(key);
  if (found == fields.end()) return Bad("lacks '" + key + "'");
  const std::optional<int64_t> number = NumberIn(found->second);
  if (number && *number >= least) return *number;
  return Bad("has a '" + key + "' that is no number, or out of its range");
}

absl::Status MetaAnswerParser::ParseHeader(std::string_view header) {
  size_t at = header.find('\n');
  std::string_view first = header.substr(0, at);
  if (!first.empty() && first.back() == '\r') first.remove_suffix(1);
  if (first != "OK") return Bad("does not begin with OK");
  while (at != std::string_view::npos && ++at < header.size()) {
    const size_t end = std::min(header.find('\n', at), header.size());
    std::string_view line = header.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    at = end;
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return Bad("has a line without a key");
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    answer_.fields[std::string(line.substr(0, colon))] = value;
  }
  ECPIPE_ASSIGN_OR_RETURN(const int64_t sequence, answer_.Number("Cseq"));
  if (static_cast<uint64_t>(sequence) != sequence_) return Bad("is to another request");
  if (!answer_.fields.contains("Content-length")) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(const int64_t content, answer_.Number("Content-length"));
  if (static_cast<uint64_t>(content) > kMaxContentBytes) {
    return absl::ResourceExhaustedError("the metaserver's answer has " + std::to_string(content) +
                                        " bytes; at most " + std::to_string(kMaxContentBytes) +
                                        " are read");
  }
  content_bytes_ = static_cast<size_t>(content);
  return absl::OkStatus();
}

absl::StatusOr<bool> MetaAnswerParser::Add(std::string_view bytes) {
  bytes_ += bytes;
  if (content_at_ == 0) {
    constexpr std::string_view kEnd = "\r\n\r\n";
    const size_t end = bytes_.find(kEnd);
    if (end > kMaxHeaderBytes) {  // or it has not come: npos is the largest size
      if (bytes_.size() <= kMaxHeaderBytes) return false;
      return absl::ResourceExhaustedError("the metaserver's answer has a header of more than " +
                                          std::to_string(kMaxHeaderBytes) + " bytes");
    }
    ECPIPE_RETURN_IF_ERROR(ParseHeader(std::string_view(bytes_).substr(0, end)));
    content_at_ = end + kEnd.size();
  }
  if (bytes_.size() > content_at_ + content_bytes_) return Bad("goes on behind its end");
  if (bytes_.size() < content_at_ + content_bytes_) return false;
  answer_.content = bytes_.substr(content_at_);
  return true;
}

absl::Status StatusOfAnswer(const MetaAnswer& answer, const std::string& what) {
  ECPIPE_ASSIGN_OR_RETURN(const int64_t status,
                          answer.Number("Status", std::numeric_limits<int64_t>::min()));
  if (status == 0) return absl::OkStatus();
  const auto message = answer.fields.find("Status-message");
  const std::string text = "the metaserver refuses " + what + " with status " +
                           std::to_string(status) +
                           (message == answer.fields.end() ? "" : ": " + message->second);
  if (status == kNoEntry) return absl::NotFoundError(text);
  const bool passes =
      std::find(std::begin(kAskAgain), std::end(kAskAgain), status) != std::end(kAskAgain);
  return passes ? absl::UnavailableError(text) : absl::FailedPreconditionError(text);
}

absl::StatusOr<QfsFile> QfsFileOf(const MetaAnswer& answer) {
  QfsFile file;
  ECPIPE_ASSIGN_OR_RETURN(file.file, answer.Number("File-handle", 1));
  ECPIPE_ASSIGN_OR_RETURN(const int64_t bytes, answer.Number("File-size"));
  file.bytes = static_cast<uint64_t>(bytes);
  const auto small = [&](const char* key, int* value) -> absl::Status {
    ECPIPE_ASSIGN_OR_RETURN(const int64_t number, answer.Number(key));
    *value = static_cast<int>(std::min<int64_t>(number, 1 << 20));
    return absl::OkStatus();
  };
  ECPIPE_RETURN_IF_ERROR(small("Striper-type", &file.striper));
  ECPIPE_RETURN_IF_ERROR(small("Num-stripes", &file.data));
  ECPIPE_RETURN_IF_ERROR(small("Num-recovery-stripes", &file.parity));
  ECPIPE_ASSIGN_OR_RETURN(const int64_t cell, answer.Number("Stripe-size"));
  file.cell_bytes = static_cast<uint64_t>(cell);
  if (const absl::Status valid = file.Validate(); !valid.ok()) {
    return absl::FailedPreconditionError("file " + std::to_string(file.file) + ": " +
                                         std::string(valid.message()));
  }
  return file;
}

absl::StatusOr<std::vector<QfsLayoutChunk>> ParseQfsLayout(std::string_view content) {
  std::vector<QfsLayoutChunk> chunks;
  Words words(content);
  const auto number = [&](int64_t least, int64_t most) -> std::optional<int64_t> {
    const std::optional<int64_t> value = NumberIn(words.Next());
    return value && *value >= least && *value <= most ? value : std::nullopt;
  };
  for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    const std::optional<int64_t> address = NumberIn(word);
    const std::optional<int64_t> chunk = number(1, kMost);
    const std::optional<int64_t> version = number(0, kMost);
    const std::optional<int64_t> replicas = number(0, kMostReplicas);
    if (!address || *address < 0 || !chunk || !version || !replicas) {
      return Bad("has a layout whose entry " + std::to_string(chunks.size()) + " cannot be read");
    }
    QfsLayoutChunk entry{static_cast<uint64_t>(*address), *chunk, *version, {}};
    if (!chunks.empty() && chunks.back().address >= entry.address) {
      return Bad("has a layout whose chunks are not in order");
    }
    for (int64_t i = 0; i < *replicas; ++i) {
      const std::string host(words.Next());
      const std::optional<int64_t> port = number(1, 65535);
      if (host.empty() || !port) return Bad("has a layout with a place that cannot be read");
      entry.servers.push_back(host + ":" + std::to_string(*port));
    }
    chunks.push_back(std::move(entry));
  }
  return chunks;
}

}  // namespace ecpipe
