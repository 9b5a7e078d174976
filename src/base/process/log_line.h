// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

#include "base/process/log.h"

namespace ecpipe {

// A line as Log() writes it, with its end, for logs of another file. `words` come after the time.
std::string LogLine(const std::string& words, std::initializer_list<LogField> fields);

}  // namespace ecpipe
