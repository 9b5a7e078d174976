// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/progress_proto.h"

#include "model/fault.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

void StreamToProto(const StreamProgress& stream, v1::PartProgress::Stream* proto) {
  proto->set_node_id(stream.node);
  proto->set_bytes(stream.bytes);
  proto->set_waiting(stream.waiting);
  proto->set_network_seconds(stream.network_seconds);
}

StreamProgress StreamFromProto(const v1::PartProgress::Stream& proto) {
  return {proto.node_id(), proto.bytes(), proto.waiting(), proto.network_seconds()};
}

}  // namespace

v1::PartProgress ProgressToProto(const PartProgress& progress) {
  v1::PartProgress proto;
  proto.set_running(progress.running);
  proto.set_status_code(static_cast<int>(progress.ended.code()));
  proto.set_status_message(std::string(progress.ended.message()));
  proto.set_fault_node(FaultOf(progress.ended));
  for (const HopProgress& hop : progress.hops) {
    v1::PartProgress::Hop* added = proto.add_hops();
    added->set_lane(hop.lane);
    added->set_hop(hop.hop);
    added->set_waits_for_disk(hop.waits_for_disk);
    for (const StreamProgress& input : hop.inputs) StreamToProto(input, added->add_inputs());
    for (const StreamProgress& output : hop.outputs) StreamToProto(output, added->add_outputs());
  }
  proto.set_missing_bytes(progress.missing_bytes);
  proto.set_kept(progress.missing.has_value());
  for (const SliceRun& run : progress.missing.value_or(std::vector<SliceRun>())) {
    v1::SliceRun* added = proto.add_missing();
    added->set_first(run.first);
    added->set_count(run.count);
    added->set_stride(run.stride);
  }
  return proto;
}

PartProgress ProgressFromProto(const v1::PartProgress& proto) {
  PartProgress progress;
  progress.running = proto.running();
  progress.ended = StatusFromWire(proto.status_code(), proto.status_message(), proto.fault_node());
  for (const v1::PartProgress::Hop& hop : proto.hops()) {
    HopProgress& added = progress.hops.emplace_back();
    added.lane = hop.lane();
    added.hop = hop.hop();
    added.waits_for_disk = hop.waits_for_disk();
    for (const auto& input : hop.inputs()) added.inputs.push_back(StreamFromProto(input));
    for (const auto& output : hop.outputs()) added.outputs.push_back(StreamFromProto(output));
  }
  progress.missing_bytes = proto.missing_bytes();
  if (proto.kept()) {
    std::vector<SliceRun>& missing = progress.missing.emplace();
    for (const v1::SliceRun& run : proto.missing()) {
      missing.push_back({run.first(), run.count(), run.stride()});
    }
  }
  return progress;
}

}  // namespace ecpipe
