// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/block_report_proto.h"

#include <string>

#include "base/status.h"
#include "model/systems/hdfs_block.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {
namespace {

// Of at most some 30 bytes.
constexpr int kBlocksInPiece = 20'000;

v1::ReportBlocksRequest PieceOf(const BlockReport& report) {
  v1::ReportBlocksRequest piece;
  piece.set_node_id(report.node);
  piece.set_incarnation(report.incarnation);
  piece.set_sequence(report.sequence);
  piece.set_after(report.after);
  return piece;
}

// Sends a piece when it is full, and the pools' parts in pieces.
class PieceWriter {
 public:
  PieceWriter(const BlockReport& report,
              const std::function<bool(const v1::ReportBlocksRequest&)>& write)
      : report_(report), write_(write), piece_(PieceOf(report)) {}

  void Begin(const std::string& pool) {
    pool_name_ = &pool;
    pool_ = nullptr;
  }

  // Where the next block goes; null once a write has failed.
  v1::ReportBlocksRequest::Pool* Next() {
    if (in_piece_ == kBlocksInPiece && !Flush()) return nullptr;
    ++in_piece_;
    if (pool_ == nullptr) {
      pool_ = piece_.add_pools();
      pool_->set_pool(*pool_name_);
    }
    return pool_;
  }

  bool End() {
    piece_.set_last(true);
    return Flush();
  }

 private:
  bool Flush() {
    const bool written = write_(piece_);
    piece_ = PieceOf(report_);
    pool_ = nullptr;
    in_piece_ = 0;
    return written;
  }

  const BlockReport& report_;
  const std::function<bool(const v1::ReportBlocksRequest&)>& write_;
  v1::ReportBlocksRequest piece_;
  const std::string* pool_name_ = nullptr;
  v1::ReportBlocksRequest::Pool* pool_ = nullptr;  // in the piece; null: not there yet
  int in_piece_ = 0;
};

absl::Status CheckId(const std::string& pool, int64_t id) {
  if (pool == kQfsPool) {
    if (id > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(std::to_string(id) + " is not the id of a QFS chunk");
  }
  if (id < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(std::to_string(id) +
                                    " is not the id of a block of an HDFS block group");
}

}  // namespace

bool WriteReport(const BlockReport& report,
                 const std::function<bool(const v1::ReportBlocksRequest&)>& write) {
  PieceWriter writer(report, write);
  for (const auto& [pool, changes] : report.pools) {
    writer.Begin(pool);
    for (const BlockChanges::Added& added : changes.added) {
      v1::ReportBlocksRequest::Pool* const to = writer.Next();
      if (to == nullptr) return false;
      to->add_ids(added.block.id);
      to->add_stamps(added.block.stamp);
      to->add_bytes(added.block.bytes);
      to->add_ages_ms(added.age_ms);
    }
    for (const int64_t id : changes.removed) {
      v1::ReportBlocksRequest::Pool* const to = writer.Next();
      if (to == nullptr) return false;
      to->add_removed(id);
    }
  }
  return writer.End();
}

uint64_t BlocksIn(const v1::ReportBlocksRequest& piece) {
  uint64_t blocks = 0;
  for (const v1::ReportBlocksRequest::Pool& pool : piece.pools()) {
    blocks += static_cast<uint64_t>(pool.ids_size()) + static_cast<uint64_t>(pool.removed_size());
  }
  return blocks;
}

absl::Status ReportAssembler::Add(const v1::ReportBlocksRequest& piece) {
  if (!begun_) {
    begun_ = true;
    report_.node = piece.node_id();
    report_.incarnation = piece.incarnation();
    report_.sequence = piece.sequence();
    report_.after = piece.after();
    if (report_.sequence == 0 || report_.after >= report_.sequence) {
      return absl::InvalidArgumentError(
          "the number of a report must be at least 1 and above that of the report before it");
    }
  } else if (complete_ || piece.node_id() != report_.node ||
             piece.incarnation() != report_.incarnation || piece.sequence() != report_.sequence ||
             piece.after() != report_.after) {
    return absl::InvalidArgumentError(
        "the message belongs to another report than the messages before it");
  }
  for (const v1::ReportBlocksRequest::Pool& pool : piece.pools()) {
    ECPIPE_RETURN_IF_ERROR(AddPool(pool));
  }
  complete_ = piece.last();
  return absl::OkStatus();
}

absl::Status ReportAssembler::AddPool(const v1::ReportBlocksRequest::Pool& pool) {
  ECPIPE_RETURN_IF_ERROR(ValidateHdfsPool(pool.pool()));
  const int added = pool.ids_size();
  if (pool.stamps_size() != added || pool.bytes_size() != added || pool.ages_ms_size() != added) {
    return absl::InvalidArgumentError(
        "the lists of ids, generation stamps, lengths and ages of a pool differ in length");
  }
  blocks_ += static_cast<uint64_t>(added) + static_cast<uint64_t>(pool.removed_size());
  if (blocks_ > max_blocks_) {
    return absl::ResourceExhaustedError("a report lists at most " + std::to_string(max_blocks_) +
                                        " blocks");
  }
  BlockChanges& changes = report_.pools[pool.pool()];
  if (report_.pools.size() > BlockReport::kMaxPools) {
    return absl::ResourceExhaustedError("a node has at most " +
                                        std::to_string(BlockReport::kMaxPools) + " block pools");
  }
  for (int i = 0; i < added; ++i) {
    ECPIPE_RETURN_IF_ERROR(CheckId(pool.pool(), pool.ids(i)));
    changes.added.push_back({{pool.ids(i), pool.stamps(i), pool.bytes(i)}, pool.ages_ms(i)});
  }
  for (const int64_t id : pool.removed()) {
    ECPIPE_RETURN_IF_ERROR(CheckId(pool.pool(), id));
    changes.removed.push_back(id);
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
