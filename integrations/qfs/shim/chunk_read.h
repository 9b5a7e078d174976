// SPDX-License-Identifier: Apache-2.0
// The read of one chunk: a thread that takes frames from the endpoint, and the caller's reads that
// take bytes from it. ecpipe_qfs.h has the contract.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "shim/connection.h"
#include "shim/failure.h"
#include "shim/frame.h"
#include "shim/settings.h"

namespace ecpipe_qfs {

// What all reads of a configuration share.
struct SharedConfig {
  Settings settings;
  // An endpoint that did not answer is not asked before this time of the steady clock, in ms, so
  // that each of many recoveries does not wait for its own timeout.
  std::atomic<int64_t> not_before_ms{0};
};

class ChunkRead {
 public:
  using WakeFn = void (*)(void* context);

  // `range_bytes` as RangeBytes() says.
  ChunkRead(std::shared_ptr<SharedConfig> config, const ecpipe_qfs_chunk& chunk,
            int64_t range_bytes, WakeFn wake, void* context);
  ~ChunkRead();
  ChunkRead(const ChunkRead&) = delete;
  ChunkRead& operator=(const ChunkRead&) = delete;

  // Once. RESOURCE_EXHAUSTED: no descriptor or no thread; the object is of no use then.
  Failure Start();

  Failure Submit(int64_t position, uint8_t* buffer, size_t bytes);
  // PENDING: the message is empty.
  Failure Poll(size_t* got, bool* at_end);
  void Cancel();

 private:
  // What a read has come to.
  struct Request {
    uint8_t* buffer = nullptr;  // nullptr: completed
    size_t wanted = 0;          // bytes, at most up to the end of the range
    size_t filled = 0;
    bool failed = false;  // with failure_
  };
  struct Piece {
    std::vector<uint8_t> bytes;
    size_t taken = 0;
  };

  // The thread.
  void Run();
  Failure Transfer();
  Failure AskForChunk(Connection* connection, SteadyClock::time_point deadline);
  Failure TakeFrames(Connection* connection);
  Failure TakeData(Connection* connection, const FrameHeader& header,
                   SteadyClock::time_point deadline);
  Failure TakeEnd(const std::string& text);
  Failure ReadText(Connection* connection, const FrameHeader& header,
                   SteadyClock::time_point deadline, std::string* text);
  // Waits until there is room for another frame; false: cancelled.
  bool AwaitRoom();
  void Finish(Failure failure);

  // Ends everything without a word to the caller; whether a read was under way.
  bool Abandon();

  // Moves bytes to the request and completes it where it can be; whether it has been.
  bool Serve();
  void Wake() const;

  const std::shared_ptr<SharedConfig> config_;
  const ecpipe_qfs_chunk chunk_;
  const int64_t range_bytes_;
  const WakeFn wake_;
  void* const context_;
  ecpipe::UniqueFd cancel_fd_;  // readable once cancelled
  std::thread thread_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  Request request_;
  std::deque<Piece> held_;
  size_t held_bytes_ = 0;
  int64_t received_ = 0;  // of the range, by the thread
  int64_t position_ = 0;  // of the range, by completed reads
  bool ended_ = false;    // END has come
  bool cancelled_ = false;
  Failure failure_;  // the first; it stays
};

}  // namespace ecpipe_qfs
