// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ecpipe/v1/coordinator.pb.h"
#include "model/stripe.h"

namespace ecpipe {

void StripeToProto(const Stripe& stripe, v1::Stripe* proto);
// Takes the stripe as it comes: who stores it checks it.
Stripe StripeFromProto(const v1::Stripe& proto);

}  // namespace ecpipe
