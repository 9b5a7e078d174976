// SPDX-License-Identifier: Apache-2.0
// Whether the arithmetic that this process has loaded is the one that repairs need.
#pragma once

#include "absl/status/status.h"

namespace ecpipe {

// Compares the kernel and the checksums, which come from whatever libisal.so.2 the machine has,
// with plain scalar arithmetic: lengths 0 to 300, sampled alignments, row counts and coefficients.
// Takes some milliseconds the first time; the answer is kept. Programs call it before they serve,
// and the library before it opens a client. A caller that gets an error must not repair anything.
// INTERNAL: a result was wrong; the message names the library and the operation. Thread-safe.
absl::Status CheckKernel();

}  // namespace ecpipe
