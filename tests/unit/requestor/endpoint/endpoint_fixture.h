// SPDX-License-Identifier: Apache-2.0
// An endpoint whose repairs a test plays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "requestor/endpoint/endpoint.h"
#include "unit/coordinator/store/scratch_directory.h"
#include "unit/requestor/endpoint/endpoint_client.h"

namespace ecpipe {

// 3 blocks of 100,000 bytes and 2 parities.
inline std::string RequestOf(const std::string& targets, const std::string& bytes,
                      const std::string& more = "") {
  return EndpointClient::FrameOf(
      1,
      "store hdfs\npool BP-1\ngroup -16\nstamp 7\ngroup-bytes 300000\ncodec rs\ndata 3\n"
      "parity 2\ncell 100000\noffset 0\nsource 0 dn-0\nsource 4 dn-4\ntarget " +
          targets + "\nbytes " + bytes + "\n" + more);
}

inline std::string Request(uint64_t bytes, const std::string& more = "") {
  return RequestOf("1", std::to_string(bytes), more);
}

// What the sources of a test do, and what became of them.
struct Script {
  uint64_t bytes = 1000;  // of what is asked for, this many come
  size_t step = 100;      // at once
  absl::Status end;       // after them
  bool throws = false;    // instead
  bool hangs = false;     // until it is cancelled, before the first byte
  bool lingers = false;   // until it is cancelled or released, after the last byte
  std::vector<StripeFacts::Source> corrupt_at_first;  // known before the first byte
  std::vector<StripeFacts::Source> corrupt_at_end;
  std::optional<ChecksumKind> checksum = ChecksumKind{};

  Mutex mutex;
  CondVar changed;
  int cancelled ABSL_GUARDED_BY(mutex) = 0;
  int ended ABSL_GUARDED_BY(mutex) = 0;
  bool released ABSL_GUARDED_BY(mutex) = false;

  template <typename Done>
  bool AwaitUntil(const Done& done) {
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
    MutexLock lock(&mutex);
    while (!done() && changed.WaitUntil(lock, give_up)) {
    }
    return done();
  }
};

class ScriptedSource : public RepairSource {
 public:
  explicit ScriptedSource(Script* script) : script_(script) {}

  absl::StatusOr<RepairReport> Read(const EndpointRequest& request, const PiecesSink& sink,
                                    const BegunFn& begun) override {
    absl::Status status = Play(request.targets.size(), sink, begun);
    {
      MutexLock lock(&script_->mutex);
      ++script_->ended;
    }
    script_->changed.NotifyAll();
    if (!status.ok()) return status;
    RepairReport report;
    report.attempts = 2;
    report.corrupt = script_->corrupt_at_end;
    return report;
  }

  void Cancel(const absl::Status&) override {
    {
      MutexLock lock(&script_->mutex);
      ++script_->cancelled;
    }
    script_->changed.NotifyAll();
  }

 private:
  // Byte x of target i is x + i.
  absl::Status Play(size_t targets, const PiecesSink& sink, const BegunFn& begun) {
    if (script_->hangs) {
      script_->AwaitUntil([this]()
                              ABSL_NO_THREAD_SAFETY_ANALYSIS { return script_->cancelled > 0; });
      return absl::CancelledError("cancelled");
    }
    RepairReport report;
    report.repair_id = 0xabc;
    report.checksum = script_->checksum;
    begun(report);
    report.corrupt = script_->corrupt_at_first;
    begun(report);  // of the next attempt
    for (uint64_t at = 0; at < script_->bytes;) {
      const auto count = std::min<uint64_t>(script_->step, script_->bytes - at);
      std::vector<std::vector<uint8_t>> bytes(targets, std::vector<uint8_t>(count));
      std::vector<std::span<const uint8_t>> pieces;
      for (size_t target = 0; target < targets; ++target) {
        for (size_t i = 0; i < count; ++i) {
          bytes[target][i] = static_cast<uint8_t>(at + i + target);
        }
        pieces.push_back(bytes[target]);
      }
      if (absl::Status taken = sink(pieces); !taken.ok()) return taken;
      at += count;
    }
    if (script_->lingers) {
      script_->AwaitUntil([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return script_->cancelled > 0 || script_->released;
      });
    }
    if (script_->throws) throw std::bad_alloc();
    return script_->end;
  }

  Script* const script_;
};

class EndpointTest : public testing::Test {
 protected:
  void Start(const std::function<void(Endpoint::Options*)>& change = nullptr) {
    Endpoint::Options options;
    options.address = "unix:" + scratch_.File("endpoint.sock");
    if (change) change(&options);
    auto started = Endpoint::Start(
        options, [this](const EndpointRequest&) -> absl::StatusOr<std::unique_ptr<RepairSource>> {
          return std::make_unique<ScriptedSource>(&script_);
        });
    ASSERT_TRUE(started.ok()) << started.status();
    endpoint_ = *std::move(started);
  }

  // Until all connections are over.
  EndpointCounts Settled() {
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
    while (endpoint_->counts().connections > 0 && Clock::System().Now() < give_up) {
      std::this_thread::yield();
    }
    return endpoint_->counts();
  }

  static std::string ErrorOf(EndpointClient* client) {
    const EndpointClient::Frame frame = client->Receive();
    EXPECT_EQ(frame.type, 5);
    EXPECT_EQ(client->Receive().type, 0) << "and then the connection ends";
    return frame.payload;
  }

  const ScratchDirectory scratch_;
  Script script_;
  std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace ecpipe
