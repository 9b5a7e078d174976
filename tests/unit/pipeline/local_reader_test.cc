// SPDX-License-Identifier: Apache-2.0
#include "pipeline/local_reader.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <optional>
#include <vector>

namespace ecpipe::local_reader_test {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr int kPatienceMillis = 20'000;
constexpr uint32_t kSliceBytes = 16;

// What a test sees of a block while the reader owns it.
struct Watch {
  std::atomic<int> waiting_reads{0};
  std::atomic<int> quick_reads{0};
  std::promise<void> entered;    // the hung read has begun
  std::promise<void> answer;     // lets it go on
  std::promise<void> destroyed;  // the block is gone
};

struct BlockPlan {
  int quick_until = INT_MAX;  // this many reads are answered at once
  int fail_at = INT_MAX;      // reads at or beyond this slice fail
  int throw_at = INT_MAX;     // for the waiting read of this slice there is no memory
  int hang_at = INT_MAX;      // the waiting read of this slice hangs until `answer`
};

class WatchedBlock : public BlockReader {
 public:
  WatchedBlock(uint64_t bytes, BlockPlan plan, Watch* watch)
      : bytes_(bytes), plan_(plan), watch_(watch) {}
  ~WatchedBlock() override { watch_->destroyed.set_value(); }

  static uint8_t ByteAt(uint64_t offset) { return static_cast<uint8_t>(offset * 7 + offset / 256); }

  uint64_t bytes() const override { return bytes_; }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    ++watch_->waiting_reads;
    if (SliceOf(offset) == plan_.hang_at) {
      watch_->entered.set_value();
      watch_->answer.get_future().wait();
    }
    if (SliceOf(offset) >= plan_.fail_at) return absl::DataLossError("bad sector");
    if (SliceOf(offset) == plan_.throw_at) throw std::bad_alloc();
    Fill(offset, out);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (SliceOf(offset) >= plan_.quick_until) return false;
    if (SliceOf(offset) >= plan_.fail_at) return absl::DataLossError("bad page");
    ++watch_->quick_reads;
    Fill(offset, out);
    return true;
  }

 private:
  static int SliceOf(uint64_t offset) { return static_cast<int>(offset / kSliceBytes); }
  static void Fill(uint64_t offset, std::span<uint8_t> out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = ByteAt(offset + i);
  }

  const uint64_t bytes_;
  const BlockPlan plan_;
  Watch* const watch_;
};

class LocalReaderTest : public testing::Test {
 protected:
  void Open(uint32_t slices, uint32_t ring_slots, BlockPlan plan,
            LocalReader::Slots slots = LocalReader::Slots::kHeldUntilSent) {
    LocalReader::Options options;
    // The last slice is short.
    options.grid = {.offset = 0, .bytes = slices * kSliceBytes - 5, .slice_bytes = kSliceBytes};
    options.slices = LaneSlices::All(slices);
    options.ring_slots = ring_slots;
    options.slots = slots;
    grid_ = options.grid;
    reader_ = std::make_unique<LocalReader>(
        std::make_unique<WatchedBlock>(options.grid.bytes, plan, &*watch_), options, wakeup_);
  }

  // Goes on until at least `wanted` slices are there, or an error.
  absl::StatusOr<uint32_t> ProgressTo(uint32_t seen, uint32_t wanted) {
    while (true) {
      const absl::StatusOr<uint32_t> read = reader_->Progress(seen);
      if (!read.ok() || *read >= wanted) return read;
      if (*read == seen) {
        pollfd polled{wakeup_->fd(), POLLIN, 0};
        if (::poll(&polled, 1, kPatienceMillis) != 1) {
          return absl::DeadlineExceededError("no slice came, and no wakeup");
        }
        wakeup_->Drain();
      }
      seen = *read;
    }
  }

  bool SliceIsRight(uint32_t ordinal) {
    const uint8_t* bytes = reader_->Slice(ordinal, 0);
    for (uint32_t i = 0; i < grid_.SliceBytes(ordinal); ++i) {
      if (bytes[i] != WatchedBlock::ByteAt(uint64_t{ordinal} * kSliceBytes + i)) return false;
    }
    return true;
  }

  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::optional<Watch> watch_ = std::make_optional<Watch>();
  SliceGrid grid_;
  std::unique_ptr<LocalReader> reader_;
};

