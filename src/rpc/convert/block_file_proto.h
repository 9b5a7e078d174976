// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ecpipe/v1/helper.pb.h"
#include "model/block_file.h"

namespace ecpipe {

inline v1::BlockFile BlockFileToProto(const BlockFile& file) {
  v1::BlockFile proto;
  proto.set_block_id(file.block_id);
  proto.set_bytes(file.bytes);
  proto.set_version(file.version);
  proto.set_age_seconds(file.age_seconds);
  return proto;
}

inline BlockFile BlockFileFromProto(const v1::BlockFile& proto) {
  return {proto.block_id(), proto.bytes(), proto.version(), proto.age_seconds()};
}

}  // namespace ecpipe
