// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/bytes/sha256.h"
#include "base/file_io.h"
#include "base/status.h"
#include "codec/erasure_code.h"
#include "codec/kernel.h"
#include "requestor/files/block_files.h"
#include "requestor/files/file_coder.h"
#include "requestor/files/stripe_columns.h"
#include "requestor/files/work_meter.h"

namespace ecpipe {
namespace {

size_t Index(int block_index) { return static_cast<size_t>(block_index); }

// One stripe: which blocks are good, and how the data comes from them.
class StripeDecoder {
 public:
  // `file_bytes` is how much of the file is in this stripe, at least 1.
  StripeDecoder(const ErasureCode& code, const ManifestStripe& stripe, uint64_t block_bytes,
                uint64_t file_bytes, WorkMeter* meter)
      : code_(code),
        stripe_(stripe),
        block_bytes_(block_bytes),
        file_bytes_(file_bytes),
        meter_(*meter) {}

  // As work it counts as much as the stripe has of the file, however many blocks it has to check.
  absl::Status Choose(const DecodeOptions& options) {
    for (const ManifestBlock& block : stripe_.blocks) {
      files_.push_back(OpenBlock(options.blocks_dir, block, block_bytes_));
    }
    checked_.assign(files_.size(), options.checksums == BlockChecksums::kTrust);
    check_end_ = meter_.done() + file_bytes_;
    // Each round finds a bad block or ends.
    for (bool good = false; !good;) {
      ECPIPE_RETURN_IF_ERROR(WriteEquation());
      good = true;
      for (const int index : used_) good = Check(index) && good;
    }
    meter_.Reach(check_end_);
    return absl::OkStatus();
  }

  // Writes this stripe's part of the file at `offset`.
  absl::Status Decode(uint64_t offset, AtomicFile* output) {
    const BlockLayout& layout = equation_.layout;
    ColumnBuffers buffers(equation_.failed.size(), block_bytes_, layout);
    std::vector<BlockColumn> columns(files_.size());
    for (const EquationTerm& term : equation_.terms) {
      columns[Index(term.block_index)] =
          BlockColumn(term.sub_blocks, term.coefficients, equation_.rows(), layout);
    }
    // Past this byte, all that the file needs of the blocks has been written.
    const uint64_t needed = std::min(block_bytes_, file_bytes_);
    const uint64_t end =
        (needed + layout.group_bytes() - 1) / layout.group_bytes() * layout.group_bytes();
    const uint64_t begun = meter_.done();
    for (uint64_t at = 0; at < end;) {
      const size_t bytes = buffers.WidthAt(at, end);
      buffers.ClearRows(bytes);
      for (const int index : used_) {
        const std::span<uint8_t> source = buffers.source(bytes);
        ECPIPE_RETURN_IF_ERROR(
            Annotate(ReadFully(files_[Index(index)].fd.get(), at, source), BlockIdOf(index)));
        if (IsNeeded(index)) ECPIPE_RETURN_IF_ERROR(Write(index, offset, at, source, output));
        const BlockColumn& column = columns[Index(index)];
        if (!column.empty()) column.MultiplyAdd(buffers.rows(), source.data(), bytes);
      }
      for (size_t r = 0; r < equation_.failed.size(); ++r) {
        ECPIPE_RETURN_IF_ERROR(
            Write(equation_.failed[r], offset, at, buffers.row(r, bytes), output));
      }
      at += bytes;
      // So much of each of the k data blocks.
      meter_.Reach(begun + std::min(at * Index(code_.k()), file_bytes_));
    }
    meter_.Reach(begun + file_bytes_);
    return absl::OkStatus();
  }

 private:
  const std::string& BlockIdOf(int index) const { return stripe_.blocks[Index(index)].block_id; }

  // A data block in which there is some of the file.
  bool IsNeeded(int index) const {
    return index < code_.k() && Index(index) * block_bytes_ < file_bytes_;
  }
  // A data block that the encoder made of zeros: known without reading it.
  bool IsPadding(int index) const { return index < code_.k() && !IsNeeded(index); }

  // Sets equation_ and used_ from the blocks that are good as far as is known.
  absl::Status WriteEquation() {
    std::vector<int> failed;
    std::vector<int> survivors;
    used_.clear();
    for (int index = 0; index < code_.n(); ++index) {
      const bool usable = files_[Index(index)].ok();
      if (IsNeeded(index) && !usable) failed.push_back(index);
      if (IsPadding(index) || usable) survivors.push_back(index);
      if (IsNeeded(index) && usable) used_.push_back(index);
    }
    equation_ = {};
    if (failed.empty()) return absl::OkStatus();
    absl::StatusOr<RepairEquation> equation = code_.Equation(failed, survivors);
    if (!equation.ok()) return TooFew(equation.status());
    equation_ = *std::move(equation);
    std::erase_if(equation_.terms,
                  [&](const EquationTerm& term) { return IsPadding(term.block_index); });
    for (const EquationTerm& term : equation_.terms) {
      if (!IsNeeded(term.block_index)) used_.push_back(term.block_index);
    }
    return absl::OkStatus();
  }

