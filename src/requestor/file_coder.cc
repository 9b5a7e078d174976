// SPDX-License-Identifier: Apache-2.0
#include "requestor/file_coder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "codec/erasure_code.h"
#include "codec/kernel.h"
#include "common/aligned_buffer.h"
#include "common/block_id.h"
#include "common/check.h"
#include "common/file_io.h"
#include "common/slice_grid.h"
#include "common/status.h"
#include "requestor/sha256.h"

namespace ecpipe {
namespace {

// Blocks are coded in columns of this many bytes: few enough that the rows of a usual code stay in
// a processor's cache, many enough that a disk is not asked for crumbs.
constexpr uint64_t kColumnBytes = 256 << 10;

// Buffers of one column each.
class Rows {
 public:
  Rows(size_t rows, uint64_t block_bytes)
      : row_bytes_(std::min(kColumnBytes, block_bytes)), bytes_(rows * row_bytes_) {
    for (size_t r = 0; r < rows; ++r) pointers_.push_back(bytes_.data() + r * row_bytes_);
  }

  size_t row_bytes() const { return row_bytes_; }
  uint8_t* operator[](size_t row) const { return pointers_[row]; }
  std::span<uint8_t* const> pointers() const { return pointers_; }

 private:
  size_t row_bytes_;
  AlignedBuffer bytes_;
  std::vector<uint8_t*> pointers_;
};

// Calls step(offset, bytes) for one column after the other of [0, total).
template <typename Step>
absl::Status ForEachColumn(uint64_t total, size_t column_bytes, Step step) {
  for (uint64_t offset = 0; offset < total; offset += column_bytes) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(column_bytes, total - offset));
    ECPIPE_RETURN_IF_ERROR(step(offset, bytes));
  }
  return absl::OkStatus();
}

// For each data block its column of the generator's parity rows.
std::vector<CoefficientColumn> ParityColumns(const ErasureCode& code) {
  std::vector<CoefficientColumn> columns;
  for (int j = 0; j < code.k(); ++j) {
    std::vector<uint8_t> coefficients;
    for (int i = code.k(); i < code.n(); ++i) coefficients.push_back(code.generator().at(i, j));
    columns.emplace_back(coefficients);
  }
  return columns;
}

// targets[r] = Σ over sources of its coefficient · source. Starts anew with the first source.
void AddSource(const CoefficientColumn& column, size_t source_index, const Rows& targets,
               const uint8_t* source, size_t bytes) {
  if (source_index == 0) {
    column.Multiply(targets.pointers(), source, bytes);
  } else {
    column.MultiplyAdd(targets.pointers(), source, bytes);
  }
}

absl::Status CreateDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), "create the directory " + path);
  return absl::OkStatus();
}

std::string StripeId(const std::string& name, uint64_t stripe_index) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, "-s%05llu", static_cast<unsigned long long>(stripe_index));
  return name + suffix;
}

std::string BlockId(const std::string& stripe_id, int block_index) {
  char suffix[16];
  std::snprintf(suffix, sizeof suffix, "-b%02d", block_index);
  return stripe_id + suffix;
}

absl::Status CheckNodes(const std::vector<std::string>& nodes, int n) {
  if (!nodes.empty() && nodes.size() < static_cast<size_t>(n)) {
    return absl::InvalidArgumentError("there are " + std::to_string(nodes.size()) +
                                      " nodes, but each of the " + std::to_string(n) +
                                      " blocks of a stripe needs one of its own");
  }
  std::set<std::string> seen;
  for (const std::string& node : nodes) {
    ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(node), "node '" + node + "'"));
    if (!seen.insert(node).second) {
      return absl::InvalidArgumentError("node '" + node + "' comes twice");
    }
  }
  return absl::OkStatus();
}

class Encoder {
 public:
  Encoder(const EncodeOptions& options, const ErasureCode& code, UniqueFd input,
          uint64_t file_bytes)
      : options_(options),
        code_(code),
        columns_(ParityColumns(code)),
        input_(std::move(input)),
        row_(1, options.block_bytes),
        parity_(static_cast<size_t>(code.n() - code.k()), options.block_bytes) {
    manifest_.name = options.name;
    manifest_.file_bytes = file_bytes;
    manifest_.code = code.name();
    manifest_.block_bytes = options.block_bytes;
  }

