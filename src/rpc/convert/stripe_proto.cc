// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/stripe_proto.h"

namespace ecpipe {

void StripeToProto(const Stripe& stripe, v1::Stripe* proto) {
  proto->set_stripe_id(stripe.stripe_id);
  proto->set_code(stripe.code);
  proto->set_block_bytes(stripe.block_bytes);
  for (const BlockPlace& place : stripe.blocks) {
    v1::BlockPlace* added = proto->add_blocks();
    added->set_block_id(place.block_id);
    added->set_node_id(place.node);
    added->set_sha256(place.sha256);
  }
}

Stripe StripeFromProto(const v1::Stripe& proto) {
  Stripe stripe{proto.stripe_id(), proto.code(), proto.block_bytes(), {}, {}};
  for (const v1::BlockPlace& place : proto.blocks()) {
    stripe.blocks.push_back({place.block_id(), place.node_id(), place.sha256()});
  }
  return stripe;
}

}  // namespace ecpipe
