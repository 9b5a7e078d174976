// SPDX-License-Identifier: Apache-2.0
// A coordinator over six nodes, n0 to n5, that live in memory.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "coordinator/repairs/repair_coordinator.h"
#include "unit/coordinator/fakes.h"

namespace ecpipe {

class FakeListener : public RepairListener {
 public:
  void OnHostedEnd(const HostedEnd& end) override { ends.push_back(end); }
  bool OnHostedFault(RepairId repair_id) override { return on_fault && on_fault(repair_id); }

  std::vector<HostedEnd> ends;
  std::function<bool(RepairId)> on_fault;
};

class Repairs : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) Register("n" + std::to_string(i));
  }
  void Register(const std::string& node) {
    ASSERT_TRUE(coordinator_.Register(FakeNode(node)).ok());
  }
  static RepairRequest Request(const std::string& block_id, const std::string& scheme = "rp") {
    RepairRequest request;
    request.block_ids = {block_id};
    request.scheme = scheme;
    request.slice_bytes = 100;
    return request;
  }
  static bool Says(const absl::Status& status, const std::string& text) {
    return std::string(status.message()).find(text) != std::string::npos;
  }

  MemoryCatalog catalog_;
  MemoryJournal journal_;
  FakeHelpers helpers_;
  FakeClock clock_;
  FakeListener listener_;
  RepairCoordinator coordinator_{&catalog_, &journal_, &helpers_, &clock_, {}, &listener_};
};

}  // namespace ecpipe
