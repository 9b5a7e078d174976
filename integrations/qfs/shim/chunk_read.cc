// SPDX-License-Identifier: Apache-2.0
#include "shim/chunk_read.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace ecpipe_qfs {
namespace {

// How far the thread reads ahead of the caller, which writes to disk meanwhile.
constexpr size_t kReadAheadBytes = 4u << 20;
// And in how many frames: those of a byte would take a hundred times their length.
constexpr size_t kReadAheadFrames = 1024;
// The endpoint says itself that it was too slow; only one that says nothing is given up by us.
constexpr std::chrono::milliseconds kGrace{500};
constexpr int64_t kPaceBytes = 1 << 20;  // what has to come within stall_ms

int64_t SteadyMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             SteadyClock::now().time_since_epoch())
      .count();
}

}  // namespace

ChunkRead::ChunkRead(std::shared_ptr<SharedConfig> config, const ecpipe_qfs_chunk& chunk,
                     int64_t range_bytes, WakeFn wake, void* context)
    : config_(std::move(config)),
      chunk_(chunk),
      range_bytes_(range_bytes),
      wake_(wake),
      context_(context) {}

ChunkRead::~ChunkRead() {
  Abandon();
  if (thread_.joinable()) thread_.join();
}

Failure ChunkRead::Start() {
  cancel_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancel_fd_.valid()) {
    return SystemFailure(ECPIPE_QFS_RESOURCE_EXHAUSTED, "eventfd", errno,
                         "Raise the limit of open files");
  }
  // The thread inherits the mask: the process's signals are not its business, and a SIGPIPE of its
  // own stays blocked.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Failure failed;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    failed = SystemFailure(ECPIPE_QFS_RESOURCE_EXHAUSTED, "start a thread", error.code().value(),
                           "Raise the limit of threads");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failed;
}

Failure ChunkRead::Submit(int64_t position, uint8_t* buffer, size_t bytes) {
  bool completed = false;
  {
    const std::lock_guard lock(mutex_);
    if (request_.buffer != nullptr) {
      return {ECPIPE_QFS_INVALID_ARGUMENT, "a read is under way. Poll until it has completed"};
    }
    if (position != position_) {
      return {ECPIPE_QFS_INVALID_ARGUMENT, "position " + std::to_string(position) +
                                               " is not the next one, which is " +
                                               std::to_string(position_) + ". Read in order"};
    }
    if (buffer == nullptr || bytes == 0) {
      return {ECPIPE_QFS_INVALID_ARGUMENT, "a read needs a buffer of at least a byte"};
    }
    const auto left = static_cast<size_t>(range_bytes_ - position_);
    request_ = Request{buffer, std::min(bytes, left), 0, false};
    completed = Serve();
    changed_.notify_all();
  }
  if (completed) Wake();
  return {};
}

Failure ChunkRead::Poll(size_t* got, bool* at_end) {
  const std::lock_guard lock(mutex_);
  *got = 0;
  *at_end = false;
  if (request_.buffer != nullptr) return {ECPIPE_QFS_PENDING, ""};
  if (request_.failed) return failure_;
  *got = request_.filled;
  *at_end = ended_ && position_ == range_bytes_;
  return {};
}

void ChunkRead::Cancel() {
  if (Abandon()) Wake();
}

bool ChunkRead::Abandon() {
  const std::lock_guard lock(mutex_);
  if (cancelled_) return false;
  cancelled_ = true;
  const bool served = Serve();  // the end may have come this moment
  if (failure_.ok() && !(ended_ && position_ == range_bytes_)) {
    failure_ = {ECPIPE_QFS_CANCELLED, "the chunk's reader cancelled the repair"};
  }
  held_.clear();
  held_bytes_ = 0;
  const bool waiting = request_.buffer != nullptr;
  if (waiting) request_.failed = true;
  request_.buffer = nullptr;
  changed_.notify_all();
  const uint64_t one = 1;
  // It cannot fail: nobody takes from the counter, and it is written once.
  [[maybe_unused]] const ssize_t told = ::write(cancel_fd_.get(), &one, sizeof one);
  return served || waiting;
}

