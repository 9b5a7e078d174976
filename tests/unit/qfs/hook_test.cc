// SPDX-License-Identifier: Apache-2.0
// The chunkserver's side of the hook, in doubles of the three things of QFS that it meets: the
// event loop, its timers, and the replicator that reads, writes and is cancelled.
#include "hook/ecpipe_ext_reader.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "unit/qfs/shim_fixture.h"

namespace ecpipe_qfs::hook_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMib = 1 << 20;
constexpr int64_t kChunkLimit = int64_t{64} << 20;

class Timer {
 public:
  virtual ~Timer() = default;
  virtual void Timeout() = 0;
};

// One thread runs its loop; any thread may wake it.
class Loop {
 public:
  void RegisterTimeoutHandler(Timer* timer) { timers_.push_back(timer); }
  void UnRegisterTimeoutHandler(Timer* timer) { std::erase(timers_, timer); }
  void Wakeup() {
    const std::lock_guard lock(mutex_);
    ++wakes_;
    changed_.notify_all();
  }
  // Until `done` holds; false: nothing woke it for too long.
  template <typename Done>
  bool Run(const Done& done) {
    while (!done()) {
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, kPrompt, [this] { return wakes_ > 0; })) return false;
        --wakes_;
      }
      for (Timer* timer : std::vector<Timer*>(timers_)) {
        if (std::count(timers_.begin(), timers_.end(), timer) > 0) timer->Timeout();
      }
    }
    return true;
  }
  size_t timers() const { return timers_.size(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int wakes_ = 0;
  std::vector<Timer*> timers_;
};

using Reader = ExtReader<Loop, Timer>;

// Reads a MiB after the other, from ECPipe or by itself, and writes it.
class Replicator final : private Reader::Owner {
 public:
  Replicator(Loop* loop, std::string content)
      : content_(std::move(content)), ext_reader_(*loop, *this) {}

  void HandleRead() {
    ASSERT_FALSE(in_flight_);
    in_flight_ = true;
    const ecpipe_qfs_chunk chunk = ChunkOfBytes(static_cast<int64_t>(content_.size()));
    if (ext_reader_.Read(chunk, offset(), kMib)) return;
    native_from_ = std::min(native_from_, offset());
    const size_t at = std::min(written_.size(), content_.size());
    Done(content_.substr(at, kMib));
  }
  void HandleCancel() {
    ext_reader_.Stop();
    cancelled_ = true;
  }

  int64_t offset() const { return static_cast<int64_t>(written_.size()); }
  const std::string& written() const { return written_; }
  bool finished() const { return finished_; }
  // Where QFS's own recovery began; the chunk's limit: nowhere.
  int64_t native_from() const { return native_from_; }
  const std::string& log() const { return log_; }
  // Destroys the object at its end, as an operation that has been answered.
  std::unique_ptr<Replicator>* delete_at_end = nullptr;

 private:
  void ExtReadDone(const char* bytes, int size, const char* failure) override {
    EXPECT_FALSE(cancelled_);
    EXPECT_TRUE(in_flight_);
    if (failure != nullptr) {
      log_ += failure;
      in_flight_ = false;
      HandleRead();
      return;
    }
    Done(std::string(bytes, static_cast<size_t>(size)));
  }
  void Done(const std::string& bytes) {
    in_flight_ = false;
    const bool end = static_cast<int64_t>(bytes.size()) < kMib ||
                     offset() + static_cast<int64_t>(bytes.size()) >= kChunkLimit;
    written_ += bytes;
    finished_ = end;
    if (!end) return HandleRead();
    if (delete_at_end != nullptr) delete_at_end->reset();
  }

  const std::string content_;
  Reader ext_reader_;
  std::string written_;
  std::string log_;
  bool in_flight_ = false;
  bool finished_ = false;
  bool cancelled_ = false;
  int64_t native_from_ = kChunkLimit;
};

class Hook : public ::testing::Test {
 protected:
  ~Hook() override { ExtLibrary::Set("", ""); }

  // What SetParameters() does.
  std::string Configure(const std::string& endpoint, const std::string& more = "") {
    const ConfigFile file("endpoint " + endpoint + "\n" + more);
    return ExtLibrary::Set(ECPIPE_QFS_LIBRARY, file.path());
  }

  Loop loop_;
};

TEST_F(Hook, AChunkComesThroughEcpipe) {
  for (const int64_t bytes : {3 * kMib + 17, 3 * kMib, kMib - 1}) {
    const std::string content = Content(bytes);
    FakeEndpoint endpoint(Serves(content));
    EXPECT_THAT(Configure(endpoint.address()), HasSubstr("external recovery by"));
    Replicator replicator(&loop_, content);
    replicator.HandleRead();
    ASSERT_TRUE(loop_.Run([&] { return replicator.finished(); }));
    EXPECT_TRUE(replicator.written() == content);
    EXPECT_EQ(replicator.native_from(), kChunkLimit);
    EXPECT_EQ(replicator.log(), "");
  }
  EXPECT_EQ(loop_.timers(), 0u);
}

TEST_F(Hook, AFailureIsFollowedByNativeRecoveryAtTheSameOffset) {
  const std::string content = Content(5 * kMib + 3);
  const auto bytes = static_cast<int64_t>(content.size());
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    connection.SendHeader(bytes);
    // One MiB more than is used is wrong: had it been taken, the chunk would show it.
    connection.SendData(content.substr(0, 2 * kMib) + std::string(kMib / 2, 'x'));
    connection.Send(FrameType::kError, "code ABORTED\nmessage helpers died\n");
  });
  Configure(endpoint.address());
  Replicator replicator(&loop_, content);
  replicator.HandleRead();
  ASSERT_TRUE(loop_.Run([&] { return replicator.finished(); }));
  EXPECT_TRUE(replicator.written() == content);
  EXPECT_EQ(replicator.native_from(), 2 * kMib);
  EXPECT_THAT(replicator.log(), HasSubstr("helpers died"));
  EXPECT_EQ(endpoint.connections(), 1);
  EXPECT_EQ(loop_.timers(), 0u);
}