  // Whatever would make the manifest impossible is found here, before any block is written.
  absl::Status CheckSizes() {
    const uint64_t last = StripeCount() - 1;
    ECPIPE_RETURN_IF_ERROR(
        Annotate(ValidateBlockId(BlockId(StripeId(options_.name, last), code_.n() - 1)),
                 "the last block id"));
    Manifest sample = manifest_;
    sample.stripes.push_back(MakeStripe(last));
    for (ManifestBlock& block : sample.stripes[0].blocks) block.sha256.assign(64, '0');
    if (last < kMaxManifestStripes &&
        ManifestText(sample).size() <= kMaxManifestBytes / StripeCount()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("the file makes " + std::to_string(StripeCount()) +
                                      " stripes, too many for a manifest; use larger blocks");
  }

  absl::StatusOr<Manifest> Run() {
    ECPIPE_RETURN_IF_ERROR(CreateDirectory(options_.output_directory));
    for (const std::string& node : options_.nodes) {
      ECPIPE_RETURN_IF_ERROR(CreateDirectory(options_.output_directory + "/" + node));
    }
    for (uint64_t s = 0; s < StripeCount(); ++s) {
      ManifestStripe stripe = MakeStripe(s);
      ECPIPE_RETURN_IF_ERROR(
          Annotate(EncodeStripe(s, &stripe), "encode stripe " + stripe.stripe_id));
      manifest_.stripes.push_back(std::move(stripe));
    }
    ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes_now, FileBytes(input_.get()));
    if (bytes_now != manifest_.file_bytes) return InputChanged();
    manifest_.file_sha256 = file_hash_.HexDigest();
    ECPIPE_RETURN_IF_ERROR(SaveManifest(manifest_, ManifestPath(options_)));
    return std::move(manifest_);
  }

 private:
  uint64_t StripeBytes() const {
    return static_cast<uint64_t>(code_.k()) * options_.block_bytes;
  }
  uint64_t StripeCount() const { return (manifest_.file_bytes - 1) / StripeBytes() + 1; }

  absl::Status InputChanged() const {
    return absl::FailedPreconditionError(options_.input + " changed while it was read");
  }

  ManifestStripe MakeStripe(uint64_t stripe_index) const {
    ManifestStripe stripe{StripeId(options_.name, stripe_index), {}};
    for (int i = 0; i < code_.n(); ++i) {
      std::string node;
      if (!options_.nodes.empty()) {
        node = options_.nodes[(stripe_index + static_cast<uint64_t>(i)) % options_.nodes.size()];
      }
      stripe.blocks.push_back({BlockId(stripe.stripe_id, i), std::move(node), ""});
    }
    return stripe;
  }

