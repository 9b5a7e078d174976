// SPDX-License-Identifier: Apache-2.0
#include "requestor/backup/backup_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/bytes/size_text.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/status.h"
#include "requestor/backup/backup_archive.h"
#include "requestor/backup/backup_client.h"
#include "requestor/cli/progress.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

void Show(const CommonArguments& common, const std::string& path, const BackupArchive& archive) {
  if (!common.json) {
    std::printf("%s: %zu files, %s\n", path.c_str(), archive.files().size(),
                FormatSize(archive.bytes()).c_str());
    return;
  }
  Json json{{"file", path}, {"bytes", archive.bytes()}, {"files", Json::array()}};
  for (const BackupArchive::File& file : archive.files()) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  std::printf("%s\n", json.dump(2).c_str());
}

absl::StatusOr<AtomicFile> Create(const BackupArguments& arguments) {
  const AtomicFile::Options options{
      .existing = arguments.force ? AtomicFile::Existing::kReplace : AtomicFile::Existing::kRefuse,
      .access = AtomicFile::Access::kPrivate};
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(arguments.file, options);
  if (!absl::IsAlreadyExists(file.status())) return file;
  return absl::AlreadyExistsError(arguments.file + " is there already; --force replaces it");
}

}  // namespace

absl::Status RunBackup(const CommonArguments& common, const BackupArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(common.tls));
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, Create(arguments));
  BackupArchive archive(
      [&file](uint64_t offset, std::span<const uint8_t> bytes) {
        return file.WriteAt(offset, bytes);
      },
      Clock::System().UnixMillis() / 1000);
  {
    ProgressDisplay display({.label = "backup", .style = ProgressStyleOf(common)});
    ECPIPE_RETURN_IF_ERROR(FetchBackup(common.coordinator, FromSeconds(common.timeout_s), tls,
                                       &archive, display.Callback()));
    ECPIPE_RETURN_IF_ERROR(file.Commit());
  }
  Show(common, arguments.file, archive);
  return absl::OkStatus();
}

}  // namespace ecpipe
