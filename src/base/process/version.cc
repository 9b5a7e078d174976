// SPDX-License-Identifier: Apache-2.0
#include "base/process/version.h"

namespace ecpipe {

const char* Version() { return ECPIPE_VERSION; }

}  // namespace ecpipe