  absl::Status EncodeStripe(uint64_t stripe_index, ManifestStripe* stripe) {
    std::vector<AtomicFile> files;
    for (const ManifestBlock& block : stripe->blocks) {
      const std::string directory =
          options_.output_directory + "/" + (block.node.empty() ? "" : block.node + "/");
      ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(directory + block.block_id));
      files.push_back(std::move(file));
    }
    const auto k = static_cast<size_t>(code_.k());
    for (size_t j = 0; j < k; ++j) {
      const uint64_t begin = stripe_index * StripeBytes() + j * options_.block_bytes;
      ECPIPE_ASSIGN_OR_RETURN(stripe->blocks[j].sha256, CopyData(begin, &files[j]));
    }
    ECPIPE_RETURN_IF_ERROR(WriteParity(&files, stripe));
    for (AtomicFile& file : files) ECPIPE_RETURN_IF_ERROR(file.Commit());
    return absl::OkStatus();
  }

  // Data blocks are written one after the other, as the file has them, since the file's hash takes
  // its bytes in that order. Returns the block's hash.
  absl::StatusOr<std::string> CopyData(uint64_t begin, AtomicFile* file) {
    Sha256 hash;
    const auto copy = [&](uint64_t offset, size_t bytes) -> absl::Status {
      const uint64_t position = begin + offset;
      const uint64_t left =
          position < manifest_.file_bytes ? manifest_.file_bytes - position : 0;
      const auto wanted = static_cast<size_t>(std::min<uint64_t>(bytes, left));
      if (absl::Status read = ReadFully(input_.get(), position, {row_[0], wanted}); !read.ok()) {
        return absl::IsOutOfRange(read) ? InputChanged() : Annotate(read, options_.input);
      }
      std::memset(row_[0] + wanted, 0, bytes - wanted);
      file_hash_.Update({row_[0], wanted});
      hash.Update({row_[0], bytes});
      return file->WriteAt(offset, {row_[0], bytes});
    };
    ECPIPE_RETURN_IF_ERROR(ForEachColumn(options_.block_bytes, row_.row_bytes(), copy));
    return hash.HexDigest();
  }

  // Parity is made from the data blocks as they were written, not from the input again: so the two
  // belong together even when somebody writes to the input meanwhile.
  absl::Status WriteParity(std::vector<AtomicFile>* files, ManifestStripe* stripe) {
    const size_t k = columns_.size();
    const size_t parities = files->size() - k;
    std::vector<Sha256> hashes(parities);
    const auto write = [&](uint64_t offset, size_t bytes) -> absl::Status {
      for (size_t j = 0; j < k; ++j) {
        ECPIPE_RETURN_IF_ERROR((*files)[j].ReadAt(offset, {row_[0], bytes}));
        AddSource(columns_[j], j, parity_, row_[0], bytes);
      }
      for (size_t r = 0; r < parities; ++r) {
        hashes[r].Update({parity_[r], bytes});
        ECPIPE_RETURN_IF_ERROR((*files)[k + r].WriteAt(offset, {parity_[r], bytes}));
      }
      return absl::OkStatus();
    };
    ECPIPE_RETURN_IF_ERROR(ForEachColumn(options_.block_bytes, row_.row_bytes(), write));
    for (size_t r = 0; r < parities; ++r) stripe->blocks[k + r].sha256 = hashes[r].HexDigest();
    return absl::OkStatus();
  }

  const EncodeOptions& options_;
  const ErasureCode& code_;
  const std::vector<CoefficientColumn> columns_;
  const UniqueFd input_;
  const Rows row_;
  const Rows parity_;
  Sha256 file_hash_;
  Manifest manifest_;
};

// The blocks of a manifest in a directory. Borrows both.
class BlockDirectory {
 public:
  static absl::StatusOr<BlockDirectory> Open(const Manifest& manifest, const std::string& path) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      return absl::NotFoundError(path + ": no such directory of blocks");
    }
    return BlockDirectory(manifest, path);
  }

  // Opens a block of the right length. Otherwise it returns no descriptor and `check` says why.
  UniqueFd OpenBlock(const ManifestBlock& block, BlockCheck* check) const {
    *check = {block.block_id, block.node, BlockState::kMissing, ""};
    absl::StatusOr<UniqueFd> fd = absl::NotFoundError("");
    if (!block.node.empty()) fd = OpenForReading(path_ + "/" + block.node + "/" + block.block_id);
    if (absl::IsNotFound(fd.status())) fd = OpenForReading(path_ + "/" + block.block_id);
    if (absl::IsNotFound(fd.status())) return {};
    if (!fd.ok()) return Bad(BlockState::kUnreadable, StatusText(fd.status()), check);
    const absl::StatusOr<uint64_t> bytes = FileBytes(fd->get());
    if (!bytes.ok()) return Bad(BlockState::kUnreadable, StatusText(bytes.status()), check);
    if (*bytes != manifest_.block_bytes) {
      return Bad(BlockState::kWrongLength,
                 std::to_string(*bytes) + " bytes instead of " +
                     std::to_string(manifest_.block_bytes),
                 check);
    }
    check->state = BlockState::kOk;
    return std::move(*fd);
  }

  // The same, and the bytes have the right checksum. `row` is working space.
  UniqueFd OpenGoodBlock(const ManifestBlock& block, const Rows& row, BlockCheck* check) const {
    UniqueFd fd = OpenBlock(block, check);
    if (!fd.valid()) return fd;
    Sha256 hash;
    const auto read = [&](uint64_t offset, size_t bytes) -> absl::Status {
      ECPIPE_RETURN_IF_ERROR(ReadFully(fd.get(), offset, {row[0], bytes}));
      hash.Update({row[0], bytes});
      return absl::OkStatus();
    };
    const absl::Status all = ForEachColumn(manifest_.block_bytes, row.row_bytes(), read);
    if (!all.ok()) return Bad(BlockState::kUnreadable, StatusText(all), check);
    if (hash.HexDigest() != block.sha256) return Bad(BlockState::kWrongChecksum, "", check);
    return fd;
  }

 private:
  BlockDirectory(const Manifest& manifest, const std::string& path)
      : manifest_(manifest), path_(path) {}

  static UniqueFd Bad(BlockState state, std::string detail, BlockCheck* check) {
    check->state = state;
    check->detail = std::move(detail);
    return {};
  }

  const Manifest& manifest_;
  const std::string& path_;
};

