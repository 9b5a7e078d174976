// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/manifest.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/bytes/sha256.h"
#include "base/file_io.h"
#include "base/status.h"
#include "codec/erasure_code.h"
#include "model/block_id.h"
#include "model/plan/slice_grid.h"

namespace ecpipe {
namespace {

using SortedJson = nlohmann::json;

constexpr char kFormat[] = "ecpipe-manifest-1";
constexpr size_t kDeepest = 8;  // a manifest nests to 5
// A block makes 4 values and a stripe 3, for at least 2 blocks; twice that leaves room.
constexpr size_t kMostValues = 12 * kMaxManifestBlocks;

// Wraps a JSON value with its JSON pointer (RFC 6901), so that each complaint says where.
class Value {
 public:
  Value(const SortedJson& json, std::string pointer) : json_(json), pointer_(std::move(pointer)) {}

  absl::Status Complain(const std::string& what) const {
    return absl::InvalidArgumentError((pointer_.empty() ? "the document" : pointer_) + ": " + what);
  }

  // An object with exactly these keys.
  absl::Status ExpectKeys(std::initializer_list<const char*> keys) const {
    if (!json_.is_object()) return Complain("must be an object");
    for (const char* key : keys) {
      if (!json_.contains(key)) return Complain("the key '" + std::string(key) + "' is missing");
    }
    if (json_.size() == keys.size()) return absl::OkStatus();
    for (const auto& item : json_.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) != keys.end()) continue;
      return Complain("unknown key " + SortedJson(item.key()).dump());
    }
    return absl::OkStatus();
  }

  Value operator[](const char* key) const { return {json_.at(key), pointer_ + "/" + key}; }
  Value operator[](size_t index) const {
    return {json_.at(index), pointer_ + "/" + std::to_string(index)};
  }

  absl::StatusOr<size_t> Length() const {
    if (!json_.is_array()) return Complain("must be an array");
    return json_.size();
  }
  absl::StatusOr<std::string> String() const {
    if (!json_.is_string()) return Complain("must be a string");
    return json_.get<std::string>();
  }
  absl::StatusOr<uint64_t> Unsigned() const {
    if (!json_.is_number_unsigned()) return Complain("must be an integer of at least 0");
    return json_.get<uint64_t>();
  }
  absl::StatusOr<std::string> Id() const {
    ECPIPE_ASSIGN_OR_RETURN(std::string id, String());
    if (absl::Status valid = ValidateBlockId(id); !valid.ok()) {
      return Complain(std::string(valid.message()));
    }
    return id;
  }
  absl::StatusOr<std::string> Digest() const {
    ECPIPE_ASSIGN_OR_RETURN(std::string digest, String());
    if (!IsSha256Hex(digest)) {
      return Complain("must be a SHA-256: 64 lower-case hexadecimal digits");
    }
    return digest;
  }

 private:
  const SortedJson& json_;
  const std::string pointer_;
};

// Looks at a text before it is read: depth and number of values are bounded, and no key comes twice
// in one object, which JSON permits without saying what it means. A pass of its own, because
// nlohmann's parser with a callback walks an array anew after each object in it.
class Inspector : public nlohmann::json_sax<SortedJson> {
 public:
  const std::string& why() const { return why_; }

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool key(string_t& key) override {
    return open_.back().insert(key).second ||
           Refuse("the key " + SortedJson(key).dump() + " comes twice in one object");
  }
  bool parse_error(size_t, const std::string&, const SortedJson::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: ..."
    const std::string message = error.what();
    const size_t bracket = message.find("] ");
    return Refuse(bracket == std::string::npos ? message : message.substr(bracket + 2));
  }

