// SPDX-License-Identifier: Apache-2.0
#include "base/process/service_manager.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/process/log.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace ecpipe {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A status is one line of the message; a line break in it would begin another variable.
std::string StatusLine(std::string status) {
  std::replace(status.begin(), status.end(), '\n', ' ');
  return "\nSTATUS=" + status;
}

}  // namespace

bool IsJournal(int file) {
  struct stat opened{};
  if (::fstat(file, &opened) != 0) return false;
  return Variable("JOURNAL_STREAM") ==
         std::to_string(opened.st_dev) + ":" + std::to_string(opened.st_ino);
}

const ServiceManager& ServiceManager::OfThisProcess() {
  static const ServiceManager manager = FromEnvironment();
  return manager;
}

ServiceManager ServiceManager::FromEnvironment() {
  ServiceManager manager;
  manager.socket_ = Variable("NOTIFY_SOCKET");
  // A child inherits the variables of a daemon that is watched, and is not the one that is meant.
  const std::string watched_pid = Variable("WATCHDOG_PID");
  manager.watched_ = !Variable("WATCHDOG_USEC").empty() &&
                     (watched_pid.empty() || watched_pid == std::to_string(::getpid()));
  return manager;
}

void ServiceManager::Ready(const std::string& status) const {
  Send("READY=1" + StatusLine(status));
}

void ServiceManager::StillBusy(Duration extension, const std::string& status) const {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(extension).count();
  Send("EXTEND_TIMEOUT_USEC=" + std::to_string(micros) + StatusLine(status));
}

void ServiceManager::Alive() const {
  if (watched_) Send("WATCHDOG=1");
}

void ServiceManager::Stopping() const { Send("STOPPING=1"); }

void ServiceManager::Send(const std::string& message) const {
  sockaddr_un address{};
  if (socket_.empty()) return;
  const auto failed = [this](int error) {
    Log(LogLevel::kWarning, "service_manager.unreachable",
        {{"socket", socket_}, {"status", StatusText(ErrnoStatus(error, "send"))}});
  };
  if (socket_.size() >= sizeof(address.sun_path)) return failed(ENAMETOOLONG);
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') address.sun_path[0] = '\0';
  const auto address_bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // A manager that does not read must not hold up the loop that tells it something.
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  if (!socket.valid() ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0) {
    return failed(errno);
  }
  if (::sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), address_bytes) < 0) {
    failed(errno);
  }
}

}  // namespace ecpipe
