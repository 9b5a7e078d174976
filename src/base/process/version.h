// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// "MAJOR.MINOR.PATCH", as the top CMakeLists.txt has it; all programs and the library share it.
const char* Version();

}  // namespace ecpipe