bool ChunkRead::Serve() {
  if (request_.buffer == nullptr) return false;
  while (request_.filled < request_.wanted && !held_.empty()) {
    Piece& piece = held_.front();
    const size_t step =
        std::min(piece.bytes.size() - piece.taken, request_.wanted - request_.filled);
    std::memcpy(request_.buffer + request_.filled, piece.bytes.data() + piece.taken, step);
    request_.filled += step;
    piece.taken += step;
    held_bytes_ -= step;
    if (piece.taken == piece.bytes.size()) held_.pop_front();
  }
  const bool full = request_.filled == request_.wanted;
  const bool last = position_ + static_cast<int64_t>(request_.wanted) == range_bytes_;
  if (full && (!last || ended_)) {
    position_ += static_cast<int64_t>(request_.filled);
  } else if (!failure_.ok()) {
    request_.failed = true;
    // Nothing is held any more: the read, which does not count, has taken it all.
  } else {
    return false;
  }
  request_.buffer = nullptr;
  return true;
}

void ChunkRead::Wake() const {
  if (wake_ != nullptr) wake_(context_);
}

void ChunkRead::Run() {
  Failure failure;
  try {
    failure = Transfer();
  } catch (const std::bad_alloc&) {
    failure.code = ECPIPE_QFS_RESOURCE_EXHAUSTED;
    failure.message = "out of memory";  // so short that it needs none
  } catch (...) {
    failure.code = ECPIPE_QFS_INTERNAL;
    failure.message = "an exception";
  }
  Finish(std::move(failure));
}

void ChunkRead::Finish(Failure failure) {
  bool completed = false;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.ok() && !failure.ok()) failure_ = std::move(failure);
    completed = Serve();
  }
  if (completed) Wake();
}

Failure ChunkRead::Transfer() {
  const Settings& settings = config_->settings;
  if (SteadyMillis() < config_->not_before_ms) {
    return {ECPIPE_QFS_UNAVAILABLE, settings.endpoint +
                                        " did not answer a short time ago and is not asked for "
                                        "retry-ms. See whether ecpipe-helper is well"};
  }
  Connection connection(settings, cancel_fd_.get());
  const auto timeout = std::chrono::milliseconds(settings.timeout_ms) + kGrace;
  Failure failed = AskForChunk(&connection, SteadyClock::now() + timeout);
  if (failed.code == ECPIPE_QFS_DEADLINE_EXCEEDED || failed.code == ECPIPE_QFS_UNAVAILABLE) {
    config_->not_before_ms = SteadyMillis() + settings.retry_ms;
  } else if (failed.ok()) {
    config_->not_before_ms = 0;  // it answers, whatever became of another request
  }
  return failed.ok() ? TakeFrames(&connection) : failed;
}

Failure ChunkRead::AskForChunk(Connection* connection, SteadyClock::time_point deadline) {
  const std::string request = RepairText(chunk_, range_bytes_, config_->settings);
  const auto* payload = reinterpret_cast<const uint8_t*>(request.data());
  const FrameHeaderBytes header = EncodeFrameHeader(FrameType::kRepair, payload, request.size());
  Failure failed = connection->Open(deadline);
  if (failed.ok()) failed = connection->Write(header.data(), header.size(), deadline);
  if (failed.ok()) failed = connection->Write(payload, request.size(), deadline);
  FrameHeaderBytes bytes{};
  FrameHeader answer;
  std::string text;
  if (failed.ok()) failed = connection->ReadFully(bytes.data(), bytes.size(), deadline);
  if (failed.ok()) failed = DecodeFrameHeader(bytes, &answer);
  if (!failed.ok()) return failed;
  if (answer.type != FrameType::kHeader && answer.type != FrameType::kError) {
    return {ECPIPE_QFS_DATA_LOSS,
            "the endpoint sent bytes before their HEADER. Update ecpipe-helper"};
  }
  failed = ReadText(connection, answer, deadline, &text);
  if (failed.ok() && answer.type == FrameType::kError) return FailureOfError(text);
  if (failed.ok() && LineValue(text, "bytes") != std::to_string(range_bytes_)) {
    return {ECPIPE_QFS_DATA_LOSS,
            "the endpoint announced " + LineValue(text, "bytes").value_or("no number of") +
                " bytes, not " + std::to_string(range_bytes_) + ". Update ecpipe-helper"};
  }
  return failed;
}

