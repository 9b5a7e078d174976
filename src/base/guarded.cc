// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.h"

#include <new>
#include <system_error>

namespace ecpipe {

absl::Status StatusOfException() {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::system_error& failure) {  // a thread could not be started
      return absl::ResourceExhaustedError(failure.what());
    } catch (const std::exception& failure) {
      return absl::InternalError(failure.what());
    }
  } catch (const std::bad_alloc&) {
    // Its text takes memory as well.
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace ecpipe
