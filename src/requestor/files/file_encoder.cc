// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/bytes/sha256.h"
#include "base/file_io.h"
#include "base/status.h"
#include "codec/erasure_code.h"
#include "codec/kernel.h"
#include "model/block_checksums.h"
#include "model/block_id.h"
#include "model/plan/slice_grid.h"
#include "requestor/files/file_coder.h"
#include "requestor/files/stripe_columns.h"
#include "requestor/files/work_meter.h"

namespace ecpipe {
namespace {

std::string StripeId(const std::string& name, size_t stripe_index) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, "-s%05zu", stripe_index);
  return name + suffix;
}

std::string BlockId(const std::string& stripe_id, size_t block_index) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, "-b%02zu", block_index);
  return stripe_id + suffix;
}

absl::Status CheckNodes(const std::vector<std::string>& nodes, int n) {
  for (const std::string& node : nodes) {
    ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(node), "node id '" + node + "'"));
  }
  const std::set<std::string> distinct(nodes.begin(), nodes.end());
  if (distinct.size() != nodes.size()) return absl::InvalidArgumentError("a node is named twice");
  if (nodes.empty() || nodes.size() >= static_cast<size_t>(n)) return absl::OkStatus();
  return absl::InvalidArgumentError("a stripe has " + std::to_string(n) +
                                    " blocks, so it needs at least as many nodes; there are " +
                                    std::to_string(nodes.size()));
}

// Remembers what was made, and removes it again unless Keep() is called.
class Created {
 public:
  Created() = default;
  Created(const Created&) = delete;
  Created& operator=(const Created&) = delete;
  ~Created() {
    for (const std::string& file : files_) ::unlink(file.c_str());
    for (auto it = directories_.rbegin(); it != directories_.rend(); ++it) ::rmdir(it->c_str());
  }

  absl::Status MakeDirectory(const std::string& path) {
    if (::mkdir(path.c_str(), 0777) == 0) {
      directories_.push_back(path);
      return absl::OkStatus();
    }
    if (errno == EEXIST) return absl::OkStatus();
    return ErrnoStatus(errno, "create directory " + path);
  }

  // An AtomicFile, or what commits like one.
  template <typename File, typename... Arguments>
  absl::Status Commit(File* file, const Arguments&... arguments) {
    const absl::Status committed = file->Commit(arguments...);
    // UNKNOWN: it is there, but perhaps not for good.
    if (committed.ok() || absl::IsUnknown(committed)) files_.push_back(file->path());
    return committed;
  }

  void AddFile(const std::string& path) { files_.push_back(path); }
  void Keep() {
    files_.clear();
    directories_.clear();
  }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> directories_;
};

// What changes when somebody writes to a file.
struct FileStamp {
  uint64_t bytes = 0;
  timespec modified{};

  friend bool operator==(const FileStamp& a, const FileStamp& b) {
    return a.bytes == b.bytes && a.modified.tv_sec == b.modified.tv_sec &&
           a.modified.tv_nsec == b.modified.tv_nsec;
  }
};

absl::StatusOr<FileStamp> StampOf(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "stat");
  return FileStamp{static_cast<uint64_t>(info.st_size), info.st_mtim};
}

// A file of /proc says that it has no bytes, and has some.
absl::Status CheckEndsAt(int fd, uint64_t bytes, const std::string& path) {
  uint8_t more = 0;
  const absl::Status read = ReadFully(fd, bytes, {&more, 1});
  if (absl::IsOutOfRange(read)) return absl::OkStatus();
  ECPIPE_RETURN_IF_ERROR(Annotate(read, path));
  return absl::InvalidArgumentError(path + " has more than the " + std::to_string(bytes) +
                                    " bytes of its size, as files of /proc do, or is being " +
                                    "written to: copy it to a plain file and encode that");
}

