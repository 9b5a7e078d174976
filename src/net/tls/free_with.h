// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// Makes unique_ptr free an object of OpenSSL by the function that is for its type.
template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace ecpipe
