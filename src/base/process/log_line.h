// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/process/log.h"

namespace ecpipe {

// A line as Log() writes it, with its end, for logs of another file. `level` and `event` may be
// empty: then the line does not have them.
std::string LogLine(std::string_view level, std::string_view event,
                    std::initializer_list<LogField> fields);

}  // namespace ecpipe
