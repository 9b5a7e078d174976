// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/catalog_reader.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "requestor/files/catalog_lines.h"

namespace ecpipe {
namespace {

std::vector<std::string> NamesOf(const Stripe& stripe) {
  std::vector<std::string> names{"stripe " + stripe.stripe_id};
  for (const BlockPlace& place : stripe.blocks) names.push_back("block " + place.block_id);
  return names;
}

size_t HashOf(const std::string& name) { return std::hash<std::string>()(name); }

}  // namespace

absl::StatusOr<CatalogReader> CatalogReader::Open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return absl::NotFoundError("cannot open " + path);
  return CatalogReader(path, std::move(file));
}

absl::StatusOr<std::optional<Stripe>> CatalogReader::Next() {
  buffer_.resize(kMaxCatalogLineBytes + 2);  // a newline and the end of the text come to a line
  while (file_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()))) {
    ++line_;
    const auto taken = static_cast<size_t>(file_.gcount());
    const size_t bytes = file_.eof() ? taken : taken - 1;
    if (bytes == 0) continue;
    absl::StatusOr<Stripe> stripe = ParseCatalogLine(std::string(buffer_.data(), bytes));
    if (!stripe.ok()) return Annotate(stripe.status(), Where());
    return *std::move(stripe);
  }
  if (file_.eof()) return std::nullopt;
  ++line_;
  return absl::InvalidArgumentError(Where() + ": it cannot be read, or the line is too long");
}

absl::StatusOr<std::vector<Stripe>> CatalogReader::NextStripes(size_t most) {
  std::vector<Stripe> stripes;
  while (stripes.size() < most) {
    ECPIPE_ASSIGN_OR_RETURN(std::optional<Stripe> stripe, Next());
    if (!stripe) break;
    stripes.push_back(*std::move(stripe));
  }
  return stripes;
}

void CatalogNames::Add(const Stripe& stripe) {
  for (const std::string& name : NamesOf(stripe)) hashes_.push_back(HashOf(name));
}

absl::Status CatalogNames::CheckOnce(const std::string& path) {
  std::sort(hashes_.begin(), hashes_.end());
  std::set<size_t> twice;
  for (size_t i = 1; i < hashes_.size(); ++i) {
    if (hashes_[i - 1] == hashes_[i]) twice.insert(hashes_[i]);
  }
  if (twice.empty()) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(CatalogReader reader, CatalogReader::Open(path));
  std::map<std::string, std::string> first;  // where a name is
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const std::optional<Stripe> stripe, reader.Next());
    if (!stripe) return absl::OkStatus();  // two names had one hash
    for (const std::string& name : NamesOf(*stripe)) {
      if (!twice.contains(HashOf(name))) continue;
      const auto [known, added] = first.emplace(name, reader.Where());
      if (added) continue;
      return absl::InvalidArgumentError(reader.Where() + ": " + name + " is at " + known->second +
                                        ", too");
    }
  }
}

}  // namespace ecpipe
