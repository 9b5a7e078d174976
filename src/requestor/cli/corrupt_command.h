// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace CLI {
class App;
}  // namespace CLI

namespace ecpipe {

// Adds `ecpipe corrupt`: the marks of corrupt and suspect blocks. The command that is asked for
// goes to `command`. Both pointers outlive the app.
void AddCorruptCommands(CLI::App* app, const CommonArguments* common,
                        std::function<absl::Status()>* command);

}  // namespace ecpipe
