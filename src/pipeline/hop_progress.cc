// SPDX-License-Identifier: Apache-2.0
// HopRunner, what it tells of itself.
#include "pipeline/hop_runner.h"

namespace ecpipe {

bool HopRunner::WaitsForDisk() const {
  return pipeline_.WaitsForLocal() && local_->WaitsForDisk(local_seen_);
}

std::string HopRunner::WaitingFor() const {
  std::string text;
  const auto add = [&](const std::string& reason) { text += (text.empty() ? "" : "; ") + reason; };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto next = pipeline_.NextReceive(i);
    if (inputs_[i].receiver == nullptr || !next) continue;
    add("slice " + std::to_string(spec_.slices.SliceIndex(next->ordinal)) + " from node " +
        spec_.inputs[i].node);
  }
  if (WaitsForDisk()) {
    add("the disk that holds block " + spec_.block->block_id);
  }
  for (size_t i = 0; i < spec_.outputs.size(); ++i) {
    if (outputs_[i].sender != nullptr && WaitsToSend(i)) {
      add("node " + spec_.outputs[i].node + " to take slices");
    }
  }
  return text;
}

HopProgress HopRunner::Progress() const {
  HopProgress progress{.lane = spec_.lane, .hop = spec_.hop};
  progress.waits_for_disk = WaitsForDisk();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].receiver == nullptr) continue;
    progress.inputs.push_back({.node = spec_.inputs[i].node,
                               .bytes = inputs_[i].receiver->bytes_received(),
                               .waiting = WaitsToReceive(i)});
  }
  for (size_t i = 0; i < spec_.outputs.size(); ++i) {
    if (outputs_[i].sender == nullptr) continue;
    progress.outputs.push_back({.node = spec_.outputs[i].node,
                                .bytes = outputs_[i].sender->bytes_sent(),
                                .waiting = WaitsToSend(i),
                                .network_seconds = outputs_[i].sender->timing().network_seconds});
  }
  return progress;
}

uint64_t HopRunner::bytes_sent() const {
  uint64_t bytes = 0;
  for (const Output& output : outputs_) {
    bytes += output.sender ? output.sender->bytes_sent() : output.closed_bytes;
  }
  return bytes;
}

uint64_t HopRunner::bytes_received() const {
  uint64_t bytes = 0;
  for (const Input& input : inputs_) {
    bytes += input.receiver ? input.receiver->bytes_received() : input.closed_bytes;
  }
  return bytes;
}

}  // namespace ecpipe
