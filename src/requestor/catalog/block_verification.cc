// SPDX-License-Identifier: Apache-2.0
#include "requestor/catalog/block_verification.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status.h"

namespace ecpipe {

absl::StatusOr<std::vector<BlockCheck>> VerifyBlocks(CatalogApi* catalog,
                                                     const std::vector<std::string>& block_ids,
                                                     const Patience& patience) {
  std::vector<BlockCheck> checks(block_ids.size());
  std::vector<size_t> open(block_ids.size());  // those without an answer
  std::iota(open.begin(), open.end(), size_t{0});
  int in_vain = 0;
  while (!open.empty()) {
    std::vector<size_t> still_open;
    for (size_t begin = 0; begin < open.size(); begin += CatalogApi::kMaxBlocksInCheck) {
      const size_t end = std::min(open.size(), begin + CatalogApi::kMaxBlocksInCheck);
      std::vector<std::string> asked;
      for (size_t i = begin; i < end; ++i) asked.push_back(block_ids[open[i]]);
      ECPIPE_ASSIGN_OR_RETURN(std::vector<BlockCheck> answers, catalog->CheckBlocks(asked));
      for (size_t i = begin; i < end; ++i) {
        BlockCheck& answer = answers.at(i - begin);
        if (answer.verdict == BlockVerdict::kNotAsked) still_open.push_back(open[i]);
        checks[open[i]] = std::move(answer);
      }
    }
    in_vain = still_open.size() == open.size() ? in_vain + 1 : 0;
    if (in_vain == patience.tries) break;
    if (in_vain > 0 && patience.rest) patience.rest();
    open = std::move(still_open);
  }
  return checks;
}

std::string Verification::Text() const {
  return std::to_string(verified) + " of " + std::to_string(all) + " blocks verified";
}

Verification SumOf(std::vector<BlockCheck> checks) {
  Verification sum;
  sum.all = checks.size();
  for (BlockCheck& check : checks) {
    if (check.verdict == BlockVerdict::kThere) {
      ++sum.verified;
    } else {
      sum.wrong.push_back(std::move(check));
    }
  }
  return sum;
}

}  // namespace ecpipe