class Encoder {
 public:
  Encoder(const EncodeOptions& options, const ErasureCode& code, UniqueFd input, FileStamp stamp)
      : options_(options),
        code_(code),
        input_(std::move(input)),
        stamp_(stamp),
        parity_columns_(ParityColumns(code)),
        buffers_(static_cast<size_t>(code.n() - code.k()), options.block_bytes, code.layout()),
        meter_(options.progress, stamp.bytes, stamp.bytes + 2 * BlocksBytes()) {}

  absl::StatusOr<Manifest> Plan() {
    ECPIPE_RETURN_IF_ERROR(BeginManifest());
    for (size_t s = 0; s < stripe_count(); ++s) {
      manifest_.stripes.push_back(NameStripe(s));
      for (const ManifestBlock& block : manifest_.stripes.back().blocks) {
        const std::string path = DirectoryOf(block) + "/" + block.block_id;
        if (::access(path.c_str(), F_OK) == 0) return absl::AlreadyExistsError(path + " exists");
      }
    }
    return std::move(manifest_);
  }

  absl::StatusOr<Manifest> Run() {
    ECPIPE_RETURN_IF_ERROR(BeginManifest());
    ECPIPE_RETURN_IF_ERROR(HashInput());
    ECPIPE_RETURN_IF_ERROR(MakeDirectories());
    for (size_t s = 0; s < stripe_count(); ++s) ECPIPE_RETURN_IF_ERROR(EncodeStripe(s));
    ECPIPE_ASSIGN_OR_RETURN(const FileStamp now, StampOf(input_.get()));
    if (!(now == stamp_)) return Changed();
    const std::string path = options_.output_dir + "/" + ManifestFileName(options_.name);
    const absl::Status written = WriteManifest(manifest_, path);
    if (absl::IsUnknown(written)) created_.AddFile(path);
    ECPIPE_RETURN_IF_ERROR(written);
    created_.Keep();
    return std::move(manifest_);
  }

 private:
  struct OpenBlockFile {
    AtomicFile file;
    Sha256 sha256;
    std::optional<ChecksumFileWriter> checksums;

    absl::Status Append(uint64_t offset, std::span<const uint8_t> bytes) {
      sha256.Update(bytes);
      if (checksums) ECPIPE_RETURN_IF_ERROR(checksums->Append(bytes));
      return file.WriteAt(offset, bytes);
    }
  };

  size_t k() const { return static_cast<size_t>(code_.k()); }
  size_t n() const { return static_cast<size_t>(code_.n()); }
  size_t stripe_count() const {
    const uint64_t stripe_bytes = k() * options_.block_bytes;
    return stamp_.bytes / stripe_bytes + (stamp_.bytes % stripe_bytes != 0 ? 1 : 0);
  }

  // In the page cache a block is half done: only the disk tells how long the other half takes.
  uint64_t BlocksBytes() const { return stripe_count() * n() * options_.block_bytes; }

  absl::Status BeginManifest() {
    manifest_.name = options_.name;
    manifest_.file_bytes = stamp_.bytes;
    manifest_.code = code_.name();
    manifest_.block_bytes = options_.block_bytes;
    return CheckSize();
  }

  std::string DirectoryOf(const ManifestBlock& block) const {
    return block.node.empty() ? options_.output_dir : options_.output_dir + "/" + block.node;
  }

  absl::Status Changed() const {
    return absl::AbortedError(options_.input_path +
                              " changed while it was read; all blocks written so far were removed");
  }

  absl::Status CheckSize() const {
    if (stripe_count() > kMaxManifestBlocks / n()) {
      return absl::InvalidArgumentError(
          std::to_string(stripe_count()) + " stripes of " + std::to_string(n()) +
          " blocks each are over the limit of " + std::to_string(kMaxManifestBlocks) +
          " blocks a file; use larger blocks");
    }
    const size_t last = stripe_count() == 0 ? 0 : stripe_count() - 1;
    const std::string longest = BlockId(StripeId(options_.name, last), n() - 1);
    if (absl::Status valid = ValidateBlockId(longest); !valid.ok()) {
      return Annotate(valid, "the name gives block ids such as '" + longest + "'");
    }
    if (WritesChecksums() && !CanHaveChecksumFile(longest)) {
      return absl::InvalidArgumentError(
          "the name gives block ids such as '" + longest +
          "', which are too long for the names of checksum files; use a shorter name");
    }
    return absl::OkStatus();
  }

