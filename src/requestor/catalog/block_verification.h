// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "requestor/catalog/catalog_client.h"

namespace ecpipe {

// How long helpers that do not answer are asked again.
struct Patience {
  int tries = 1;                         // so many in a row that bring no answer end it
  std::function<void()> rest = nullptr;  // between two of these; null: nothing
};

// Has the coordinator ask helpers for any number of blocks. A helper answers for as many as it has
// found within a second: blocks without an answer are asked for again, as long as `patience` says.
// One answer for each, in order.
absl::StatusOr<std::vector<BlockCheck>> VerifyBlocks(CatalogApi* catalog,
                                                     const std::vector<std::string>& block_ids,
                                                     const Patience& patience);

// "11 of 12 blocks verified". What is not there comes to `wrong`.
struct Verification {
  size_t verified = 0;
  size_t all = 0;
  std::vector<BlockCheck> wrong;

  std::string Text() const;
};
Verification SumOf(std::vector<BlockCheck> checks);

}  // namespace ecpipe
