// SPDX-License-Identifier: Apache-2.0
// Whether what lies in the roots is of the kind of store that their helpers have. Pure.
#pragma once

#include "requestor/doctor/check_report.h"
#include "requestor/doctor/facts.h"

namespace ecpipe {

// The check "store format".
void JudgeStoreFormat(const DoctorFacts& facts, CheckReport* report);

}  // namespace ecpipe