class Decoder {
 public:
  Decoder(const Manifest& manifest, const ErasureCode& code, const BlockDirectory& blocks,
          AtomicFile output)
      : manifest_(manifest),
        code_(code),
        blocks_(blocks),
        output_(std::move(output)),
        row_(1, manifest.block_bytes) {}

  absl::Status Run() {
    for (size_t s = 0; s < manifest_.stripes.size(); ++s) {
      ECPIPE_RETURN_IF_ERROR(
          Annotate(DecodeStripe(s), "decode stripe " + manifest_.stripes[s].stripe_id));
    }
    if (hash_.HexDigest() != manifest_.file_sha256) {
      return absl::DataLossError("the file put together for " + output_.path() +
                                 " is not the one that the manifest describes: its SHA-256 "
                                 "differs. It is not kept.");
    }
    return output_.Commit();
  }

 private:
  uint64_t DataOffset(size_t stripe_index, int block_index) const {
    const uint64_t blocks_before =
        stripe_index * static_cast<uint64_t>(code_.k()) + static_cast<uint64_t>(block_index);
    return blocks_before * manifest_.block_bytes;
  }
  // How much of a data block belongs to the file; the rest fills up the last stripe.
  uint64_t DataBytes(size_t stripe_index, int block_index) const {
    const uint64_t offset = DataOffset(stripe_index, block_index);
    if (offset >= manifest_.file_bytes) return 0;
    return std::min(manifest_.block_bytes, manifest_.file_bytes - offset);
  }

  absl::Status DecodeStripe(size_t stripe_index) {
    const ManifestStripe& stripe = manifest_.stripes[stripe_index];
    ECPIPE_CHECK(stripe.blocks.size() == static_cast<size_t>(code_.n()));
    std::vector<UniqueFd> open(stripe.blocks.size());
    std::vector<int> good;
    std::vector<int> lost;  // of those that hold a part of the file
    std::string complaints;
    // Parity is read, and its absence noticed, only when something has to be rebuilt.
    for (int i = 0; i < code_.n() && (i < code_.k() || !lost.empty()); ++i) {
      BlockCheck check;
      open[i] = blocks_.OpenGoodBlock(stripe.blocks[i], row_, &check);
      if (open[i].valid()) {
        good.push_back(i);
        continue;
      }
      if (i < code_.k() && DataBytes(stripe_index, i) > 0) lost.push_back(i);
      complaints += (complaints.empty() ? "" : ", ") + check.block_id + " (" +
                    BlockStateName(check.state) + ")";
    }
    if (!lost.empty()) {
      const absl::StatusOr<RepairEquation> equation = code_.Equation(lost, good);
      if (!equation.ok()) return Annotate(equation.status(), "without " + complaints);
      ECPIPE_RETURN_IF_ERROR(Rebuild(stripe_index, *equation, open));
    }
    for (int i : good) {
      if (i < code_.k()) ECPIPE_RETURN_IF_ERROR(Copy(stripe_index, i, open[i]));
    }
    return HashStripe(stripe_index);
  }

  absl::Status Copy(size_t stripe_index, int block_index, const UniqueFd& source) {
    const uint64_t begin = DataOffset(stripe_index, block_index);
    const auto copy = [&](uint64_t offset, size_t bytes) -> absl::Status {
      ECPIPE_RETURN_IF_ERROR(ReadFully(source.get(), offset, {row_[0], bytes}));
      return output_.WriteAt(begin + offset, {row_[0], bytes});
    };
    return ForEachColumn(DataBytes(stripe_index, block_index), row_.row_bytes(), copy);
  }

