// SPDX-License-Identifier: Apache-2.0
// Files that hold a secret, such as a key or a password.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

// INVALID_ARGUMENT when others than its owner and group may open the file, or the group may write
// it: whoever has the secret can be this process. OK if there is no such file: opening it says so.
absl::Status CheckSecretMode(const std::string& path);

// What the file holds, without the end of its line. Errors name the file: INVALID_ARGUMENT when it
// is empty, has more than 4 KiB, or is open to others.
absl::StatusOr<std::string> ReadSecret(const std::string& path);
// Whether it can be read. OK without a path: there is no secret.
absl::Status CheckSecret(const std::string& path);

}  // namespace ecpipe
