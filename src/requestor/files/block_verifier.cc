// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/block_verifier.h"

#include <algorithm>
#include <cstring>

#include "base/bytes/sha256.h"
#include "base/file_io.h"
#include "base/status.h"
#include "codec/erasure_code.h"
#include "requestor/files/stripe_columns.h"
#include "requestor/files/work_meter.h"

namespace ecpipe {
namespace {

class StripeVerifier {
 public:
  StripeVerifier(const ErasureCode& code, const ManifestStripe& stripe, uint64_t block_bytes,
                 const std::vector<BlockColumn>& parity_columns, ColumnBuffers* buffers,
                 WorkMeter* meter)
      : k_(static_cast<size_t>(code.k())),
        stripe_(stripe),
        block_bytes_(block_bytes),
        parity_columns_(parity_columns),
        buffers_(*buffers),
        meter_(*meter),
        hashes_(stripe.blocks.size()),
        differs_(stripe.blocks.size(), false) {}

  VerifiedStripe Run(const std::string& blocks_dir) {
    for (const ManifestBlock& block : stripe_.blocks) {
      files_.push_back(OpenBlock(blocks_dir, block, block_bytes_));
    }
    for (uint64_t at = 0; at < block_bytes_;) {
      const size_t bytes = buffers_.WidthAt(at, block_bytes_);
      VerifyColumn(at, bytes);
      at += bytes;
    }
    // Before the checksums: a block that was read is good enough to compute with.
    VerifiedStripe report{stripe_.stripe_id, {}, Parity()};
    for (size_t i = 0; i < files_.size(); ++i) {
      CompareChecksum(i);
      const ManifestBlock& block = stripe_.blocks[i];
      report.blocks.push_back({block.block_id, block.node, files_[i].state, files_[i].detail});
    }
    return report;
  }

 private:
  bool HasAllData() const {
    return std::all_of(files_.begin(), files_.begin() + static_cast<ptrdiff_t>(k_),
                       [](const BlockFile& file) { return file.ok(); });
  }

  void VerifyColumn(uint64_t offset, size_t bytes) {
    buffers_.ClearRows(bytes);
    const std::span<uint8_t> source = buffers_.source(bytes);
    for (size_t i = 0; i < files_.size(); ++i) {
      meter_.Did(bytes);  // also of a block that is not there
      if (!files_[i].ok()) continue;
      if (absl::Status read = ReadFully(files_[i].fd.get(), offset, source); !read.ok()) {
        files_[i].Reject(BlockState::kUnreadable, std::string(read.message()));
        continue;
      }
      hashes_[i].Update(source);
      if (i < k_) {
        parity_columns_[i].MultiplyAdd(buffers_.rows(), source.data(), bytes);
      } else if (std::memcmp(source.data(), buffers_.row(i - k_, bytes).data(), bytes) != 0) {
        differs_[i] = true;  // means something only if HasAllData() in the end
      }
    }
  }

  ParityState Parity() const {
    if (!HasAllData()) return ParityState::kUnknown;
    bool compared = false;
    for (size_t i = k_; i < files_.size(); ++i) {
      if (!files_[i].ok()) continue;
      if (differs_[i]) return ParityState::kDiffers;
      compared = true;
    }
    return compared ? ParityState::kMatches : ParityState::kUnknown;
  }

  void CompareChecksum(size_t index) {
    if (!files_[index].ok()) return;
    const std::string digest = hashes_[index].FinishHex();
    if (digest == stripe_.blocks[index].sha256) return;
    files_[index].Reject(BlockState::kWrongChecksum, "its SHA-256 is " + digest);
  }

  const size_t k_;
  const ManifestStripe& stripe_;
  const uint64_t block_bytes_;
  const std::vector<BlockColumn>& parity_columns_;
  ColumnBuffers& buffers_;
  WorkMeter& meter_;
  std::vector<BlockFile> files_;
  std::vector<Sha256> hashes_;
  std::vector<bool> differs_;
};

}  // namespace

const char* ParityStateName(ParityState state) {
  switch (state) {
    case ParityState::kMatches:
      return "matches";
    case ParityState::kDiffers:
      return "differs";
    case ParityState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

bool VerifyReport::ok() const {
  return std::all_of(stripes.begin(), stripes.end(), [](const VerifiedStripe& stripe) {
    return stripe.parity == ParityState::kMatches &&
           std::all_of(stripe.blocks.begin(), stripe.blocks.end(),
                       [](const VerifiedBlock& block) { return block.state == BlockState::kOk; });
  });
}

absl::StatusOr<VerifyReport> VerifyBlocks(const Manifest& manifest, const std::string& blocks_dir,
                                          const ProgressFn& progress) {
  ECPIPE_RETURN_IF_ERROR(ValidateManifest(manifest));
  ECPIPE_ASSIGN_OR_RETURN(const auto code, CreateErasureCode(manifest.code));
  const std::vector<BlockColumn> parity_columns = ParityColumns(*code);
  ColumnBuffers buffers(static_cast<size_t>(code->n() - code->k()), manifest.block_bytes,
                        code->layout());
  const uint64_t bytes =
      manifest.stripes.size() * static_cast<uint64_t>(code->n()) * manifest.block_bytes;
  WorkMeter meter(progress, bytes, bytes);
  VerifyReport report;
  for (const ManifestStripe& stripe : manifest.stripes) {
    StripeVerifier verifier(*code, stripe, manifest.block_bytes, parity_columns, &buffers, &meter);
    report.stripes.push_back(verifier.Run(blocks_dir));
  }
  return report;
}

}  // namespace ecpipe