  absl::Status Rebuild(size_t stripe_index, const RepairEquation& equation,
                       const std::vector<UniqueFd>& open) {
    std::vector<CoefficientColumn> columns;
    for (const EquationTerm& term : equation.terms) columns.emplace_back(term.coefficients);
    const Rows rebuilt(equation.failed.size(), manifest_.block_bytes);
    uint64_t longest = 0;
    for (int lost : equation.failed) longest = std::max(longest, DataBytes(stripe_index, lost));
    const auto rebuild = [&](uint64_t offset, size_t bytes) -> absl::Status {
      for (size_t t = 0; t < columns.size(); ++t) {
        const UniqueFd& source = open[equation.terms[t].block_index];
        ECPIPE_RETURN_IF_ERROR(ReadFully(source.get(), offset, {row_[0], bytes}));
        AddSource(columns[t], t, rebuilt, row_[0], bytes);
      }
      for (size_t r = 0; r < equation.failed.size(); ++r) {
        const uint64_t end = DataBytes(stripe_index, equation.failed[r]);
        if (offset >= end) continue;
        const auto kept = static_cast<size_t>(std::min<uint64_t>(bytes, end - offset));
        const uint64_t begin = DataOffset(stripe_index, equation.failed[r]);
        ECPIPE_RETURN_IF_ERROR(output_.WriteAt(begin + offset, {rebuilt[r], kept}));
      }
      return absl::OkStatus();
    };
    return ForEachColumn(longest, row_.row_bytes(), rebuild);
  }

  // The hash takes the bytes in the file's order, in which they are not written. It is fed after
  // each stripe, while that is likely to be in memory still.
  absl::Status HashStripe(size_t stripe_index) {
    for (int j = 0; j < code_.k(); ++j) {
      const uint64_t begin = DataOffset(stripe_index, j);
      const auto hash = [&](uint64_t offset, size_t bytes) -> absl::Status {
        ECPIPE_RETURN_IF_ERROR(output_.ReadAt(begin + offset, {row_[0], bytes}));
        hash_.Update({row_[0], bytes});
        return absl::OkStatus();
      };
      ECPIPE_RETURN_IF_ERROR(ForEachColumn(DataBytes(stripe_index, j), row_.row_bytes(), hash));
    }
    return absl::OkStatus();
  }

  const Manifest& manifest_;
  const ErasureCode& code_;
  const BlockDirectory& blocks_;
  AtomicFile output_;
  const Rows row_;
  Sha256 hash_;
};

class Verifier {
 public:
  Verifier(const Manifest& manifest, const ErasureCode& code, const BlockDirectory& blocks)
      : manifest_(manifest),
        blocks_(blocks),
        columns_(ParityColumns(code)),
        row_(1, manifest.block_bytes),
        parity_(static_cast<size_t>(code.n() - code.k()), manifest.block_bytes) {}

  // Each block is read once: for its checksum and for the parity.
  StripeCheck Check(const ManifestStripe& stripe, std::vector<BlockCheck>* checks) {
    const size_t n = stripe.blocks.size();
    ECPIPE_CHECK(n == columns_.size() + parity_.pointers().size());
    std::vector<BlockCheck> found(n);
    std::vector<UniqueFd> open;
    for (size_t i = 0; i < n; ++i) open.push_back(blocks_.OpenBlock(stripe.blocks[i], &found[i]));
    std::vector<Sha256> hashes(n);
    bool differs = false;
    const auto read = [&](uint64_t offset, size_t bytes) -> absl::Status {
      for (size_t i = 0; i < n; ++i) {
        if (!open[i].valid()) continue;
        if (absl::Status got = ReadFully(open[i].get(), offset, {row_[0], bytes}); !got.ok()) {
          found[i].state = BlockState::kUnreadable;
          found[i].detail = StatusText(got);
          open[i].reset();
          continue;
        }
        hashes[i].Update({row_[0], bytes});
        differs = UseForParity(i, bytes) || differs;
      }
      return absl::OkStatus();
    };
    ECPIPE_CHECK(ForEachColumn(manifest_.block_bytes, row_.row_bytes(), read).ok());
    bool complete = true;
    for (size_t i = 0; i < n; ++i) {
      complete = complete && open[i].valid();
      if (!open[i].valid() || hashes[i].HexDigest() == stripe.blocks[i].sha256) continue;
      found[i].state = BlockState::kWrongChecksum;
    }
    std::move(found.begin(), found.end(), std::back_inserter(*checks));
    const ParityState compared = differs ? ParityState::kDiffers : ParityState::kMatches;
    return {stripe.stripe_id, complete ? compared : ParityState::kNotChecked};
  }

