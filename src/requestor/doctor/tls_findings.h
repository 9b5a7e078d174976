// SPDX-License-Identifier: Apache-2.0
// Whether each party of a deployment accepts the certificate of each other. Pure.
#pragma once

#include "requestor/doctor/check_report.h"
#include "requestor/doctor/facts.h"

namespace ecpipe {

// The check "tls chain". What ends is the check "certificates".
void JudgeTlsChain(const DoctorFacts& facts, CheckReport* report);

}  // namespace ecpipe
