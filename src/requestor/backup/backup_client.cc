// SPDX-License-Identifier: Apache-2.0
#include "requestor/backup/backup_client.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <chrono>

#include "base/status.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// As long as the coordinator lets one last.
constexpr Duration kWholeBackup = std::chrono::hours(1);

// The stream of one backup, with a deadline of each piece: only calls over a completion queue have
// one.
class PieceStream {
 public:
  PieceStream(v1::CoordinatorService::Stub* stub, Duration patience) : patience_(patience) {
    SetTimeout(&context_, kWholeBackup);
    reader_ = stub->AsyncBackup(&context_, v1::BackupRequest(), &queue_, nullptr);
    Await();
  }
  ~PieceStream() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // False: the stream has ended; Finish() says how.
  bool Next(v1::BackupPiece* piece) {
    reader_->Read(piece, nullptr);
    return Await();
  }

  // To be called once. `given_up`: nobody reads on.
  grpc::Status Finish(bool given_up) {
    if (given_up) context_.TryCancel();
    grpc::Status status;
    reader_->Finish(&status, nullptr);
    Await();
    return silent_ ? grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "it sends nothing any more")
                   : status;
  }

 private:
  // The end of the operation that has begun.
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    const auto until = std::chrono::system_clock::now() + patience_;
    if (queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) return ok;
    silent_ = true;
    context_.TryCancel();  // which ends it at once
    return queue_.Next(&tag, &ok) && ok;
  }

  const Duration patience_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::BackupPiece>> reader_;
  bool silent_ = false;
};

absl::Status Take(const v1::BackupPiece& piece, BackupArchive* archive) {
  switch (piece.piece_case()) {
    case v1::BackupPiece::kFile:
      return archive->BeginFile(piece.file().name(), piece.file().bytes());
    case v1::BackupPiece::kData:
      return archive->Add(piece.data());
    case v1::BackupPiece::kSha256:
      return archive->EndFile(piece.sha256());
    default:
      return absl::OkStatus();  // a sign of life
  }
}

}  // namespace

absl::Status FetchBackup(const std::string& coordinator, Duration patience,
                         const std::shared_ptr<TlsContext>& tls, BackupArchive* archive,
                         const ProgressFn& progress) {
  ECPIPE_RETURN_IF_ERROR(ParseHostPort(coordinator).status());
  const std::shared_ptr<grpc::Channel> channel =
      MakeChannel(coordinator, RpcSecurity(tls), Role::kCoordinator);
  const auto stub = v1::CoordinatorService::NewStub(channel);
  PieceStream stream(stub.get(), patience);
  v1::BackupPiece piece;
  absl::Status taken;
  while (taken.ok() && stream.Next(&piece)) {
    taken = Take(piece, archive);
    progress(archive->bytes(), 0);
  }
  const grpc::Status status = stream.Finish(!taken.ok());
  ECPIPE_RETURN_IF_ERROR(taken);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError(
        "coordinator " + coordinator +
        " is of a version that makes no backups; stop it and copy its data directory");
  }
  ECPIPE_RETURN_IF_ERROR(FromGrpc(status, "coordinator " + coordinator));
  return archive->Finish();
}

}  // namespace ecpipe