 private:
  bool Refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool Count() {
    return ++values_ <= kMostValues || Refuse("the file has too many values for a manifest");
  }
  bool Open() {
    if (open_.size() >= kDeepest) return Refuse("the file is nested too deeply for a manifest");
    open_.emplace_back();
    return Count();
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> open_;  // the keys so far of each object that is not closed
  size_t values_ = 0;
  std::string why_;
};

absl::StatusOr<SortedJson> ParseJson(const std::string& text) {
  Inspector inspector;
  if (!SortedJson::sax_parse(text, &inspector)) return absl::InvalidArgumentError(inspector.why());
  return SortedJson::parse(text, nullptr, false);
}

class Reader {
 public:
  absl::StatusOr<Manifest> Read(const Value& document) {
    ECPIPE_RETURN_IF_ERROR(document.ExpectKeys(
        {"format", "name", "file_bytes", "file_sha256", "code", "block_bytes", "stripes"}));
    ECPIPE_ASSIGN_OR_RETURN(const std::string format, document["format"].String());
    if (format != kFormat) {
      return document["format"].Complain(std::string("must be \"") + kFormat + "\"");
    }
    ECPIPE_ASSIGN_OR_RETURN(manifest_.name, document["name"].Id());
    ECPIPE_ASSIGN_OR_RETURN(manifest_.file_bytes, document["file_bytes"].Unsigned());
    ECPIPE_ASSIGN_OR_RETURN(manifest_.file_sha256, document["file_sha256"].Digest());
    ECPIPE_RETURN_IF_ERROR(ReadCode(document["code"]));
    ECPIPE_ASSIGN_OR_RETURN(manifest_.block_bytes, document["block_bytes"].Unsigned());
    if (manifest_.block_bytes == 0 || manifest_.block_bytes > kMaxBlockBytes) {
      return document["block_bytes"].Complain("must be 1 to " + std::to_string(kMaxBlockBytes));
    }
    if (!layout_.Fits(manifest_.block_bytes)) {
      return document["block_bytes"].Complain("must be a multiple of " +
                                              std::to_string(layout_.group_bytes()));
    }
    ECPIPE_RETURN_IF_ERROR(ReadStripes(document["stripes"]));
    return std::move(manifest_);
  }

 private:
  absl::Status ReadCode(const Value& value) {
    ECPIPE_ASSIGN_OR_RETURN(manifest_.code, value.String());
    const auto code = CreateErasureCode(manifest_.code);
    if (!code.ok()) return value.Complain(std::string(code.status().message()));
    layout_ = (*code)->layout();
    n_ = static_cast<size_t>((*code)->n());
    k_ = static_cast<uint64_t>((*code)->k());
    return absl::OkStatus();
  }

  absl::Status ReadStripes(const Value& stripes) {
    ECPIPE_ASSIGN_OR_RETURN(const size_t count, stripes.Length());
    if (count > kMaxManifestBlocks / n_) {
      return stripes.Complain("more than " + std::to_string(kMaxManifestBlocks) + " blocks");
    }
    // No overflow: a block has up to 2^40 bytes, and k < n.
    const uint64_t stripe_bytes = k_ * manifest_.block_bytes;
    const uint64_t needed =
        manifest_.file_bytes / stripe_bytes + (manifest_.file_bytes % stripe_bytes != 0 ? 1 : 0);
    if (count != needed) {
      return stripes.Complain("there are " + std::to_string(count) + " stripes, but a file of " +
                              std::to_string(manifest_.file_bytes) + " bytes has " +
                              std::to_string(needed));
    }
    for (size_t s = 0; s < count; ++s) ECPIPE_RETURN_IF_ERROR(ReadStripe(stripes[s]));
    return absl::OkStatus();
  }

  absl::Status ReadStripe(const Value& value) {
    ECPIPE_RETURN_IF_ERROR(value.ExpectKeys({"stripe_id", "blocks"}));
    ManifestStripe stripe;
    ECPIPE_ASSIGN_OR_RETURN(stripe.stripe_id, value["stripe_id"].Id());
    if (!stripe_ids_.insert(stripe.stripe_id).second) {
      return value["stripe_id"].Complain("'" + stripe.stripe_id + "' comes twice");
    }
    const Value blocks = value["blocks"];
    ECPIPE_ASSIGN_OR_RETURN(const size_t count, blocks.Length());
    if (count != n_) {
      return blocks.Complain(std::to_string(count) + " blocks, but a stripe of " + manifest_.code +
                             " has " + std::to_string(n_));
    }
    for (size_t i = 0; i < count; ++i) ECPIPE_RETURN_IF_ERROR(ReadBlock(blocks[i], &stripe));
    manifest_.stripes.push_back(std::move(stripe));
    return absl::OkStatus();
  }