  // A pass of its own: the file's bytes and the columns come in different orders.
  absl::Status HashInput() {
    Sha256 sha256;
    for (uint64_t at = 0; at < stamp_.bytes;) {
      const std::span<uint8_t> bytes = buffers_.source(buffers_.WidthAt(at, stamp_.bytes));
      ECPIPE_RETURN_IF_ERROR(ReadInput(at, bytes));
      sha256.Update(bytes);
      meter_.Did(bytes.size());
      at += bytes.size();
    }
    manifest_.file_sha256 = sha256.FinishHex();
    return absl::OkStatus();
  }

  // Past the end of the file there are zeros.
  absl::Status ReadInput(uint64_t offset, std::span<uint8_t> out) const {
    const uint64_t there = offset < stamp_.bytes ? stamp_.bytes - offset : 0;
    const auto filled = static_cast<size_t>(std::min<uint64_t>(there, out.size()));
    const absl::Status read = ReadFully(input_.get(), offset, out.first(filled));
    if (absl::IsOutOfRange(read)) return Changed();
    std::fill(out.begin() + static_cast<ptrdiff_t>(filled), out.end(), uint8_t{0});
    return Annotate(read, options_.input_path);
  }

  absl::Status MakeDirectories() {
    ECPIPE_RETURN_IF_ERROR(created_.MakeDirectory(options_.output_dir));
    for (const std::string& node : options_.nodes) {
      ECPIPE_RETURN_IF_ERROR(created_.MakeDirectory(options_.output_dir + "/" + node));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<OpenBlockFile>> OpenStripe(const ManifestStripe& stripe) const {
    std::vector<OpenBlockFile> files;
    for (const ManifestBlock& block : stripe.blocks) {
      const std::string directory = DirectoryOf(block);
      ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(directory + "/" + block.block_id,
                                                                  AtomicFile::Existing::kRefuse));
      files.push_back({std::move(file), Sha256(), std::nullopt});
      if (!WritesChecksums()) continue;
      ECPIPE_ASSIGN_OR_RETURN(ChecksumFileWriter checksums,
                              ChecksumFileWriter::Create(directory, block.block_id));
      files.back().checksums.emplace(std::move(checksums));
    }
    return files;
  }

  ManifestStripe NameStripe(size_t stripe_index) const {
    ManifestStripe stripe{StripeId(options_.name, stripe_index), {}};
    const std::vector<std::string>& nodes = options_.nodes;
    for (size_t i = 0; i < n(); ++i) {
      stripe.blocks.push_back({BlockId(stripe.stripe_id, i),
                               nodes.empty() ? "" : nodes[(i + stripe_index) % nodes.size()], ""});
    }
    return stripe;
  }

  absl::Status EncodeStripe(size_t stripe_index) {
    ManifestStripe stripe = NameStripe(stripe_index);
    ECPIPE_ASSIGN_OR_RETURN(std::vector<OpenBlockFile> files, OpenStripe(stripe));
    for (uint64_t at = 0; at < options_.block_bytes;) {
      const size_t bytes = buffers_.WidthAt(at, options_.block_bytes);
      ECPIPE_RETURN_IF_ERROR(EncodeColumn(stripe_index, at, bytes, files));
      at += bytes;
    }
    for (size_t i = 0; i < n(); ++i) {
      stripe.blocks[i].sha256 = files[i].sha256.FinishHex();
      ECPIPE_RETURN_IF_ERROR(CommitBlock(stripe.blocks[i], &files[i]));
      meter_.Did(options_.block_bytes);
    }
    manifest_.stripes.push_back(std::move(stripe));
    return absl::OkStatus();
  }

  // The checksums first; block_checksums.h says why.
  absl::Status CommitBlock(const ManifestBlock& described, OpenBlockFile* block) {
    if (block->checksums) {
      ECPIPE_RETURN_IF_ERROR(created_.Commit(&*block->checksums, described.sha256));
    } else {
      const std::string& path = block->file.path();
      const std::string directory = path.substr(0, path.size() - described.block_id.size());
      // Of a block of this id once.
      ::unlink((directory + ChecksumFileName(described.block_id)).c_str());
    }
    return created_.Commit(&block->file);
  }

  bool WritesChecksums() const { return options_.checksum_files == ChecksumFiles::kWrite; }

  absl::Status EncodeColumn(size_t stripe_index, uint64_t offset, size_t bytes,
                            std::vector<OpenBlockFile>& files) {
    buffers_.ClearRows(bytes);
    for (size_t j = 0; j < k(); ++j) {
      const uint64_t block_start = (stripe_index * k() + j) * options_.block_bytes;
      const std::span<uint8_t> source = buffers_.source(bytes);
      ECPIPE_RETURN_IF_ERROR(ReadInput(block_start + offset, source));
      ECPIPE_RETURN_IF_ERROR(files[j].Append(offset, source));
      meter_.Did(bytes);
      parity_columns_[j].MultiplyAdd(buffers_.rows(), source.data(), bytes);
    }
    for (size_t p = 0; p < n() - k(); ++p) {
      ECPIPE_RETURN_IF_ERROR(files[k() + p].Append(offset, buffers_.row(p, bytes)));
      meter_.Did(bytes);
    }
    return absl::OkStatus();
  }

  const EncodeOptions& options_;
  const ErasureCode& code_;
  const UniqueFd input_;
  const FileStamp stamp_;
  const std::vector<BlockColumn> parity_columns_;
  ColumnBuffers buffers_;
  WorkMeter meter_;
  Created created_;
  Manifest manifest_;
};

// What `work` makes of an encoder with these options.
absl::StatusOr<Manifest> WithEncoder(const EncodeOptions& options,
                                     absl::StatusOr<Manifest> (Encoder::*work)()) {
  ECPIPE_ASSIGN_OR_RETURN(const auto code, CreateErasureCode(options.code));
  if (options.block_bytes == 0 || options.block_bytes > kMaxBlockBytes) {
    return absl::InvalidArgumentError("the block size must be 1 to " +
                                      std::to_string(kMaxBlockBytes) + " bytes");
  }
  if (!code->layout().Fits(options.block_bytes)) {
    return absl::InvalidArgumentError("the block size of code " + code->name() +
                                      " must be a multiple of " +
                                      std::to_string(code->layout().group_bytes()) + " bytes");
  }
  ECPIPE_RETURN_IF_ERROR(
      Annotate(ValidateBlockId(ManifestFileName(options.name)), "the name with its suffix"));
  ECPIPE_RETURN_IF_ERROR(CheckNodes(options.nodes, code->n()));
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd input, OpenForReading(options.input_path));
  ECPIPE_ASSIGN_OR_RETURN(const FileStamp stamp, StampOf(input.get()));
  ECPIPE_RETURN_IF_ERROR(CheckEndsAt(input.get(), stamp.bytes, options.input_path));
  Encoder encoder(options, *code, std::move(input), stamp);
  return (encoder.*work)();
}

}  // namespace

absl::StatusOr<Manifest> EncodeFile(const EncodeOptions& options) {
  return WithEncoder(options, &Encoder::Run);
}

absl::StatusOr<Manifest> PlanEncoding(const EncodeOptions& options) {
  return WithEncoder(options, &Encoder::Plan);
}

}  // namespace ecpipe
