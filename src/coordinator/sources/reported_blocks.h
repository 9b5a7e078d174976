// SPDX-License-Identifier: Apache-2.0
// The blocks of HDFS block groups that helpers of DataNodes have reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "model/block_report.h"

namespace ecpipe {

// Blocks in the order of their ids, none twice. A copy of a list shares the pieces that it is made
// of, and a change makes anew those alone that it touches.
class BlockList {
  using Piece = std::vector<InternalBlock>;  // never empty
  using Pieces = std::vector<std::shared_ptr<const Piece>>;

 public:
  static constexpr size_t kMostOfAPiece = 1024;  // 24 kB

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = InternalBlock;
    using difference_type = std::ptrdiff_t;
    using pointer = const InternalBlock*;
    using reference = const InternalBlock&;

    Iterator() = default;
    reference operator*() const { return (**piece_)[at_]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      if (++at_ == (*piece_)->size()) *this = Iterator(piece_ + 1, 0);
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class BlockList;
    Iterator(Pieces::const_iterator piece, size_t at) : piece_(piece), at_(at) {}

    Pieces::const_iterator piece_;
    size_t at_ = 0;
  };

  BlockList() = default;
  // In the order of ids, none twice.
  explicit BlockList(const std::vector<InternalBlock>& blocks);

  Iterator begin() const { return {pieces_.begin(), 0}; }
  Iterator end() const { return {pieces_.end(), 0}; }
  // The first block whose id is not below this.
  Iterator LowerBound(int64_t id) const;
  bool empty() const { return size_ == 0; }
  uint64_t size() const { return size_; }
  uint64_t bytes() const { return bytes_; }  // of all blocks
  // Of a block that is named twice the last entry counts, and it is kept if it is also removed.
  void Change(const BlockChanges& changes);

  friend bool operator==(const BlockList& a, const BlockList& b);

 private:
  // Adds blocks whose ids are above all that are there.
  void Append(std::vector<InternalBlock> blocks);

  Pieces pieces_;
  uint64_t size_ = 0;
  uint64_t bytes_ = 0;
};

// The blocks of a node by its last report. Immutable: a new report makes a new object, which shares
// with it what has not changed.
struct NodeBlocks {
  uint64_t incarnation = 0;  // incarnation of the helper
  uint64_t sequence = 0;     // number of the latest report
  TimePoint reported{};      // when that report came
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  std::map<std::string, BlockList> pools;
};

// Thread-safe. Keeps 24 bytes for each block: 240 MB for 10 million blocks. A report takes the time
// and memory of what it changes, and a pointer for each piece of a list.
class ReportedBlocks {
 public:
  using Nodes = std::map<std::string, std::shared_ptr<const NodeBlocks>>;  // shared with readers

  struct Limits {
    uint64_t blocks_of_a_node = BlockReport::kMaxBlocks;
    // Of all nodes together: 2.4 GB, which the unit's MemoryMax of 4 GB has room for beside the
    // reports that are under way. The largest cluster aimed at has 10^9.
    uint64_t blocks = 100'000'000;
  };
  ReportedBlocks() = default;
  explicit ReportedBlocks(const Limits& limits) : limits_(limits) {}

  enum class Outcome {
    kTaken,
    kSendAll,  // the report continues one that is not known here: the helper must send all blocks
  };
  // Takes a report as a whole or not at all. RESOURCE_EXHAUSTED: the node, or all nodes together,
  // would be over a limit.
  absl::StatusOr<Outcome> Record(BlockReport report, TimePoint now);

  // Forgets the node, unless it has reported since `blocks`: what it reports next continues
  // nothing, so that it is asked for all.
  void Forget(const std::string& node, const std::shared_ptr<const NodeBlocks>& blocks);

  // The blocks that a node has reported last, also if it is dead: these are then its lost blocks.
  // Null: no report is known, neither to this process nor, for a dead node, from the process
  // before.
  std::shared_ptr<const NodeBlocks> Of(const std::string& node) const;
  Nodes All() const;

 private:
  const Limits limits_;
  mutable Mutex mutex_;
  Nodes nodes_ ABSL_GUARDED_BY(mutex_);
  uint64_t block_count_ ABSL_GUARDED_BY(mutex_) = 0;  // of all nodes
};

// The block in that pool with that id; null if it is not there. Valid as long as `blocks`.
const InternalBlock* FindBlockIn(const NodeBlocks& blocks, const std::string& pool, int64_t id);

}  // namespace ecpipe
