// SPDX-License-Identifier: Apache-2.0
#include "rpc/audit_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/process/blocked_signals.h"
#include "base/process/log_line.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/unique_fd.h"

namespace ecpipe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr mode_t kFileMode = 0640;
constexpr milliseconds kRetryEvery{100};  // for a pipe that is full, or a disk
constexpr seconds kLookEvery{1};          // whether the file was renamed; to tell of left-out lines

}  // namespace

class AuditFile::Writer {
 public:
  Writer(std::string path, Options options) : path_(std::move(path)), options_(options) {}

  void Run();
  absl::Status WaitUntilOpen();
  // Whether the thread has ended: one that hangs in the file is left to itself.
  bool Stop();

  void Append(std::string line);
  void LeaveOut();
  uint64_t left_out();
  uint64_t reopen_failures() const { return reopen_failures_; }

 private:
  // What the thread does next. Empty: it ends.
  std::optional<std::string> Next();
  // Until it is written, or the end has come.
  bool Write(const std::string& line);
  // Makes file_ the one that has the path now, or leaves it. Returns an errno if there is none.
  int Reopen();
  void NotReopened(int error);
  bool IsPipe() const;
  void Failed(const absl::Status& status);
  void Works();
  // Waits, and says whether there is still time.
  bool PauseBeforeRetry();

  const std::string path_;
  const Options options_;

  // Of the thread alone.
  UniqueFd file_;
  TimePoint looked_{};  // when the path was looked up
  TimePoint told_{};    // when left-out lines were told of
  std::optional<TimePoint> failing_since_;
  bool told_failure_ = false;
  bool told_not_reopened_ = false;
  std::atomic<uint64_t> reopen_failures_{0};  // others read it

