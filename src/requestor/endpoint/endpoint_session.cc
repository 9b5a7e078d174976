// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_session.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/guarded.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// Waits for one of `events`. DEADLINE_EXCEEDED: not until then.
absl::Status Await(int fd, short events, TimePoint deadline) {
  while (true) {
    const auto rest =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::System().Now());
    if (rest.count() <= 0) return absl::DeadlineExceededError("no bytes came in time");
    pollfd polled{fd, events, 0};
    const int count = ::poll(&polled, 1, static_cast<int>(rest.count()));
    if (count > 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
  }
}

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

iovec Part(std::span<const uint8_t> bytes) {
  return {const_cast<uint8_t*>(bytes.data()), bytes.size()};
}

// Those that the request names: what a client did not say it is not told.
std::vector<StripeFacts::Source> NamedIn(const EndpointRequest& request,
                                         const std::vector<StripeFacts::Source>& corrupt) {
  std::vector<StripeFacts::Source> named;
  for (const StripeFacts::Source& source : corrupt) {
    const bool said = request.facts && absl::c_linear_search(request.facts->sources, source);
    if (said) named.push_back(source);
  }
  return named;
}

// As PERMISSION_DENIED a client hears only that its user may not ask at all. Here it may: this is
// about the file of a block, say, and other repairs do not need that one.
absl::Status AsToldToTheClient(const absl::Status& status) {
  return absl::IsPermissionDenied(status) ? absl::FailedPreconditionError(status.message())
                                          : status;
}

}  // namespace

EndpointSession::EndpointSession(StreamSocket socket, const Options& options,
                                 const EndpointAccess* access, const RepairSourceFactory* factory,
                                 std::function<void()> on_change)
    : socket_(std::move(socket)),
      options_(options),
      access_(access),
      factory_(factory),
      on_change_(std::move(on_change)) {}

EndpointSession::Outcome EndpointSession::Run() {
  Outcome outcome;
  const TimePoint deadline = Clock::System().Now() + options_.request_timeout;
  outcome.status = Handshake(deadline);
  if (!outcome.status.ok()) return outcome;
  const absl::StatusOr<EndpointRequest> request = ReadRequest(deadline);
  outcome.status = request.status();
  if (request.ok()) {
    outcome.client = request->client;
    for (const EndpointRequest::Target& target : request->targets) {
      outcome.block += (outcome.block.empty() ? "" : ",") + target.block_id;
    }
    outcome.status = access_->CheckCookie(request->cookie);
    outcome.repair = outcome.status.ok();
    if (outcome.repair) outcome.status = Guarded([&] { return Repair(*request, &outcome); });
  }
  if (!outcome.status.ok()) SendError(outcome.status);
  MutexLock lock(&mutex_);
  if (!ended_because_.ok()) outcome.status = ended_because_;
  phase_ = Phase::kOver;
  source_ = nullptr;
  socket_.SendCloseNotify();
  return outcome;
}

absl::Status EndpointSession::Handshake(TimePoint deadline) {
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool secured, socket_.Handshake());
    if (secured) return absl::OkStatus();
    ECPIPE_RETURN_IF_ERROR(Await(socket_.fd(), socket_.handshake_events(), deadline));
  }
}

