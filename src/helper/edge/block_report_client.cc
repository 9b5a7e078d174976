// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/block_report_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/process/log.h"
#include "base/status.h"
#include "rpc/channel.h"
#include "rpc/convert/block_report_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// Ten million blocks are some 250 MB.
constexpr auto kReportTimeout = std::chrono::seconds(120);

int64_t UnixNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

BlockReportClient::BlockReportClient(Options options)
    : options_(std::move(options)),
      stub_(v1::CoordinatorService::NewStub(
          MakeChannel(options_.coordinator, RpcSecurity(options_.tls), Role::kCoordinator))),
      thread_([this] { Run(); }) {}

BlockReportClient::~BlockReportClient() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  stop_.NotifyAll();
  thread_.join();
}

bool BlockReportClient::Wait(Duration pause) {
  const TimePoint next = Clock::System().Now() + pause;
  MutexLock lock(&mutex_);
  while (!stopping_ && stop_.WaitUntil(lock, next)) {
  }
  return !stopping_;
}

void BlockReportClient::Run() {
  Duration pause = options_.look_interval;
  do {
    pause = options_.look_interval;
    const TakenListing listing = options_.listing();
    const uint64_t registrations = options_.registrations();
    const bool told = confirmed_sequence_ != 0 && confirmed_.scans == listing.scans &&
                      confirmed_registrations_ == registrations;
    if (listing.blocks == nullptr || told) continue;
    const absl::Status reported = Report(listing);
    if (reported.ok()) confirmed_registrations_ = registrations;
    pause = PauseAfter(reported);
    NoteOutcome(reported);
  } while (Wait(pause));
}

Duration BlockReportClient::PauseAfter(const absl::Status& reported) {
  // A node that has not registered yet does so within a moment, and was refused before it sent
  // much.
  if (reported.ok() || absl::IsNotFound(reported)) {
    failures_ = 0;
    return options_.look_interval;
  }
  const int doublings = std::min(failures_++, 30);
  return options_.look_interval * std::min<int64_t>(int64_t{1} << doublings, kLongestPause);
}

absl::Status BlockReportClient::Report(const TakenListing& listing) {
  static const BlockListing nothing;
  while (true) {
    BlockReport report;
    report.node = options_.node_id;
    report.incarnation = options_.incarnation;
    report.sequence = ++sequence_;
    report.after = confirmed_sequence_;
    const BlockListing& before = confirmed_sequence_ == 0 ? nothing : *confirmed_.blocks;
    // The same listing, where nothing has changed: the report is a sign of life then.
    if (confirmed_sequence_ == 0 || confirmed_.blocks != listing.blocks) {
      report.pools = ChangesBetween(before, *listing.blocks, UnixNanos());
    }
    bool send_all = false;
    ECPIPE_RETURN_IF_ERROR(Send(report, &send_all));
    if (!send_all) {
      confirmed_ = listing;
      confirmed_sequence_ = report.sequence;
      return absl::OkStatus();
    }
    if (report.after == 0) {
      return absl::InternalError("the coordinator refused a full block report");
    }
    confirmed_sequence_ = 0;
  }
}

absl::Status BlockReportClient::Send(const BlockReport& report, bool* send_all) {
  grpc::ClientContext context;
  SetTimeout(&context, kReportTimeout);
  {
    MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("the helper is shutting down");
    call_ = &context;
  }
  v1::ReportBlocksResponse response;
  const auto stream = stub_->ReportBlocks(&context, &response);
  // Whether a piece could not be written, and why, the call's status says.
  WriteReport(report, [&](const v1::ReportBlocksRequest& piece) { return stream->Write(piece); });
  stream->WritesDone();
  const absl::Status status = FromGrpc(stream->Finish(), "coordinator");
  {
    MutexLock lock(&mutex_);
    call_ = nullptr;
    if (stopping_) return absl::CancelledError("the helper is shutting down");
  }
  *send_all = response.send_all();
  return status;
}

void BlockReportClient::NoteOutcome(const absl::Status& status) {
  if (status.ok() == reachable_) return;
  // A node that has not registered yet does so within a moment.
  if (absl::IsNotFound(status) || absl::IsCancelled(status)) return;
  reachable_ = status.ok();
  if (reachable_) {
    Log(LogLevel::kInfo, "blocks.reported", {{"coordinator", options_.coordinator}});
  } else {
    Log(LogLevel::kWarning, "blocks.not_reported", {{"status", StatusText(status)}});
  }
}

}  // namespace ecpipe
