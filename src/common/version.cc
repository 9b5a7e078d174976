// SPDX-License-Identifier: Apache-2.0
#include "common/version.h"

namespace ecpipe {

const char* Version() { return ECPIPE_VERSION; }

}  // namespace ecpipe