  // Compares a block with its checksum once; false when it turns out to be bad.
  bool Check(int index) {
    if (checked_[Index(index)]) return true;
    BlockFile& file = files_[Index(index)];
    const auto digest = HashBlock(file.fd.get());
    if (!digest.ok()) {
      file.Reject(BlockState::kUnreadable, std::string(digest.status().message()));
    } else if (*digest != stripe_.blocks[Index(index)].sha256) {
      file.Reject(BlockState::kWrongChecksum, "its SHA-256 is " + *digest);
    }
    checked_[Index(index)] = true;
    return file.ok();
  }

  absl::StatusOr<std::string> HashBlock(int fd) {
    ColumnBuffers buffers(0, block_bytes_);
    Sha256 sha256;
    for (uint64_t at = 0; at < block_bytes_;) {
      const std::span<uint8_t> bytes = buffers.source(buffers.WidthAt(at, block_bytes_));
      ECPIPE_RETURN_IF_ERROR(ReadFully(fd, at, bytes));
      sha256.Update(bytes);
      meter_.Reach(std::min(meter_.done() + bytes.size(), check_end_));
      at += bytes.size();
    }
    return sha256.FinishHex();
  }

  absl::Status TooFew(const absl::Status& why) const {
    std::string text = "stripe " + stripe_.stripe_id + ": " + std::string(why.message());
    for (size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].ok()) continue;
      text += "\n  " + stripe_.blocks[i].block_id + ": " + BlockStateName(files_[i].state) + " (" +
              files_[i].detail + ")";
    }
    return absl::FailedPreconditionError(text);
  }

  // Writes what the file needs of a column of a data block.
  absl::Status Write(int index, uint64_t stripe_offset, uint64_t at, std::span<const uint8_t> bytes,
                     AtomicFile* output) const {
    const uint64_t start = Index(index) * block_bytes_ + at;
    if (start >= file_bytes_) return absl::OkStatus();
    const uint64_t wanted = std::min<uint64_t>(bytes.size(), file_bytes_ - start);
    return output->WriteAt(stripe_offset + start, bytes.first(static_cast<size_t>(wanted)));
  }

  const ErasureCode& code_;
  const ManifestStripe& stripe_;
  const uint64_t block_bytes_;
  const uint64_t file_bytes_;
  WorkMeter& meter_;
  uint64_t check_end_ = 0;  // of the meter, when all blocks to be used are checked
  std::vector<BlockFile> files_;
  std::vector<bool> checked_;
  RepairEquation equation_;
  std::vector<int> used_;  // the blocks to read
};

// Reads back what will be the file: whatever went wrong before, wrong bytes are not handed over.
absl::Status CheckWhole(const Manifest& manifest, const AtomicFile& output, WorkMeter* meter) {
  Sha256 sha256;
  if (manifest.file_bytes > 0) {
    ColumnBuffers buffers(0, manifest.file_bytes);
    for (uint64_t at = 0; at < manifest.file_bytes;) {
      const std::span<uint8_t> bytes = buffers.source(buffers.WidthAt(at, manifest.file_bytes));
      ECPIPE_RETURN_IF_ERROR(output.ReadAt(at, bytes));
      sha256.Update(bytes);
      meter->Did(bytes.size());
      at += bytes.size();
    }
  }
  const std::string digest = sha256.FinishHex();
  if (digest == manifest.file_sha256) return absl::OkStatus();
  return absl::DataLossError("the decoded file has SHA-256 " + digest + ", but the manifest says " +
                             manifest.file_sha256 + "; no file was written");
}

}  // namespace

absl::Status DecodeFile(const Manifest& manifest, const DecodeOptions& options) {
  ECPIPE_RETURN_IF_ERROR(ValidateManifest(manifest));
  ECPIPE_ASSIGN_OR_RETURN(const auto code, CreateErasureCode(manifest.code));
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile output, AtomicFile::Create(options.output_path));
  const uint64_t stripe_bytes = Index(code->k()) * manifest.block_bytes;
  // The passes: checking blocks, writing, checking the whole. What it takes to make the file
  // durable is not known; it comes when all else is done.
  WorkMeter meter(options.progress, manifest.file_bytes, 3 * manifest.file_bytes);
  uint64_t offset = 0;
  for (const ManifestStripe& stripe : manifest.stripes) {
    const uint64_t here = std::min(stripe_bytes, manifest.file_bytes - offset);
    StripeDecoder decoder(*code, stripe, manifest.block_bytes, here, &meter);
    ECPIPE_RETURN_IF_ERROR(decoder.Choose(options));
    ECPIPE_RETURN_IF_ERROR(decoder.Decode(offset, &output));
    offset += stripe_bytes;
  }
  ECPIPE_RETURN_IF_ERROR(CheckWhole(manifest, output, &meter));
  return output.Commit();
}

}  // namespace ecpipe
