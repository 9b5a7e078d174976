// SPDX-License-Identifier: Apache-2.0
// Reads files of stripes, a line each (catalog_lines.h).
#pragma once

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/stripe.h"

namespace ecpipe {

// Used by one thread.
class CatalogReader {
 public:
  // NOT_FOUND: the file cannot be opened.
  static absl::StatusOr<CatalogReader> Open(const std::string& path);

  // Nothing: there are no more. Empty lines are passed over. INVALID_ARGUMENT names the line.
  absl::StatusOr<std::optional<Stripe>> Next();
  // Up to `most` stripes; fewer only at the end.
  absl::StatusOr<std::vector<Stripe>> NextStripes(size_t most);
  // PATH:LINE of the stripe that was read last.
  std::string Where() const { return path_ + ":" + std::to_string(line_); }

 private:
  CatalogReader(std::string path, std::ifstream file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::ifstream file_;
  size_t line_ = 0;
  std::vector<char> buffer_;
};

// The names of a file's stripes and blocks. It takes eight bytes a name.
class CatalogNames {
 public:
  void Add(const Stripe& stripe);
  // INVALID_ARGUMENT: the file, all of which has been added, has a stripe or a block twice. Reads
  // it again if that may be.
  absl::Status CheckOnce(const std::string& path);

 private:
  std::vector<size_t> hashes_;
};

}  // namespace ecpipe
