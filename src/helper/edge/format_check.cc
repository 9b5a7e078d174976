// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/format_check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>

#include "base/file_io.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "helper/store/directory.h"
#include "helper/store/hdfs_meta.h"
#include "helper/store/hdfs_scan.h"
#include "helper/store/hdfs_volume.h"
#include "helper/store/qfs/qfs_header.h"
#include "model/block_checksums.h"
#include "model/block_id.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {
namespace {

// What a disk lists and reads in about half a second, as it has little else to do.
constexpr uint32_t kMostNames = 4096;
constexpr uint32_t kMostHeaders = 64;
constexpr auto kLookFor = std::chrono::milliseconds(500);
constexpr size_t kMostNamed = 3;  // for people
// A block gets its name after its checksum file, as soon as the disk has its bytes.
constexpr auto kMostBetweenNames = std::chrono::minutes(1);
// Of Hadoop 2.8 and later: 32 x 32 directories of blocks. The one before has 256 x 256.
constexpr const char* kHdfsLayout = "-57";
constexpr int kHdfsFanOut = 32;
constexpr const char* kVersionFile = "current/VERSION";

// Opens a regular file; NOT_FOUND also where it is something else.
absl::StatusOr<UniqueFd> OpenFile(int parent, const std::string& name) {
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "open it");
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "look at it");
  if (!S_ISREG(info.st_mode)) return absl::NotFoundError("no regular file");
  return fd;
}

class Look {
 public:
  Look(int root, const Clock& clock) : root_(root), clock_(clock), end_(clock.Now() + kLookFor) {}

  absl::Status AtPlain();
  absl::Status AtHdfs();
  absl::Status AtQfs();
  FormatLook Take() { return std::move(look_); }

 private:
  using Each = std::function<void(int parent, const std::string& name, const struct stat& info)>;

  // Calls `each` with the names of a directory, and what they are, until the look ends.
  absl::Status ForEach(int parent, const std::string& name, const Each& each);
  bool Ended() const { return look_.names >= kMostNames || clock_.Now() >= end_; }
  // Whether one more header may be read; if not, there is more to look at.
  bool MayReadHeader();
  // Checks a header, twice if it does not fit: its file may be in the midst of being replaced.
  void Check(const std::string& name, const std::function<absl::Status()>& header);
  static void Note(const std::string& name, const std::string& what, FormatLook::Misfits* misfits);
  // What cannot be read; what has gone since it was listed is none.
  void NoteFailure(const std::string& name, const absl::Status& status);
  void AtPlainName(int parent, const std::string& name, const struct stat& info);
  void AtPool(int pools, const std::string& pool);
  // A directory that has so many levels of directories below it, of which the last have replicas.
  void AtSubdirectory(int parent, const std::string& above, const std::string& name, int levels);
  void AtReplica(int parent, const std::string& name);
  // Whether it is a volume of a DataNode.
  absl::StatusOr<bool> HasVersionFile() const;

  const int root_;
  const Clock& clock_;
  const TimePoint end_;
  FormatLook look_;
};

absl::StatusOr<bool> Look::HasVersionFile() const {
  if (::faccessat(root_, kVersionFile, F_OK, 0) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ErrnoStatus(errno, std::string("look for ") + kVersionFile);
}

absl::Status Look::ForEach(int parent, const std::string& name, const Each& each) {
  const Directory directory = OpenDirectory(parent, name.c_str());
  if (directory == nullptr) return ErrnoStatus(errno, "list " + name);
  const int here = ::dirfd(directory.get());
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr && errno != 0) return ErrnoStatus(errno, "list " + name);
    if (entry == nullptr) return absl::OkStatus();
    const std::string found = entry->d_name;
    if (found == "." || found == "..") continue;
    if (Ended()) {
      look_.more = true;
      return absl::OkStatus();
    }
    struct stat info{};
    const bool seen = ::fstatat(here, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!seen && errno == ENOENT) continue;
    if (!seen) NoteFailure(found, ErrnoStatus(errno, "look at it"));
    ++look_.names;
    if (seen) each(here, found, info);
  }
}