absl::Status EndpointSession::ReadFully(std::span<uint8_t> out, TimePoint deadline) {
  while (!out.empty()) {
    const iovec part = Part(out);
    const ssize_t got = socket_.Read(&part, 1);
    if (got == 0) {
      return absl::CancelledError(
          "the client closed the connection before its request was complete");
    }
    if (got > 0) {
      out = out.subspan(static_cast<size_t>(got));
    } else if (!WouldBlock()) {
      return socket_.Error(errno, "read a request");
    } else {
      ECPIPE_RETURN_IF_ERROR(Annotate(Await(socket_.fd(), POLLIN, deadline), "read a request"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<EndpointRequest> EndpointSession::ReadRequest(TimePoint deadline) {
  EndpointFrameHeaderBytes bytes{};
  ECPIPE_RETURN_IF_ERROR(ReadFully(bytes, deadline));
  ECPIPE_ASSIGN_OR_RETURN(const EndpointFrameHeader header, DecodeEndpointHeader(bytes));
  if (header.type != EndpointFrame::kRepair) {
    return absl::InvalidArgumentError("a client may send only REPAIR frames");
  }
  std::vector<uint8_t> payload(header.bytes);
  ECPIPE_RETURN_IF_ERROR(ReadFully(payload, deadline));
  ECPIPE_RETURN_IF_ERROR(CheckEndpointPayload(header, payload));
  return ParseEndpointRequest({payload.begin(), payload.end()});
}

absl::Status EndpointSession::Repair(const EndpointRequest& request, Outcome* outcome) {
  const TimePoint begun_at = Clock::System().Now();
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<RepairSource> source, (*factory_)(request));
  std::optional<RepairReport> begun;
  uint64_t taken = 0;  // of the range
  const PiecesSink sink = [&](std::span<const std::span<const uint8_t>> pieces) -> absl::Status {
    if (taken == 0) ECPIPE_RETURN_IF_ERROR(SendHeader(request, begun));
    // Before they go: the client may leave as soon as it has them.
    if (taken + pieces[0].size() == request.bytes()) Complete();
    ECPIPE_RETURN_IF_ERROR(SendPieces(request, taken, pieces, &outcome->bytes));
    taken += pieces[0].size();
    return absl::OkStatus();
  };
  // From here on others may cancel it: nothing throws until they no longer may.
  const Duration left = request.timeout - (Clock::System().Now() - begun_at);
  if (!BeginWaiting(source.get(), left)) {
    return absl::CancelledError("the endpoint is shutting down");
  }
  const absl::StatusOr<RepairReport> report = Guarded([&] {
    return source->Read(request, sink, [&](const RepairReport& so_far) {
      begun = so_far;
      outcome->repair_id = so_far.repair_id;
    });
  });
  {
    // Nobody may cancel it from here on: it is about to go.
    MutexLock lock(&mutex_);
    source_ = nullptr;
  }
  ECPIPE_RETURN_IF_ERROR(report.status());
  if (taken != request.bytes()) {
    return absl::InternalError("the repair brought " + std::to_string(taken) + " of " +
                               std::to_string(request.bytes()) + " bytes");
  }
  // A client that does not wait for it has all that it wants.
  [[maybe_unused]] const absl::Status told = SendText(
      EndpointFrame::kEnd,
      EndpointEndText(request.targets, report->attempts, NamedIn(request, report->corrupt)));
  return absl::OkStatus();
}

absl::Status EndpointSession::SendHeader(const EndpointRequest& request,
                                         const std::optional<RepairReport>& begun) {
  if (!begun || !begun->checksum) {
    return absl::FailedPreconditionError(
        "the survivors did not tell which checksums their store keeps");
  }
  if (!BeginStreaming()) return absl::CancelledError("the client no longer waits for the repair");
  return SendText(EndpointFrame::kHeader,
                  EndpointHeaderText(request.targets, *begun->checksum, begun->repair_id,
                                     NamedIn(request, begun->corrupt)));
}

// In rounds of one frame of each target: then a client that reads the targets evenly holds one
// frame of each at most.
absl::Status EndpointSession::SendPieces(const EndpointRequest& request, uint64_t taken,
                                         std::span<const std::span<const uint8_t>> pieces,
                                         uint64_t* sent) {
  const uint64_t end = taken + pieces[0].size();
  for (uint64_t at = taken; at < end; at += kMaxEndpointDataBytes) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const uint64_t bytes = request.targets[i].bytes;
      const uint64_t round_end = std::min({at + kMaxEndpointDataBytes, end, bytes});
      if (round_end <= at) continue;  // this block ends before
      ECPIPE_RETURN_IF_ERROR(SendFrame(EndpointFrame::kData,
                                       pieces[i].subspan(at - taken, round_end - at),
                                       static_cast<uint16_t>(i)));
      *sent += round_end - at;
    }
  }
  return absl::OkStatus();
}

bool EndpointSession::BeginWaiting(RepairSource* source, Duration timeout) {
  {
    MutexLock lock(&mutex_);
    if (phase_ != Phase::kRequest) return false;
    phase_ = Phase::kWaiting;
    source_ = source;
    deadline_ = Clock::System().Now() + timeout;
  }
  on_change_();
  return true;
}

bool EndpointSession::BeginStreaming() {
  MutexLock lock(&mutex_);
  if (phase_ != Phase::kWaiting) return false;
  phase_ = Phase::kStreaming;
  return true;
}

// A report that is cancelled on its way would leave the repair running in the coordinator.
void EndpointSession::Complete() {
  MutexLock lock(&mutex_);
  if (phase_ != Phase::kStreaming) return;
  phase_ = Phase::kComplete;
  source_ = nullptr;
}

absl::Status EndpointSession::SendFrame(EndpointFrame type, std::span<const uint8_t> payload,
                                        uint16_t target) {
  const EndpointFrameHeaderBytes header = EncodeEndpointHeader(type, payload, target);
  size_t sent = 0;
  const size_t total = header.size() + payload.size();
  while (sent < total) {
    const size_t of_header = std::min(sent, header.size());
    const iovec parts[] = {Part(std::span(header).subspan(of_header)),
                           Part(payload.subspan(sent - of_header))};
    const ssize_t count = socket_.Send(parts, 2, 0);
    if (count > 0) {
      sent += static_cast<size_t>(count);
      continue;
    }
    const TimePoint deadline = Clock::System().Now() + options_.write_timeout;
    const absl::Status failed =
        WouldBlock() ? Await(socket_.fd(), POLLOUT, deadline) : socket_.Error(errno, "");
    if (failed.ok()) continue;
    broken_ = true;
    return Annotate(failed, "send to the client");
  }
  return absl::OkStatus();
}

absl::Status EndpointSession::SendText(EndpointFrame type, const std::string& text) {
  return SendFrame(type, AsBytes(text));
}

void EndpointSession::SendError(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (phase_ == Phase::kOver || peer_gone_ || broken_) return;
    phase_ = Phase::kTellingError;
  }
  // A client that does not take it loses nothing: it knows that nothing has come.
  [[maybe_unused]] const absl::Status sent =
      SendText(EndpointFrame::kError, EndpointErrorText(AsToldToTheClient(status)));
}

void EndpointSession::EndNow(const absl::Status& why, bool tell) {
  const bool may_write = phase_ == Phase::kWaiting;
  phase_ = Phase::kOver;
  ended_because_ = why;
  if (tell && may_write) {
    const std::string text = EndpointErrorText(why);
    const EndpointFrameHeaderBytes header =
        EncodeEndpointHeader(EndpointFrame::kError, AsBytes(text));
    const iovec parts[] = {Part(header), Part(AsBytes(text))};
    // Nothing was sent before, so a socket takes this at once.
    [[maybe_unused]] const ssize_t sent = socket_.Send(parts, 2, 0);
  }
  ::shutdown(socket_.fd(), SHUT_RDWR);  // wakes who waits for the socket
  if (source_ != nullptr) source_->Cancel(why);
}

int EndpointSession::watched_fd() {
  MutexLock lock(&mutex_);
  const bool busy = phase_ == Phase::kWaiting || phase_ == Phase::kStreaming;
  return busy && !peer_gone_ ? socket_.fd() : -1;
}

std::optional<TimePoint> EndpointSession::deadline() {
  MutexLock lock(&mutex_);
  return phase_ == Phase::kWaiting ? std::optional(deadline_) : std::nullopt;
}

bool EndpointSession::asking() {
  MutexLock lock(&mutex_);
  return phase_ == Phase::kRequest;
}

void EndpointSession::PeerHasGone() {
  MutexLock lock(&mutex_);
  // An endpoint that looked a moment ago may come late.
  const bool waits_for_bytes = phase_ == Phase::kWaiting || phase_ == Phase::kStreaming;
  if (!waits_for_bytes || peer_gone_) return;
  peer_gone_ = true;
  EndNow(absl::CancelledError("the client has closed the connection"), /*tell=*/false);
}

void EndpointSession::Expire(TimePoint now) {
  MutexLock lock(&mutex_);
  if (phase_ != Phase::kWaiting || now < deadline_) return;
  EndNow(absl::DeadlineExceededError("no byte of the repair came in time"), /*tell=*/true);
}

void EndpointSession::Stop(const absl::Status& why) {
  MutexLock lock(&mutex_);
  if (phase_ != Phase::kOver) EndNow(why, /*tell=*/true);
}

}  // namespace ecpipe