 private:
  // A data block adds to the parity; a parity block is compared with it: true when it differs. To
  // no avail when a block is absent, but that is the rare case.
  bool UseForParity(size_t block_index, size_t bytes) {
    const size_t k = columns_.size();
    if (block_index >= k) {
      return std::memcmp(parity_[block_index - k], row_[0], bytes) != 0;
    }
    AddSource(columns_[block_index], block_index, parity_, row_[0], bytes);
    return false;
  }

  const Manifest& manifest_;
  const BlockDirectory& blocks_;
  const std::vector<CoefficientColumn> columns_;
  const Rows row_;
  const Rows parity_;
};

}  // namespace

std::string ManifestPath(const EncodeOptions& options) {
  return options.output_directory + "/" + options.name + ".manifest.json";
}

absl::StatusOr<Manifest> EncodeFile(const EncodeOptions& options) {
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(options.name), "name '" + options.name + "'"));
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(options.name + ".manifest.json"),
                                  "the manifest's name"));
  if (options.block_bytes == 0 || options.block_bytes > kMaxBlockBytes) {
    return absl::InvalidArgumentError("a block must have 1 to " + std::to_string(kMaxBlockBytes) +
                                      " bytes, not " + std::to_string(options.block_bytes));
  }
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const ErasureCode> code,
                          CreateErasureCode(options.code));
  ECPIPE_RETURN_IF_ERROR(CheckNodes(options.nodes, code->n()));
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd input, OpenForReading(options.input));
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t file_bytes, FileBytes(input.get()));
  if (file_bytes == 0) return absl::InvalidArgumentError(options.input + " is empty");
  Encoder encoder(options, *code, std::move(input), file_bytes);
  ECPIPE_RETURN_IF_ERROR(encoder.CheckSizes());
  std::error_code ignored;
  if (std::filesystem::exists(ManifestPath(options), ignored)) {
    return absl::AlreadyExistsError(ManifestPath(options) +
                                    " exists: delete it and its blocks, or choose another name");
  }
  return encoder.Run();
}

absl::Status DecodeFile(const Manifest& manifest, const std::string& blocks_directory,
                        const std::string& output_path) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const ErasureCode> code,
                          CreateErasureCode(manifest.code));
  ECPIPE_ASSIGN_OR_RETURN(const BlockDirectory blocks,
                          BlockDirectory::Open(manifest, blocks_directory));
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile output, AtomicFile::Create(output_path));
  return Decoder(manifest, *code, blocks, std::move(output)).Run();
}

const char* BlockStateName(BlockState state) {
  switch (state) {
    case BlockState::kOk: return "ok";
    case BlockState::kMissing: return "missing";
    case BlockState::kUnreadable: return "unreadable";
    case BlockState::kWrongLength: return "wrong length";
    case BlockState::kWrongChecksum: return "wrong checksum";
  }
  return "?";
}

const char* ParityStateName(ParityState state) {
  switch (state) {
    case ParityState::kNotChecked: return "not checked";
    case ParityState::kMatches: return "matches";
    case ParityState::kDiffers: return "differs";
  }
  return "?";
}

bool VerifyReport::ok() const {
  return std::all_of(blocks.begin(), blocks.end(),
                     [](const BlockCheck& block) { return block.state == BlockState::kOk; }) &&
         std::all_of(stripes.begin(), stripes.end(), [](const StripeCheck& stripe) {
           return stripe.parity == ParityState::kMatches;
         });
}

absl::StatusOr<VerifyReport> VerifyBlocks(const Manifest& manifest,
                                          const std::string& blocks_directory) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const ErasureCode> code,
                          CreateErasureCode(manifest.code));
  ECPIPE_ASSIGN_OR_RETURN(const BlockDirectory blocks,
                          BlockDirectory::Open(manifest, blocks_directory));
  Verifier verifier(manifest, *code, blocks);
  VerifyReport report;
  for (const ManifestStripe& stripe : manifest.stripes) {
    report.stripes.push_back(verifier.Check(stripe, &report.blocks));
  }
  return report;
}

}  // namespace ecpipe