bool Look::MayReadHeader() {
  if (look_.headers < kMostHeaders) return true;
  look_.more = true;
  return false;
}

void Look::Check(const std::string& name, const std::function<absl::Status()>& header) {
  if (!MayReadHeader()) return;
  absl::Status read = header();
  if (!read.ok()) read = header();
  if (absl::IsNotFound(read)) return;
  ++look_.headers;
  if (absl::IsAborted(read)) {
    look_.more = true;
  } else {
    NoteFailure(name, read);
  }
}

void Look::Note(const std::string& name, const std::string& what, FormatLook::Misfits* misfits) {
  if (misfits->count++ < kMostNamed) misfits->first.push_back({name, what});
}

void Look::NoteFailure(const std::string& name, const absl::Status& status) {
  if (status.ok() || absl::IsNotFound(status)) return;
  Note(name, std::string(status.message()), &look_.unreadable);
}

// ABORTED: it may be ahead of its block.
absl::Status CheckChecksumFile(int parent, const std::string& name, const std::string& block,
                               std::chrono::seconds unix_now) {
  struct stat info{};
  // A helper that was killed between its two steps leaves the file of checksums alone: NOT_FOUND.
  if (::fstatat(parent, block.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoStatus(errno, "look at its block");
  }
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(parent, name));
  struct stat own{};
  if (::fstat(fd.get(), &own) != 0) return ErrnoStatus(errno, "look at it");
  const absl::Status fits =
      ChecksumFile::Open(std::move(fd), block, static_cast<uint64_t>(info.st_size)).status();
  const std::chrono::seconds written(own.st_mtim.tv_sec);
  // The file system's clock may be another one.
  if (absl::IsDataLoss(fits) && std::chrono::abs(unix_now - written) < kMostBetweenNames) {
    return absl::AbortedError("it was written just now");
  }
  return fits;
}

absl::Status CheckChunk(int parent, const std::string& name, const QfsChunkId& id) {
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(parent, name));
  std::array<uint8_t, kQfsHeaderBytes> header{};
  ECPIPE_RETURN_IF_ERROR(ReadFully(fd.get(), 0, header));
  return ParseQfsHeader(header, id).status();
}

absl::Status CheckMeta(int parent, const std::string& name) {
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(parent, name));
  std::array<uint8_t, kHdfsMetaHeaderBytes> header{};
  ECPIPE_RETURN_IF_ERROR(ReadFully(fd.get(), 0, header));
  return ParseHdfsMetaHeader(header).status();
}

bool IsOfLayout(const std::string& name) {
  for (int i = 0; i < kHdfsFanOut; ++i) {
    if (name == "subdir" + std::to_string(i)) return true;
  }
  return false;
}

void Look::AtPlainName(int parent, const std::string& name, const struct stat& info) {
  if (name.starts_with(".ecpipe-") || name == "lost+found") return;
  if (!S_ISREG(info.st_mode)) {
    Note(name, S_ISDIR(info.st_mode) ? "a directory" : "no regular file", &look_.foreign);
    return;
  }
  if (const std::optional<std::string> block = BlockOfChecksumFile(name)) {
    const std::chrono::seconds unix_now(clock_.UnixMillis() / 1000);
    Check(*block, [&] { return CheckChecksumFile(parent, name, *block, unix_now); });
    return;
  }
  if (!ValidateBlockId(name).ok()) {
    Note(name, "no block's name", &look_.foreign);
    return;
  }
  const std::optional<QfsChunkId> chunk = QfsChunkOfFile(name);
  if (!chunk || !look_.wrong.empty() || !MayReadHeader()) return;
  ++look_.headers;
  if (CheckChunk(parent, name, *chunk).ok()) {
    look_.wrong = "it is a chunk directory of a QFS chunkserver: " + name + " is a chunk";
  }
}

absl::Status Look::AtPlain() {
  ECPIPE_ASSIGN_OR_RETURN(const bool is_volume, HasVersionFile());
  if (is_volume) {
    look_.wrong = std::string("it is a volume of an HDFS DataNode: it has ") + kVersionFile;
    return absl::OkStatus();
  }
  return ForEach(root_, ".", [this](int parent, const std::string& name, const struct stat& info) {
    AtPlainName(parent, name, info);
  });
}