TEST_F(Hook, WithoutAnEndpointQfsRecoversAlone) {
  const std::string content = Content(2 * kMib + 5);
  Configure("unix:/tmp/ecpipe-qfs-nobody.sock");
  Replicator replicator(&loop_, content);
  replicator.HandleRead();
  ASSERT_TRUE(loop_.Run([&] { return replicator.finished(); }));
  EXPECT_TRUE(replicator.written() == content);
  EXPECT_EQ(replicator.native_from(), 0);
  EXPECT_THAT(replicator.log(), HasSubstr("ecpipe-helper"));
}

TEST_F(Hook, AChunkThatTheLibraryRefusesIsQfss) {
  Configure("unix:/tmp/ecpipe-qfs-nobody.sock");
  Replicator replicator(&loop_, "");  // a chunk without bytes
  replicator.HandleRead();
  ASSERT_TRUE(loop_.Run([&] { return replicator.finished(); }));
  EXPECT_EQ(replicator.native_from(), 0);
  EXPECT_THAT(replicator.log(), HasSubstr("QFS has to recover"));
}

TEST_F(Hook, OffIsOffAndSaysWhy) {
  const std::string content = Content(kMib + 5);
  const ConfigFile good("endpoint unix:/tmp/a\n");
  const ConfigFile bad("endpoint nonsense\n");
  const std::string library = ECPIPE_QFS_LIBRARY;
  EXPECT_EQ(ExtLibrary::Set("", ""), "external recovery is off");
  EXPECT_THAT(ExtLibrary::Set("/nowhere/libecpipe_qfs.so", good.path()), HasSubstr("/nowhere"));
  EXPECT_THAT(ExtLibrary::Set("libc.so.6", good.path()), HasSubstr("another version"));
  EXPECT_THAT(ExtLibrary::Set(library, bad.path()), HasSubstr(":1: "));
  EXPECT_THAT(ExtLibrary::Set(library, "/nowhere/qfs-shim.conf"), HasSubstr("/nowhere"));
  Replicator replicator(&loop_, content);
  replicator.HandleRead();
  EXPECT_TRUE(replicator.finished());
  EXPECT_EQ(replicator.native_from(), 0);
  EXPECT_EQ(loop_.timers(), 0u);
}

TEST_F(Hook, ARecoveryKeepsWhatItBeganWith) {
  const std::string content = Content(3 * kMib + 1);
  FakeEndpoint endpoint(Serves(content));
  Configure(endpoint.address());
  Replicator ours(&loop_, content);
  ours.HandleRead();
  EXPECT_EQ(ExtLibrary::Set("", ""), "external recovery is off");
  ASSERT_TRUE(loop_.Run([&] { return ours.finished(); }));
  EXPECT_EQ(ours.native_from(), kChunkLimit);
}

TEST_F(Hook, ACancelledRecoveryHearsNothingMore) {
  FakeEndpoint endpoint([](FakeConnection& connection) {
    connection.ReadRequest();
    connection.AwaitClose();
  });
  Configure(endpoint.address(), "timeout-ms 600000\n");
  Replicator replicator(&loop_, Content(kMib));
  replicator.HandleRead();
  endpoint.AwaitConnections(1);
  const auto begun = std::chrono::steady_clock::now();
  replicator.HandleCancel();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPrompt);
  EXPECT_EQ(loop_.timers(), 0u);
  loop_.Wakeup();
  bool once = false;
  EXPECT_TRUE(loop_.Run([&] { return std::exchange(once, true); }));
  EXPECT_FALSE(replicator.finished());
}

TEST_F(Hook, TheOwnerMayGoWhenItsReadIsDone) {
  const std::string content = Content(kMib + 9);
  FakeEndpoint endpoint(Serves(content));
  Configure(endpoint.address());
  auto replicator = std::make_unique<Replicator>(&loop_, content);
  replicator->delete_at_end = &replicator;
  replicator->HandleRead();
  ASSERT_TRUE(loop_.Run([&] { return replicator == nullptr; }));
  EXPECT_EQ(loop_.timers(), 0u);
}

TEST_F(Hook, SeveralInOneLoop) {
  FakeEndpoint endpoint([](FakeConnection& connection) {
    const std::string request = connection.ReadRequest();
    const int64_t bytes = std::stoll(*LineValue(request, "bytes"));
    connection.SendHeader(bytes);
    connection.SendData(Content(bytes));
    connection.SendEnd(bytes);
  });
  Configure(endpoint.address());
  std::vector<std::unique_ptr<Replicator>> replicators;
  for (int i = 0; i < 6; ++i) {
    replicators.push_back(std::make_unique<Replicator>(&loop_, Content(2 * kMib + i)));
    replicators.back()->HandleRead();
  }
  ASSERT_TRUE(loop_.Run([&] {
    return std::all_of(replicators.begin(), replicators.end(),
                       [](const auto& replicator) { return replicator->finished(); });
  }));
  for (size_t i = 0; i < replicators.size(); ++i) {
    EXPECT_TRUE(replicators[i]->written() == Content(2 * kMib + static_cast<int64_t>(i)));
    EXPECT_EQ(replicators[i]->native_from(), kChunkLimit);
  }
}

}  // namespace
}  // namespace ecpipe_qfs::hook_test