Failure ChunkRead::ReadText(Connection* connection, const FrameHeader& header,
                            SteadyClock::time_point deadline, std::string* text) {
  text->resize(header.bytes);
  auto* bytes = reinterpret_cast<uint8_t*>(text->data());
  Failure failed = connection->ReadFully(bytes, text->size(), deadline);
  return failed.ok() ? CheckPayload(header, bytes) : failed;
}

bool ChunkRead::AwaitRoom() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return cancelled_ ||
           (held_bytes_ + kMaxDataBytes <= kReadAheadBytes && held_.size() < kReadAheadFrames);
  });
  return !cancelled_;
}

Failure ChunkRead::TakeFrames(Connection* connection) {
  const auto stall = std::chrono::milliseconds(config_->settings.stall_ms);
  SteadyClock::time_point deadline = SteadyClock::now() + stall;
  int64_t paced = 0;
  while (true) {
    const SteadyClock::time_point waited_from = SteadyClock::now();
    if (!AwaitRoom()) return {ECPIPE_QFS_CANCELLED, "the chunk's reader cancelled the repair"};
    // The caller's own slowness is not the endpoint's.
    deadline += SteadyClock::now() - waited_from;
    FrameHeaderBytes bytes{};
    FrameHeader header;
    Failure failed = connection->ReadFully(bytes.data(), bytes.size(), deadline);
    if (failed.ok()) failed = DecodeFrameHeader(bytes, &header);
    if (!failed.ok()) return failed;
    if (header.type == FrameType::kData) {
      failed = TakeData(connection, header, deadline);
      if (!failed.ok()) return failed;
      paced += header.bytes;
      if (paced >= kPaceBytes) deadline = SteadyClock::now() + stall;
      if (paced >= kPaceBytes) paced = 0;
      continue;
    }
    std::string text;
    failed = ReadText(connection, header, deadline, &text);
    if (!failed.ok()) return failed;
    if (header.type == FrameType::kError) return FailureOfError(text);
    if (header.type == FrameType::kEnd) return TakeEnd(text);
    return {ECPIPE_QFS_DATA_LOSS, "the endpoint sent two HEADERs. Update ecpipe-helper"};
  }
}

Failure ChunkRead::TakeData(Connection* connection, const FrameHeader& header,
                            SteadyClock::time_point deadline) {
  // Only this thread changes it.
  if (header.bytes == 0 || header.bytes > range_bytes_ - received_) {
    return {ECPIPE_QFS_DATA_LOSS, "the endpoint sent a frame of " + std::to_string(header.bytes) +
                                      " bytes where " + std::to_string(range_bytes_ - received_) +
                                      " were missing. Update ecpipe-helper"};
  }
  Piece piece{std::vector<uint8_t>(header.bytes), 0};
  Failure failed = connection->ReadFully(piece.bytes.data(), piece.bytes.size(), deadline);
  if (failed.ok()) failed = CheckPayload(header, piece.bytes.data());
  if (!failed.ok()) return failed;
  bool completed = false;
  {
    const std::lock_guard lock(mutex_);
    received_ += header.bytes;
    if (cancelled_) return failure_;
    held_bytes_ += piece.bytes.size();
    held_.push_back(std::move(piece));
    completed = Serve();
  }
  if (completed) Wake();
  return {};
}

Failure ChunkRead::TakeEnd(const std::string& text) {
  const std::string all = std::to_string(range_bytes_);
  if (received_ != range_bytes_ || LineValue(text, "bytes") != all) {
    return {ECPIPE_QFS_DATA_LOSS, "the endpoint ended after " + std::to_string(received_) + " of " +
                                      all + " bytes. The log of ecpipe-helper says why"};
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;  // Finish() serves
  return {};
}

}  // namespace ecpipe_qfs