TEST_F(LocalReaderTest, ReadsWhatIsInMemoryOneSliceAtATimeAndOnlyWhenAsked) {
  Open(5, 2, {});
  reader_->Allow(2);
  EXPECT_EQ(watch_->quick_reads, 0);
  for (uint32_t i = 0; i < 5; ++i) {
    reader_->Allow(std::min(5u, i + 2));
    EXPECT_EQ(reader_->Progress(i).value(), i + 1);
    EXPECT_TRUE(SliceIsRight(i)) << i;
  }
  EXPECT_EQ(reader_->Progress(5).value(), 5u);
  EXPECT_EQ(watch_->quick_reads, 5);
  EXPECT_EQ(watch_->waiting_reads, 0) << "no slice is read twice";
}

TEST_F(LocalReaderTest, StopsAtTheLimit) {
  Open(5, 2, {});
  EXPECT_EQ(reader_->Progress(0).value(), 0u);
  reader_->Allow(1);
  EXPECT_EQ(reader_->Progress(0).value(), 1u);
  EXPECT_EQ(reader_->Progress(1).value(), 1u);
  EXPECT_EQ(watch_->quick_reads, 1);
}

TEST_F(LocalReaderTest, UsesTheSameBytesAgainWhenTheyAreNeededOnlyUntilCombined) {
  Open(3, 2, {}, LocalReader::Slots::kFreeOnceCombined);
  reader_->Allow(2);
  ASSERT_EQ(reader_->Progress(0).value(), 1u);
  const uint8_t* first = reader_->Slice(0, 0);
  ASSERT_EQ(reader_->Progress(1).value(), 2u);
  EXPECT_EQ(reader_->Slice(1, 0), first);
  EXPECT_TRUE(SliceIsRight(1));
}

TEST_F(LocalReaderTest, HoldsSlicesUntilTheyAreSentWhenToldTo) {
  Open(3, 2, {});
  reader_->Allow(2);
  ASSERT_EQ(reader_->Progress(0).value(), 1u);
  ASSERT_EQ(reader_->Progress(1).value(), 2u);
  EXPECT_NE(reader_->Slice(0, 0), reader_->Slice(1, 0));
  EXPECT_TRUE(SliceIsRight(0));
  EXPECT_TRUE(SliceIsRight(1));
}

TEST_F(LocalReaderTest, AThreadTakesOverWhereADiskMustBeWaitedFor) {
  for (const auto slots :
       {LocalReader::Slots::kFreeOnceCombined, LocalReader::Slots::kHeldUntilSent}) {
    watch_.emplace();
    Open(50, 4, {.quick_until = 7}, slots);
    uint32_t combined = 0;
    while (combined < 50) {
      reader_->Allow(std::min(50u, combined + 4));
      const absl::StatusOr<uint32_t> read = ProgressTo(combined, combined + 1);
      ASSERT_TRUE(read.ok()) << read.status();
      for (; combined < *read; ++combined) ASSERT_TRUE(SliceIsRight(combined)) << combined;
    }
    EXPECT_EQ(watch_->quick_reads, 7);
    EXPECT_EQ(watch_->waiting_reads, 43);
    reader_.reset();
  }
}

// A block that ends within a slice, and one before others.
TEST_F(LocalReaderTest, GivesZerosBehindTheBlocksEnd) {
  for (const int quick_until : {INT_MAX, 0}) {
    watch_.emplace();
    LocalReader::Options options;
    options.grid = {.offset = 3, .bytes = 5 * kSliceBytes, .slice_bytes = kSliceBytes};
    options.slices = LaneSlices::All(5);
    options.ring_slots = 5;
    constexpr uint64_t kBlockBytes = 3 + 2 * kSliceBytes + 5;
    reader_ = std::make_unique<LocalReader>(
        std::make_unique<WatchedBlock>(kBlockBytes, BlockPlan{.quick_until = quick_until},
                                       &*watch_),
        options, wakeup_);
    reader_->Allow(5);
    ASSERT_TRUE(ProgressTo(0, 5).ok());
    for (uint32_t slice = 0; slice < 5; ++slice) {
      for (uint32_t i = 0; i < kSliceBytes; ++i) {
        const uint64_t offset = options.grid.SliceOffset(slice) + i;
        const uint8_t expected = offset < kBlockBytes ? WatchedBlock::ByteAt(offset) : 0;
        ASSERT_EQ(reader_->Slice(slice, 0)[i], expected) << offset;
      }
    }
    EXPECT_EQ(watch_->quick_reads + watch_->waiting_reads, 3) << "zeros are not read";
    reader_.reset();
  }
}

