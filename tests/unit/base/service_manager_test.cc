// SPDX-License-Identifier: Apache-2.0
#include "base/process/service_manager.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::service_manager_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A socket such as a service manager has.
class Listener {
 public:
  // '@' at the beginning: in the abstract namespace.
  explicit Listener(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    bound_ = ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0;
  }
  bool bound() const { return bound_; }

  // What has come since the last call.
  std::vector<std::string> Received() {
    std::vector<std::string> messages;
    char buffer[4096];
    while (true) {
      const ssize_t bytes = ::recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (bytes < 0) return messages;
      messages.emplace_back(buffer, static_cast<size_t>(bytes));
    }
  }

 private:
  UniqueFd socket_;
  bool bound_ = false;
};

class ServiceManagerTest : public testing::Test {
 protected:
  ~ServiceManagerTest() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"}) {
      ::unsetenv(name);
    }
  }

  ServiceManager With(const std::string& socket, const std::string& watchdog_usec = "",
                      const std::string& watchdog_pid = "") {
    Set("NOTIFY_SOCKET", socket);
    Set("WATCHDOG_USEC", watchdog_usec);
    Set("WATCHDOG_PID", watchdog_pid);
    return ServiceManager::FromEnvironment();
  }

  ScratchDirectory scratch_;
  const std::string path_ = scratch_.File("notify");

 private:
  static void Set(const char* name, const std::string& value) {
    value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  }
};

TEST_F(ServiceManagerTest, EachMessageIsOneDatagram) {
  Listener listener(path_);
  ASSERT_TRUE(listener.bound());
  const ServiceManager manager = With(path_);
  manager.StillBusy(std::chrono::seconds(30), "waits for the coordinator");
  manager.Ready("serves 3 roots");
  manager.Stopping();
  EXPECT_THAT(listener.Received(),
              ElementsAre("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=waits for the coordinator",
                          "READY=1\nSTATUS=serves 3 roots", "STOPPING=1"));
}

TEST_F(ServiceManagerTest, ALineBreakInAStatusBeginsNoVariable) {
  Listener listener(path_);
  With(path_).Ready("one\nMAINPID=1");
  EXPECT_THAT(listener.Received(), ElementsAre("READY=1\nSTATUS=one MAINPID=1"));
}

TEST_F(ServiceManagerTest, TheAbstractNamespace) {
  const std::string name = "@ecpipe-test-" + std::to_string(::getpid());
  Listener listener(name);
  ASSERT_TRUE(listener.bound());
  With(name).Stopping();
  EXPECT_THAT(listener.Received(), ElementsAre("STOPPING=1"));
}

TEST_F(ServiceManagerTest, TheWatchdogIsFedOnlyWhereThereIsOne) {
  Listener listener(path_);
  With(path_).Alive();
  EXPECT_THAT(listener.Received(), IsEmpty());
  With(path_, "1000000").Alive();
  EXPECT_THAT(listener.Received(), ElementsAre("WATCHDOG=1"));
  With(path_, "1000000", std::to_string(::getpid())).Alive();
  EXPECT_THAT(listener.Received(), ElementsAre("WATCHDOG=1"));
  With(path_, "1000000", "1").Alive();  // that of another process
  EXPECT_THAT(listener.Received(), IsEmpty());
}

TEST_F(ServiceManagerTest, NobodyListens) {
  With("").Ready("serves");
  With(path_).Ready("serves");
  With("/" + std::string(200, 'a')).Ready("serves");
}

// As many messages as the socket of a manager that reads nothing holds, and one more.
TEST_F(ServiceManagerTest, AManagerThatDoesNotReadHoldsNobodyUpForLong) {
  Listener listener(path_);
  const ServiceManager manager = With(path_);
  const TimePoint began = Clock::System().Now();
  // Each message beyond what the socket holds waits for its second; the kernel's own limit is
  // 10 datagrams where nobody has raised it.
  int sent = 0;
  while (Clock::System().Now() - began < std::chrono::milliseconds(900) && sent < 100'000) {
    manager.Stopping();
    ++sent;
  }
  EXPECT_LT(Clock::System().Now() - began, std::chrono::seconds(10));
  EXPECT_FALSE(listener.Received().empty());
}

TEST_F(ServiceManagerTest, TheJournalIsTheFileThatTheEnvironmentNames) {
  const ScratchDirectory scratch;
  const UniqueFd journal(::open(scratch.File("journal").c_str(), O_CREAT | O_RDWR, 0600));
  const UniqueFd other(::open(scratch.File("other").c_str(), O_CREAT | O_RDWR, 0600));
  EXPECT_FALSE(IsJournal(journal.get()));
  struct stat file{};
  ASSERT_EQ(::fstat(journal.get(), &file), 0);
  const std::string stream = std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
  ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  EXPECT_TRUE(IsJournal(journal.get()));
  EXPECT_FALSE(IsJournal(other.get()));  // standard error was turned elsewhere
  EXPECT_FALSE(IsJournal(-1));
}

}  // namespace
}  // namespace ecpipe::service_manager_test
