// SPDX-License-Identifier: Apache-2.0
// CoordinatorService: a copy of the databases for an operator.
#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "base/bytes/sha256.h"
#include "base/bytes/size_text.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "coordinator/store/state_copy.h"
#include "rpc/access.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

using Pieces = grpc::ServerWriter<v1::BackupPiece>;

// Of a message: a few of them fill a socket.
constexpr size_t kPieceBytes = 256 << 10;
// Signs of life while copies are made.
constexpr Duration kSignInterval = std::chrono::seconds(1);

absl::Status Send(const v1::BackupPiece& piece, Pieces* pieces) {
  if (pieces->Write(piece)) return absl::OkStatus();
  return absl::CancelledError("whoever asked for the backup has gone");
}

absl::Status SendFile(const DatabaseCopy& copy, Pieces* pieces) {
  v1::BackupPiece piece;
  piece.mutable_file()->set_name(copy.name);
  piece.mutable_file()->set_bytes(copy.bytes);
  ECPIPE_RETURN_IF_ERROR(Send(piece, pieces));
  Sha256 sha256;
  std::vector<uint8_t> buffer(kPieceBytes);
  for (uint64_t at = 0; at < copy.bytes; at += kPieceBytes) {
    const std::span bytes(buffer.data(), std::min<uint64_t>(kPieceBytes, copy.bytes - at));
    ECPIPE_RETURN_IF_ERROR(ReadFully(copy.fd.get(), at, bytes));
    sha256.Update(bytes);
    piece.set_data(bytes.data(), bytes.size());
    ECPIPE_RETURN_IF_ERROR(Send(piece, pieces));
  }
  piece.set_sha256(sha256.FinishHex());
  return Send(piece, pieces);
}

absl::StatusOr<std::vector<DatabaseCopy>> MakeCopies(const std::string& directory,
                                                     const grpc::ServerContext& context,
                                                     Pieces* pieces) {
  TimePoint next_sign = Clock::System().Now() + kSignInterval;
  return CopyDatabases(directory, [&](uint64_t copied) {
    if (context.IsCancelled()) return false;
    const TimePoint now = Clock::System().Now();
    if (now < next_sign) return true;
    next_sign = now + kSignInterval;
    v1::BackupPiece sign;
    sign.set_copied_bytes(copied);
    return pieces->Write(sign);
  });
}

absl::StatusOr<uint64_t> SendBackup(const std::string& directory,
                                    const grpc::ServerContext& context, Pieces* pieces) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<DatabaseCopy> copies,
                          MakeCopies(directory, context, pieces));
  uint64_t bytes = 0;
  for (const DatabaseCopy& copy : copies) {
    ECPIPE_RETURN_IF_ERROR(Annotate(SendFile(copy, pieces), "the copy of " + copy.name));
    bytes += copy.bytes;
  }
  return bytes;
}

}  // namespace

grpc::Status CoordinatorServiceImpl::Backup(grpc::ServerContext* context, const v1::BackupRequest*,
                                            Pieces* pieces) {
  if (backing_up_.exchange(true)) {
    return ToGrpc(absl::UnavailableError("another backup is being made; try again when it ends"));
  }
  const absl::Cleanup done = [this] { backing_up_ = false; };  // also if it throws
  const absl::StatusOr<uint64_t> bytes = SendBackup(data_directory_, *context, pieces);
  const std::string caller = CallerText(CallerOf(context));
  if (!bytes.ok()) {
    Log(LogLevel::kWarning, "backup.failed",
        {{"caller", caller}, {"status", StatusText(bytes.status())}});
    return ToGrpc(bytes.status());
  }
  Log(LogLevel::kInfo, "backup.sent", {{"caller", caller}, {"size", FormatSize(*bytes)}});
  return grpc::Status::OK;
}

}  // namespace ecpipe
