// SPDX-License-Identifier: Apache-2.0
#include "requestor/backup/backup_archive.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr size_t kRecordBytes = 512;
constexpr char kSums[] = "SHA256SUMS";
// The coordinator has six databases today.
constexpr size_t kMaxFiles = 32;
constexpr size_t kMaxNameBytes = 64;
// The header has eleven octal digits for the length.
constexpr uint64_t kMaxOctal = uint64_t{1} << 33;

absl::Status CheckName(const std::string& name) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  const bool good = !name.empty() && name.size() <= kMaxNameBytes && name.front() != '.' &&
                    name.find_first_not_of(kAllowed) == std::string::npos;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError("the coordinator sends a file that it calls '" + name +
                                    "', which is no name of its databases");
}

// A header of tar: fields at fixed places.
class Header {
 public:
  Header() : text_(kRecordBytes, '\0') {}

  void Put(size_t at, std::string_view field) { text_.replace(at, field.size(), field); }

  void PutBytes(uint64_t bytes) {
    if (bytes < kMaxOctal) return Put(124, absl::StrFormat("%011o", bytes));
    // As GNU tar does: a mark, then the number itself, big-endian.
    text_[124] = static_cast<char>(0x80);
    for (size_t i = 0; i < 8; ++i) text_[135 - i] = static_cast<char>(bytes >> (8 * i));
  }

  std::string Finish() {
    Put(148, "        ");  // the checksum counts as spaces
    uint32_t sum = 0;
    for (const char c : text_) sum += static_cast<uint8_t>(c);
    Put(148, absl::StrFormat("%06o", sum));
    text_[154] = '\0';
    return text_;
  }

 private:
  std::string text_;
};

}  // namespace

absl::Status BackupArchive::Write(std::string_view data) {
  ECPIPE_RETURN_IF_ERROR(
      write_(at_, std::span(reinterpret_cast<const uint8_t*>(data.data()), data.size())));
  at_ += data.size();
  return absl::OkStatus();
}

absl::Status BackupArchive::WriteHeader(const std::string& name, uint64_t bytes) {
  Header header;
  header.Put(0, name);
  header.Put(100, "0000640");  // as the coordinator makes its files
  header.Put(108, "0000000");  // owner and group: of whoever unpacks it, unless that is root
  header.Put(116, "0000000");
  header.PutBytes(bytes);
  header.Put(136, absl::StrFormat("%011o", static_cast<uint64_t>(unix_seconds_)));
  header.Put(156, "0");  // a plain file
  header.Put(257, std::string_view("ustar\0"
                                   "00",
                                   8));
  return Write(header.Finish());
}

absl::Status BackupArchive::Pad() {
  const size_t over = at_ % kRecordBytes;
  return over == 0 ? absl::OkStatus() : Write(std::string(kRecordBytes - over, '\0'));
}

absl::Status BackupArchive::BeginFile(const std::string& name, uint64_t bytes) {
  ECPIPE_RETURN_IF_ERROR(CheckName(name));
  if (open_) return absl::DataLossError("file " + name + " begins within " + files_.back().name);
  if (files_.size() == kMaxFiles)
    return absl::DataLossError("the coordinator sends too many files");
  if (!names_.insert(name).second) return absl::DataLossError("file " + name + " comes twice");
  files_.push_back({name, bytes, ""});
  open_ = true;
  missing_ = bytes;
  sha256_.emplace();
  return WriteHeader(name, bytes);
}

absl::Status BackupArchive::Add(std::string_view data) {
  if (!open_) return absl::DataLossError("bytes come that belong to no file");
  if (data.size() > missing_) {
    return absl::DataLossError(files_.back().name + " is longer than the coordinator said");
  }
  missing_ -= data.size();
  sha256_->Update(std::span(reinterpret_cast<const uint8_t*>(data.data()), data.size()));
  return Write(data);
}

absl::Status BackupArchive::EndFile(const std::string& sha256) {
  if (!open_) return absl::DataLossError("a file ends that has not begun");
  File& file = files_.back();
  if (missing_ > 0) {
    return absl::DataLossError(
        absl::StrFormat("%s lacks %d of its %d bytes", file.name, missing_, file.bytes));
  }
  file.sha256 = sha256_->FinishHex();
  if (file.sha256 != sha256) {
    return absl::DataLossError(file.name + " came with SHA-256 " + file.sha256 +
                               ", the coordinator sent " + sha256);
  }
  open_ = false;
  return Pad();
}

absl::Status BackupArchive::Finish() {
  if (open_ || files_.empty()) {
    return absl::DataLossError("the coordinator ended the backup before it was whole");
  }
  std::string sums;
  for (const File& file : files_) sums += file.sha256 + "  " + file.name + "\n";
  ECPIPE_RETURN_IF_ERROR(WriteHeader(kSums, sums.size()));
  ECPIPE_RETURN_IF_ERROR(Write(sums));
  ECPIPE_RETURN_IF_ERROR(Pad());
  return Write(std::string(2 * kRecordBytes, '\0'));
}

}  // namespace ecpipe
