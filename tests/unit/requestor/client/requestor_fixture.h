// SPDX-License-Identifier: Apache-2.0
// A requestor between a coordinator and helpers that the test plays.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <stop_token>
#include <utility>

#include "net/tcp_socket.h"
#include "requestor/client/requestor.h"
#include "unit/requestor/client/fake_coordinator.h"

namespace ecpipe::requestor_fixture {

inline constexpr uint64_t kBlockBytes = 1000;
inline constexpr uint32_t kSliceBytes = 500;

// Helpers that send ones, once `may_send` is signalled.
class OnesTransport : public Transport {
 public:
  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput&,
                                                         const StreamShape&) override {
    if (!lacking.ok()) return lacking;
    if (refused > 0 && refused-- > 0) return absl::UnavailableError("nobody listens");
    return std::make_unique<Ones>(&may_send, frames);
  }
  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput&, const StreamShape&,
                                                     std::shared_ptr<Wakeup>) override {
    return absl::UnimplementedError("requestors send nothing");
  }

  Wakeup may_send;
  int refused = 0;       // connections, from now on
  int frames = INT_MAX;  // that each connection brings before it breaks
  absl::Status lacking;  // what ends each connection before anybody is asked

 private:
  class Ones : public SliceReceiver {
   public:
    Ones(const Wakeup* may_send, int frames) : may_send_(may_send), frames_(frames) {}
    absl::StatusOr<bool> TryReceive(const FrameHeader&, std::span<uint8_t> payload) override {
      pollfd polled = poll_fd();
      if (::poll(&polled, 1, 0) != 1) return false;
      if (frames_-- == 0) return absl::UnavailableError("the peer closed the stream");
      std::fill(payload.begin(), payload.end(), uint8_t{1});
      bytes_ += payload.size();
      return true;
    }
    pollfd poll_fd() const override { return {may_send_->fd(), POLLIN, 0}; }
    uint64_t bytes_received() const override { return bytes_; }

   private:
    const Wakeup* const may_send_;
    int frames_;
    uint64_t bytes_ = 0;
  };
};

// One stream that brings the block in row 0, and check rows after it.
inline RepairPart Part(uint32_t check_rows) {
  RepairPart part;
  part.repair_id = 1;
  part.grid = {0, kBlockBytes, kSliceBytes};
  part.check.rows = check_rows;
  HopSpec& hop = part.hops.emplace_back();
  hop.slices = LaneSlices::All(part.grid.slice_count());
  for (Row row = 0; row <= check_rows; ++row) hop.rows.push_back(row);
  hop.stored_rows = hop.rows;
  HopInput& input = hop.inputs.emplace_back();
  input.node = "n";
  input.rows = hop.rows;
  return part;
}

inline RepairGrant Granted(uint32_t check_rows) {
  RepairGrant granted;
  granted.repair_id = 1;
  granted.part = Part(check_rows);
  granted.block_lengths = {kBlockBytes};
  return granted;
}

class RequestorFixture : public testing::Test {
 protected:
  RequestorFixture() {
    coordinator_->begin = [](const RepairTarget&) { return Granted(0); };
    helpers_->may_send.Signal();
  }

  // Hands the fakes over. Once.
  Requestor& requestor() {
    if (requestor_ == nullptr) {
      requestor_ = std::make_unique<Requestor>(std::unique_ptr<CoordinatorApi>(coordinator_),
                                               options_, std::unique_ptr<Transport>(helpers_));
    }
    return *requestor_;
  }
  absl::Status Read() {
    const auto take = [](std::span<const uint8_t>) { return absl::OkStatus(); };
    const RepairTarget target{.block_ids = {"b"}};
    return requestor().Read(target, take, nullptr, nullptr, stop_.get_token()).status();
  }
  ~RequestorFixture() override { requestor(); }

  RequestorOptions options_{.coordinator = "", .name = "r"};
  FakeCoordinator* const coordinator_ = new FakeCoordinator;  // the requestor's
  OnesTransport* const helpers_ = new OnesTransport;          // the requestor's
  std::stop_source stop_;
  std::unique_ptr<Requestor> requestor_;
};

}  // namespace ecpipe::requestor_fixture