  absl::Status ReadBlock(const Value& value, ManifestStripe* stripe) {
    ECPIPE_RETURN_IF_ERROR(value.ExpectKeys({"block_id", "node", "sha256"}));
    ManifestBlock block;
    ECPIPE_ASSIGN_OR_RETURN(block.block_id, value["block_id"].Id());
    if (!block_ids_.insert(block.block_id).second) {
      return value["block_id"].Complain("'" + block.block_id + "' comes twice");
    }
    ECPIPE_ASSIGN_OR_RETURN(block.node, value["node"].String());
    if (!block.node.empty()) ECPIPE_RETURN_IF_ERROR(value["node"].Id().status());
    ECPIPE_ASSIGN_OR_RETURN(block.sha256, value["sha256"].Digest());
    stripe->blocks.push_back(std::move(block));
    return absl::OkStatus();
  }

  Manifest manifest_;
  size_t n_ = 0;
  uint64_t k_ = 0;
  BlockLayout layout_;
  std::unordered_set<std::string> stripe_ids_;
  std::unordered_set<std::string> block_ids_;
};

absl::Status TooLong(uint64_t bytes) {
  return absl::InvalidArgumentError("the manifest's " + std::to_string(bytes) +
                                    " bytes are over the limit of " +
                                    std::to_string(kMaxManifestBytes));
}

}  // namespace

absl::StatusOr<Manifest> ParseManifest(const std::string& text, const std::string& source) {
  if (text.size() > kMaxManifestBytes) return Annotate(TooLong(text.size()), source);
  const absl::StatusOr<SortedJson> json = ParseJson(text);
  if (!json.ok()) return Annotate(json.status(), source);
  absl::StatusOr<Manifest> manifest = Reader().Read(Value(*json, ""));
  if (!manifest.ok()) return Annotate(manifest.status(), source);
  return manifest;
}

absl::Status ValidateManifest(const Manifest& manifest) {
  // The checks live in the reader, where they know the place; a round trip costs little beside
  // reading the blocks.
  return ParseManifest(ManifestText(manifest), "manifest").status();
}

// An ordered_json keeps the order in which people want to read it.
std::string ManifestText(const Manifest& manifest) {
  using Ordered = nlohmann::ordered_json;
  Ordered stripes = Ordered::array();
  for (const ManifestStripe& stripe : manifest.stripes) {
    Ordered blocks = Ordered::array();
    for (const ManifestBlock& block : stripe.blocks) {
      blocks.push_back(
          Ordered{{"block_id", block.block_id}, {"node", block.node}, {"sha256", block.sha256}});
    }
    stripes.push_back(Ordered{{"stripe_id", stripe.stripe_id}, {"blocks", std::move(blocks)}});
  }
  const Ordered document{{"format", kFormat},
                         {"name", manifest.name},
                         {"file_bytes", manifest.file_bytes},
                         {"file_sha256", manifest.file_sha256},
                         {"code", manifest.code},
                         {"block_bytes", manifest.block_bytes},
                         {"stripes", std::move(stripes)}};
  // Broken UTF-8 is replaced, not thrown at the caller: no id or name may hold it anyway.
  return document.dump(1, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

std::string ManifestFileName(const std::string& name) { return name + ".manifest.json"; }

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForReading(path));
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(fd.get()));
  if (bytes > kMaxManifestBytes) return Annotate(TooLong(bytes), path);
  std::string text(bytes, '\0');
  const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(text.data()), text.size());
  if (absl::Status read = ReadFully(fd.get(), 0, out); !read.ok()) return Annotate(read, path);
  return ParseManifest(text, path);
}

absl::Status WriteManifest(const Manifest& manifest, const std::string& path) {
  const std::string text = ManifestText(manifest);
  ECPIPE_RETURN_IF_ERROR(ParseManifest(text, path).status());
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  ECPIPE_RETURN_IF_ERROR(file.WriteAt(0, {bytes, text.size()}));
  return file.Commit();
}

}  // namespace ecpipe
