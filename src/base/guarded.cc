// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.h"

#include <new>
#include <system_error>

#include "base/status.h"

namespace ecpipe {
namespace {

absl::Status OutOfMemory() {
  try {
    return OwnShortage(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::bad_alloc&) {  // which the text and the mark take as well
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace

absl::Status StatusOfException() {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::system_error& failure) {  // a thread could not be started
      return OwnShortage(absl::ResourceExhaustedError(failure.what()));
    } catch (const std::exception& failure) {
      return absl::InternalError(failure.what());
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace ecpipe
