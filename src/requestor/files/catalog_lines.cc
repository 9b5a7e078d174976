// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/catalog_lines.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/status.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

absl::Status CheckKeys(const Json& object, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return absl::InvalidArgumentError("it is no object of JSON");
  for (const auto& [key, value] : object.items()) {
    bool found = false;
    for (const std::string_view name : known) found |= name == key;
    if (!found) return absl::InvalidArgumentError("there is no key '" + key + "'");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_string()) return found->get<std::string>();
  return absl::InvalidArgumentError("'" + std::string(key) + "' must be there, and be a text");
}

absl::StatusOr<BlockPlace> BlockOf(const Json& object) {
  ECPIPE_RETURN_IF_ERROR(CheckKeys(object, {"block_id", "node", "sha256"}));
  BlockPlace block;
  ECPIPE_ASSIGN_OR_RETURN(block.block_id, TextOf(object, "block_id"));
  ECPIPE_ASSIGN_OR_RETURN(block.node, TextOf(object, "node"));
  if (object.contains("sha256")) {
    ECPIPE_ASSIGN_OR_RETURN(block.sha256, TextOf(object, "sha256"));
  }
  return block;
}

}  // namespace

std::string CatalogLine(const Stripe& stripe) {
  Json json{{"stripe_id", stripe.stripe_id},
            {"code", stripe.code},
            {"block_bytes", stripe.block_bytes},
            {"blocks", Json::array()}};
  for (const BlockPlace& block : stripe.blocks) {
    Json entry{{"block_id", block.block_id}, {"node", block.node}};
    if (!block.sha256.empty()) entry["sha256"] = block.sha256;
    json["blocks"].push_back(std::move(entry));
  }
  return json.dump();
}

absl::StatusOr<Stripe> ParseCatalogLine(const std::string& line) {
  if (line.size() > kMaxCatalogLineBytes) {
    return absl::InvalidArgumentError("the line is longer than " +
                                      std::to_string(kMaxCatalogLineBytes) + " bytes");
  }
  // The parser takes it for the end.
  if (line.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("it has a byte of 0, and is no JSON");
  }
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("it is no JSON");
  ECPIPE_RETURN_IF_ERROR(CheckKeys(json, {"stripe_id", "code", "block_bytes", "blocks"}));
  Stripe stripe;
  ECPIPE_ASSIGN_OR_RETURN(stripe.stripe_id, TextOf(json, "stripe_id"));
  ECPIPE_ASSIGN_OR_RETURN(stripe.code, TextOf(json, "code"));
  const auto bytes = json.find("block_bytes");
  if (bytes == json.end() || !bytes->is_number_unsigned()) {
    return absl::InvalidArgumentError("'block_bytes' must be there, and be a number of bytes");
  }
  stripe.block_bytes = bytes->get<uint64_t>();
  const auto blocks = json.find("blocks");
  if (blocks == json.end() || !blocks->is_array()) {
    return absl::InvalidArgumentError("'blocks' must be there, and be a list");
  }
  for (const Json& block : *blocks) {
    ECPIPE_ASSIGN_OR_RETURN(BlockPlace place, BlockOf(block));
    stripe.blocks.push_back(std::move(place));
  }
  return stripe;
}

}  // namespace ecpipe
