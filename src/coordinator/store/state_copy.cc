// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/state_copy.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/bytes/size_text.h"
#include "base/file_io.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// No database of the directory is called so.
constexpr char kCopyPrefix[] = ".copy-of-";

absl::StatusOr<std::vector<std::string>> DatabasesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const char* name :
       {kCatalogFile, kJournalFile, kLimitsFile, kLossesFile, kMarksFile, kQfsLossesFile}) {
    std::error_code error;
    if (std::filesystem::exists(directory + "/" + name, error)) names.push_back(name);
    if (error) return ErrnoStatus(error.value(), "look for " + directory + "/" + name);
  }
  return names;
}

absl::Status CheckRoom(const std::string& directory, const std::vector<std::string>& names) {
  uint64_t needed = 0;
  for (const std::string& name : names) {
    for (const char* part : {"", "-wal"}) {
      std::error_code error;
      const uintmax_t bytes = std::filesystem::file_size(directory + "/" + name + part, error);
      if (!error) needed += bytes;
    }
  }
  struct statvfs room{};
  if (::statvfs(directory.c_str(), &room) != 0) return ErrnoStatus(errno, "look at " + directory);
  const uint64_t free = uint64_t{room.f_bavail} * room.f_frsize;
  if (free / 2 >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      directory + " has " + FormatSize(free) + " of free room, and a copy of its databases (" +
      FormatSize(needed) +
      ") wants twice what it takes; free some, or stop the coordinator and "
      "copy the directory");
}

// Makes a file durable, or the names in a directory.
absl::Status Sync(const std::string& path, int flags) {
  const UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid() && ::fsync(fd.get()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "sync " + path);
}

// Opens a copy and takes its name away.
absl::StatusOr<DatabaseCopy> TakeCopy(const std::string& path, std::string name) {
  DatabaseCopy copy;
  absl::StatusOr<UniqueFd> fd = OpenForReading(path);
  ::unlink(path.c_str());
  ECPIPE_ASSIGN_OR_RETURN(copy.fd, std::move(fd));
  ECPIPE_ASSIGN_OR_RETURN(copy.bytes, FileBytes(copy.fd.get()));
  copy.name = std::move(name);
  return copy;
}

}  // namespace

absl::StatusOr<std::vector<DatabaseCopy>> CopyDatabases(
    const std::string& directory, const std::function<bool(uint64_t copied)>& go_on) {
  ECPIPE_RETURN_IF_ERROR(RemoveLeftCopies(directory));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, DatabasesIn(directory));
  ECPIPE_RETURN_IF_ERROR(CheckRoom(directory, names));
  std::vector<std::unique_ptr<SqliteDb>> open;
  for (const std::string& name : names) {
    ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db,
                            SqliteDb::Open(directory + "/" + name, {}));
    open.push_back(std::move(db));
  }
  // All of them before the first is copied, which may take minutes.
  for (const std::unique_ptr<SqliteDb>& db : open) ECPIPE_RETURN_IF_ERROR(db->BeginReading());
  std::vector<DatabaseCopy> copies;
  uint64_t before = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    const std::string path = directory + "/" + kCopyPrefix + names[i];
    ECPIPE_RETURN_IF_ERROR(
        open[i]->CopyTo(path, [&](uint64_t copied) { return go_on(before + copied); }));
    ECPIPE_RETURN_IF_ERROR(open[i]->EndReading());
    ECPIPE_ASSIGN_OR_RETURN(DatabaseCopy copy, TakeCopy(path, names[i]));
    before += copy.bytes;
    copies.push_back(std::move(copy));
  }
  return copies;
}

absl::Status KeepOldVersion(SqliteDb* db, int next_version) {
  const std::filesystem::path path(db->path());
  const std::string directory = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string name = path.filename();
  const std::string kept = db->path() + ".before-v" + std::to_string(next_version);
  const std::string copy = directory + "/" + kCopyPrefix + name;
  ::unlink(copy.c_str());  // of a copy that was killed
  ECPIPE_RETURN_IF_ERROR(CheckRoom(directory, {name}));
  ECPIPE_RETURN_IF_ERROR(db->CopyTo(copy, [](uint64_t) { return true; }));
  ECPIPE_RETURN_IF_ERROR(Sync(copy, O_RDONLY));
  if (::rename(copy.c_str(), kept.c_str()) != 0) return ErrnoStatus(errno, "rename to " + kept);
  return Sync(directory, O_RDONLY | O_DIRECTORY);
}

absl::Status RemoveLeftCopies(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with(kCopyPrefix)) ::unlink(at->path().c_str());
  }
  if (error) return ErrnoStatus(error.value(), "list " + directory);
  return absl::OkStatus();
}

}  // namespace ecpipe