// Two of three sub-blocks in units of 8, two units a slice.
TEST_F(LocalReaderTest, ReadsSubBlocksPieceByPiece) {
  for (const int quick_until : {INT_MAX, 4}) {  // reads from byte 64 on must wait: within slice 1
    watch_.emplace();
    LocalReader::Options options;
    options.grid = {.offset = 8, .bytes = 72, .slice_bytes = 16};
    options.slices = LaneSlices::All(5);
    options.layout = {3, 8};
    options.sub_blocks = {0, 2};
    options.ring_slots = 2;
    reader_ = std::make_unique<LocalReader>(
        std::make_unique<WatchedBlock>(240, BlockPlan{.quick_until = quick_until}, &*watch_),
        options, wakeup_);
    for (uint32_t slice = 0; slice < 5; ++slice) {
      reader_->Allow(std::min(5u, slice + 2));
      ASSERT_TRUE(ProgressTo(slice, slice + 1).ok());
      for (size_t which = 0; which < 2; ++which) {
        for (uint32_t i = 0; i < options.grid.SliceBytes(slice); ++i) {
          const uint64_t place = options.grid.SliceOffset(slice) + i;
          const uint64_t offset = (place / 8 * 3 + 2 * which) * 8 + place % 8;
          ASSERT_EQ(reader_->Slice(slice, which)[i], WatchedBlock::ByteAt(offset)) << offset;
        }
      }
    }
    EXPECT_EQ(watch_->waiting_reads > 0, quick_until == 4);
    reader_.reset();
  }
}

TEST_F(LocalReaderTest, TheThreadIsToldOfHalfARingAtATime) {
  Open(20, 8, {.quick_until = 0});
  reader_->Allow(8);
  ASSERT_EQ(ProgressTo(0, 8).value(), 8u);
  for (uint32_t limit = 9; limit < 12; ++limit) {
    reader_->Allow(limit);
    EXPECT_EQ(reader_->Progress(8).value(), 8u);
    EXPECT_FALSE(reader_->WaitsForDisk(8)) << "nobody has asked it";
  }
  EXPECT_EQ(watch_->waiting_reads, 8);
  reader_->Allow(12);
  EXPECT_EQ(ProgressTo(8, 12).value(), 12u);
  // The end is told at once, however near it is.
  reader_->Allow(19);
  EXPECT_EQ(ProgressTo(12, 19).value(), 19u);
  reader_->Allow(20);
  EXPECT_EQ(ProgressTo(19, 20).value(), 20u);
}

TEST_F(LocalReaderTest, ReportsAnErrorOfEitherWayToRead) {
  Open(5, 4, {.fail_at = 1});
  reader_->Allow(4);
  ASSERT_EQ(reader_->Progress(0).value(), 1u);
  EXPECT_EQ(reader_->Progress(1).status(), absl::DataLossError("bad page"));
}

TEST_F(LocalReaderTest, AnErrorOfTheThreadWakesTheConsumer) {
  Open(5, 4, {.quick_until = 0, .fail_at = 2});
  reader_->Allow(4);
  EXPECT_EQ(ProgressTo(0, 3).status(), absl::DataLossError("bad sector"));
  EXPECT_EQ(watch_->waiting_reads, 3) << "nothing is read after an error";
}

TEST_F(LocalReaderTest, WithoutMemoryForAReadThatFails) {
  Open(5, 4, {.quick_until = 0, .throw_at = 2});
  reader_->Allow(4);
  EXPECT_TRUE(absl::IsResourceExhausted(ProgressTo(0, 3).status()));
}

TEST_F(LocalReaderTest, EndsWhileItsThreadWaitsForWork) {
  Open(20, 4, {.quick_until = 0});
  reader_->Allow(4);
  ASSERT_EQ(ProgressTo(0, 4).value(), 4u);
  reader_.reset();
  EXPECT_EQ(watch_->destroyed.get_future().wait_for(std::chrono::seconds(0)),
            std::future_status::ready);
}

TEST_F(LocalReaderTest, AHungReadNeitherHoldsTheEndNorTouchesFreedMemory) {
  Open(8, 4, {.quick_until = 0, .hang_at = 2});
  reader_->Allow(4);
  ASSERT_EQ(ProgressTo(0, 2).value(), 2u);
  watch_->entered.get_future().wait();
  EXPECT_TRUE(reader_->WaitsForDisk(2));
  const auto begin = std::chrono::steady_clock::now();
  reader_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  auto destroyed = watch_->destroyed.get_future();
  EXPECT_EQ(destroyed.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "the block is the hung thread's";
  // The disk answers: the read fills a buffer that must still be there (a sanitizer would say).
  watch_->answer.set_value();
  EXPECT_EQ(destroyed.wait_for(std::chrono::milliseconds(kPatienceMillis)),
            std::future_status::ready);
  EXPECT_EQ(watch_->waiting_reads, 3) << "it reads no more";
}

}  // namespace
}  // namespace ecpipe::local_reader_test