absl::Status Look::AtQfs() {
  ECPIPE_ASSIGN_OR_RETURN(const bool is_volume, HasVersionFile());
  if (is_volume) {
    look_.wrong = std::string("it is a volume of an HDFS DataNode: it has ") + kVersionFile;
    return absl::OkStatus();
  }
  // A chunkserver has files of its own beside its chunks.
  return ForEach(root_, ".", [this](int parent, const std::string& name, const struct stat& info) {
    const std::optional<QfsChunkId> chunk = QfsChunkOfFile(name);
    if (chunk && chunk->version > 0 && S_ISREG(info.st_mode)) {
      Check(name, [&] { return CheckChunk(parent, name, *chunk); });
    } else if (BlockOfChecksumFile(name) && look_.wrong.empty()) {
      look_.wrong = "it has checksum files of a plain store: " + name;
    }
  });
}

void Look::AtPool(int pools, const std::string& pool) {
  const auto finalized = OpenBelow(pools, {pool, "current", "finalized"});
  // NOT_FOUND: another directory, or a pool without blocks.
  if (!finalized.ok()) return NoteFailure(pool, finalized.status());
  NoteFailure(pool, ForEach(finalized->get(), ".",
                            [&](int parent, const std::string& name, const struct stat&) {
                              AtSubdirectory(parent, pool, name, 1);
                            }));
}

// The names of directories tell where blocks are looked for, so they must be those of the layout.
void Look::AtSubdirectory(int parent, const std::string& above, const std::string& name,
                          int levels) {
  const std::string path = above + "/" + name;
  if (!IsOfLayout(name)) {
    Note(path, "no directory of layout " + std::string(kHdfsLayout), &look_.foreign);
    return;
  }
  NoteFailure(path,
              ForEach(parent, name, [&](int here, const std::string& below, const struct stat&) {
                if (levels == 0) return AtReplica(here, below);
                AtSubdirectory(here, path, below, levels - 1);
              }));
}

void Look::AtReplica(int parent, const std::string& name) {
  if (IdOfMeta(name)) {
    Check(name, [&] { return CheckMeta(parent, name); });
  } else if (!IdOfReplica(name)) {
    Note(name, "neither a replica nor its checksums", &look_.foreign);
  }
}

absl::Status Look::AtHdfs() {
  ECPIPE_ASSIGN_OR_RETURN(const bool is_volume, HasVersionFile());
  if (!is_volume) {
    look_.wrong = std::string("it has no ") + kVersionFile + ", as each volume of a DataNode has";
    return absl::OkStatus();
  }
  Check(kVersionFile, [this]() -> absl::Status {
    ECPIPE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(root_, kVersionFile));
    ECPIPE_ASSIGN_OR_RETURN(const std::string text, ReadVersionFile(fd.get()));
    const std::string type = ValueInVersion(text, "storageType").value_or("DATA_NODE");
    if (type != "DATA_NODE") return absl::DataLossError("it is of a " + type);
    const std::string layout = ValueInVersion(text, "layoutVersion").value_or(kHdfsLayout);
    if (layout == kHdfsLayout) return absl::OkStatus();
    return absl::DataLossError("layout version " + layout + "; blocks are found in that of " +
                               kHdfsLayout + " alone");
  });
  return ForEach(root_, "current",
                 [this](int parent, const std::string& name, const struct stat& info) {
                   if (S_ISDIR(info.st_mode)) AtPool(parent, name);
                 });
}

}  // namespace

absl::StatusOr<FormatLook> LookAtFormat(const std::string& path, StoreKind store,
                                        const Clock& clock) {
  // The root itself may be a link.
  const UniqueFd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return ErrnoStatus(errno, "open the directory");
  Look look(root.get(), clock);
  const absl::Status looked = store == StoreKind::kHdfs  ? look.AtHdfs()
                              : store == StoreKind::kQfs ? look.AtQfs()
                                                         : look.AtPlain();
  if (!looked.ok()) return looked;
  return look.Take();
}

}  // namespace ecpipe