  Mutex mutex_;
  CondVar changed_;
  std::optional<absl::Status> opened_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t writing_ ABSL_GUARDED_BY(mutex_) = 0;     // lines that the thread has taken
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;  // in all
  uint64_t untold_ ABSL_GUARDED_BY(mutex_) = 0;    // of these
  std::optional<TimePoint> stop_by_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

int AuditFile::Writer::Reopen() {
  struct stat ours{};
  struct stat named{};
  looked_ = Clock::System().Now();
  const bool same = file_.valid() && ::fstat(file_.get(), &ours) == 0 &&
                    ::stat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
                    ours.st_dev == named.st_dev;
  if (same) return 0;
  // Without O_NONBLOCK a pipe that has no reader would hold up the start.
  UniqueFd file(::open(path_.c_str(),
                       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                       kFileMode));
  const int error = file.valid() ? 0 : errno;
  if (error != 0 && !file_.valid()) return error;
  if (error != 0) {  // the one before is better than none
    NotReopened(error);
    return 0;
  }
  file_ = std::move(file);
  told_not_reopened_ = false;
  return 0;
}

void AuditFile::Writer::NotReopened(int error) {
  ++reopen_failures_;
  if (std::exchange(told_not_reopened_, true)) return;
  Log(LogLevel::kWarning, "audit.not_reopened",
      {{"file", path_}, {"status", StatusText(ErrnoStatus(error, "open the new one"))}});
}

bool AuditFile::Writer::IsPipe() const {
  struct stat named{};
  return ::stat(path_.c_str(), &named) == 0 && S_ISFIFO(named.st_mode);
}

void AuditFile::Writer::Run() {
  const int opened = Reopen();
  const bool fits = opened == 0 || (opened == ENXIO && IsPipe());
  {
    MutexLock lock(&mutex_);
    opened_ = fits ? absl::OkStatus()
                   : absl::UnavailableError(ErrnoStatus(opened, "open " + path_).message());
    ended_ = !fits;
    changed_.NotifyAll();
    if (ended_) return;
  }
  while (const std::optional<std::string> line = Next()) {
    const bool written = Write(*line);
    MutexLock lock(&mutex_);
    if (written) writing_ = 0;
  }
  MutexLock lock(&mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

std::optional<std::string> AuditFile::Writer::Next() {
  MutexLock lock(&mutex_);
  while (true) {
    const TimePoint now = Clock::System().Now();
    if (stop_by_ && (now >= *stop_by_ || writing_ > 0)) return std::nullopt;
    if (!lines_.empty()) {
      std::string line = std::move(lines_.front());
      lines_.pop_front();
      queued_bytes_ -= line.size();
      writing_ = 1;
      return line;
    }
    if (untold_ > 0 && (stop_by_ || now >= told_ + kLookEvery)) {
      told_ = now;
      writing_ = untold_;
      return LogLine("", "", {{"left_out", std::to_string(std::exchange(untold_, 0))}});
    }
    if (stop_by_) return std::nullopt;
    if (untold_ > 0) {
      changed_.WaitUntil(lock, told_ + kLookEvery);
    } else {
      changed_.Wait(lock);
    }
  }
}

bool AuditFile::Writer::Write(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    // In the middle of a line only a file that does not take the rest is left for another one.
    const bool may_leave = rest.size() == line.size() || failing_since_;
    const bool look =
        !file_.valid() || (may_leave && Clock::System().Now() >= looked_ + kLookEvery);
    const int before = file_.get();
    const int error = look ? Reopen() : 0;
    if (file_.get() != before) rest = line;
    if (error != 0) {
      Failed(ErrnoStatus(error, "open it"));
    } else {
      // One write for a line: other processes may append to the file.
      const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
      if (written > 0) {
        rest.remove_prefix(static_cast<size_t>(written));
        continue;
      }
      const int failure = errno;
      if (failure == EPIPE) file_.reset();
      Failed(ErrnoStatus(failure, "append a line"));
    }
    if (!PauseBeforeRetry()) return false;
  }
  Works();
  return true;
}

bool AuditFile::Writer::PauseBeforeRetry() {
  const TimePoint until = Clock::System().Now() + kRetryEvery;
  MutexLock lock(&mutex_);
  while (Clock::System().Now() < until) {
    if (stop_by_ && Clock::System().Now() >= *stop_by_) return false;
    changed_.WaitUntil(lock, stop_by_ ? std::min(until, *stop_by_) : until);
  }
  return true;
}

void AuditFile::Writer::Failed(const absl::Status& status) {
  const TimePoint now = Clock::System().Now();
  if (!failing_since_) failing_since_ = now;
  // A pipe that is full for a moment is no failure.
  if (now < *failing_since_ + kLookEvery || std::exchange(told_failure_, true)) return;
  Log(LogLevel::kError, "audit.failed", {{"file", path_}, {"status", StatusText(status)}});
}

void AuditFile::Writer::Works() {
  failing_since_.reset();
  if (std::exchange(told_failure_, false)) Log(LogLevel::kInfo, "audit.works", {{"file", path_}});
}

absl::Status AuditFile::Writer::WaitUntilOpen() {
  const TimePoint deadline = Clock::System().Now() + options_.wait_for_open;
  MutexLock lock(&mutex_);
  while (!opened_) {
    if (changed_.WaitUntil(lock, deadline)) continue;
    if (opened_) break;
    return absl::DeadlineExceededError("open " + path_ + ": no answer within " +
                                       std::to_string(options_.wait_for_open.count()) + " ms");
  }
  return *opened_;
}

bool AuditFile::Writer::Stop() {
  const TimePoint stop_by = Clock::System().Now() + options_.wait_at_end;
  uint64_t lost = 0;
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    stop_by_ = stop_by;
    changed_.NotifyAll();
    // The thread itself gives up at that time, unless the file hangs.
    while (!ended_ && changed_.WaitUntil(lock, stop_by + options_.wait_at_end)) {
    }
    ended = ended_;
    lost = lines_.size() + writing_ + untold_;
  }
  if (lost > 0) {
    Log(LogLevel::kError, "audit.lost", {{"file", path_}, {"lines", std::to_string(lost)}});
  }
  return ended;
}

void AuditFile::Writer::Append(std::string line) {
  MutexLock lock(&mutex_);
  if (queued_bytes_ + line.size() > options_.most_queued_bytes) {
    ++left_out_;
    ++untold_;
  } else {
    queued_bytes_ += line.size();
    lines_.push_back(std::move(line));
  }
  changed_.NotifyAll();
}

void AuditFile::Writer::LeaveOut() {
  MutexLock lock(&mutex_);
  ++left_out_;
  if (++untold_ == 1) changed_.NotifyAll();
}

uint64_t AuditFile::Writer::left_out() {
  MutexLock lock(&mutex_);
  return left_out_;
}

absl::StatusOr<std::unique_ptr<AuditFile>> AuditFile::Open(const std::string& path,
                                                           Options options) {
  const auto writer = std::make_shared<Writer>(path, options);
  Thread thread;
  {
    const BlockedSignals blocked;  // SIGPIPE too: a reader of a pipe may go
    ECPIPE_ASSIGN_OR_RETURN(thread, Thread::Start([writer] { writer->Run(); }));
  }
  const absl::Status opened = writer->WaitUntilOpen();
  if (opened.ok()) return std::unique_ptr<AuditFile>(new AuditFile(writer, std::move(thread)));
  absl::IsDeadlineExceeded(opened) ? thread.detach() : thread.join();
  return opened;
}

AuditFile::~AuditFile() { writer_->Stop() ? thread_.join() : thread_.detach(); }

void AuditFile::Append(std::string line) { writer_->Append(std::move(line)); }
void AuditFile::LeaveOut() { writer_->LeaveOut(); }
uint64_t AuditFile::left_out() const { return writer_->left_out(); }
uint64_t AuditFile::reopen_failures() const { return writer_->reopen_failures(); }

}  // namespace ecpipe
