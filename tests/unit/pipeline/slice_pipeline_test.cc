// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slice_pipeline.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>

namespace ecpipe::slice_pipeline_test {
namespace {

using Position = SlicePipeline::Position;

// Walks a pipeline at random, beside plain counts of what has been done, and compares the two after
// each step.
class Walk {
 public:
  Walk(SlicePipeline::Shape shape, uint32_t seed)
      : shape_(std::move(shape)),
        pipeline_(shape_),
        random_(seed),
        received_(shape_.input_rows.size()),
        sent_(shape_.output_rows.size()) {}

  void ToTheEnd() {
    while (!pipeline_.Done()) {
      Check();
      if (testing::Test::HasFailure()) return;
      ASSERT_TRUE(Step()) << "nothing can be done, though slices are left: combined " << combined_;
    }
    Check();
    EXPECT_EQ(combined_, shape_.slice_count);
    for (size_t i = 0; i < received_.size(); ++i) EXPECT_FALSE(pipeline_.NextReceive(i));
    for (size_t i = 0; i < sent_.size(); ++i) {
      EXPECT_FALSE(pipeline_.NextSend(i));
      EXPECT_TRUE(pipeline_.OutputDone(i));
      EXPECT_FALSE(pipeline_.MoreToSend(i));
    }
    EXPECT_FALSE(pipeline_.NextCombine());
    EXPECT_FALSE(pipeline_.WaitsForLocal());
    EXPECT_EQ(pipeline_.ReadLimit(), shape_.slice_count);
    EXPECT_FALSE(Step()) << "nothing is possible after the end";
  }

 private:
  uint32_t Slices(const std::vector<uint64_t>& frames, const std::vector<uint32_t>& rows,
                  size_t i) const {
    return static_cast<uint32_t>(frames[i] / rows[i]);
  }
  uint32_t Released() const {
    uint32_t least = shape_.slice_count;
    for (size_t i = 0; i < sent_.size(); ++i) {
      least = std::min(least, Slices(sent_, shape_.output_rows, i));
    }
    return least;
  }
  uint32_t Brought() const {
    uint32_t least = std::min(shape_.slice_count, Released() + shape_.ring_slots);
    for (size_t i = 0; i < received_.size(); ++i) {
      least = std::min(least, Slices(received_, shape_.input_rows, i));
    }
    return least;
  }

  void Check() {
    const uint32_t limit = std::min(shape_.slice_count, Released() + shape_.ring_slots);
    ASSERT_EQ(pipeline_.ReadLimit(), limit);
    for (size_t i = 0; i < received_.size(); ++i) {
      const uint32_t rows = shape_.input_rows[i];
      const Position next{Slices(received_, shape_.input_rows, i),
                          static_cast<uint32_t>(received_[i] % rows)};
      ASSERT_EQ(pipeline_.NextReceive(i),
                next.ordinal < limit ? std::optional(next) : std::nullopt);
    }
    const bool inputs_ready = combined_ < Brought();
    const bool local_ready = !shape_.has_local_block || local_read_ > combined_;
    ASSERT_EQ(pipeline_.NextCombine(),
              inputs_ready && local_ready ? std::optional(combined_) : std::nullopt);
    ASSERT_EQ(pipeline_.WaitsForLocal(), inputs_ready && !local_ready);
    for (size_t i = 0; i < sent_.size(); ++i) {
      const uint32_t rows = shape_.output_rows[i];
      const Position next{Slices(sent_, shape_.output_rows, i),
                          static_cast<uint32_t>(sent_[i] % rows)};
      ASSERT_LE(next.ordinal, combined_);
      ASSERT_EQ(pipeline_.NextSend(i),
                next.ordinal < combined_ ? std::optional(next) : std::nullopt);
      ASSERT_EQ(pipeline_.MoreToSend(i), sent_[i] + 1 < uint64_t{combined_} * rows);
      ASSERT_EQ(pipeline_.OutputDone(i), next.ordinal == shape_.slice_count);
    }
    CheckSlots(limit);
  }

  // A slice keeps its slot until it is released, and shares it with no other.
  void CheckSlots(uint32_t limit) {
    slots_.erase(slots_.begin(), slots_.lower_bound(Released()));
    const uint32_t ordinal =
        Released() + static_cast<uint32_t>(random_() % std::max(1u, limit - Released()));
    if (ordinal < limit) slots_.try_emplace(ordinal, pipeline_.SlotOf(ordinal));
    std::set<uint32_t> used;
    for (const auto& [known, slot] : slots_) {
      ASSERT_EQ(pipeline_.SlotOf(known), slot) << "of slice " << known;
      ASSERT_LT(slot, shape_.ring_slots);
      ASSERT_TRUE(used.insert(slot).second) << "slot " << slot << " is used twice";
    }
  }

  // One of the things that can be done; false when there is none.
  bool Step() {
    std::vector<std::function<void()>> possible;
    for (size_t i = 0; i < received_.size(); ++i) {
      if (pipeline_.NextReceive(i)) {
        possible.push_back([this, i] { pipeline_.Received(i), ++received_[i]; });
      }
    }
    if (shape_.has_local_block && local_read_ < pipeline_.ReadLimit()) {
      possible.push_back([this] {
        const uint32_t most = pipeline_.ReadLimit() - local_read_;
        local_read_ += 1 + static_cast<uint32_t>(random_() % most);
        pipeline_.LocalRead(local_read_);
      });
    }
    if (pipeline_.NextCombine()) {
      possible.push_back([this] { pipeline_.Combined(), ++combined_; });
    }
    for (size_t i = 0; i < sent_.size(); ++i) {
      if (pipeline_.NextSend(i)) possible.push_back([this, i] { pipeline_.Sent(i), ++sent_[i]; });
    }
    if (possible.empty()) return false;
    possible[random_() % possible.size()]();
    return true;
  }

  const SlicePipeline::Shape shape_;
  SlicePipeline pipeline_;
  std::mt19937 random_;
  std::vector<uint64_t> received_;  // frames on each input
  std::vector<uint64_t> sent_;      // frames on each output
  uint32_t local_read_ = 0;
  uint32_t combined_ = 0;
  std::map<uint32_t, uint32_t> slots_;
};

TEST(SlicePipeline, KeepsItsInvariantsOnAnyWalk) {
  std::mt19937 random(20260101);
  const auto up_to = [&](uint32_t most) { return static_cast<uint32_t>(random() % (most + 1)); };
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SlicePipeline::Shape shape;
    shape.slice_count = 1 + up_to(40);
    shape.ring_slots = 1 + up_to(9);
    shape.has_local_block = up_to(1) == 1;
    const uint32_t inputs = up_to(3) + (shape.has_local_block ? 0 : 1);
    for (uint32_t i = 0; i < inputs; ++i) shape.input_rows.push_back(1 + up_to(3));
    const uint32_t outputs = 1 + up_to(2);
    for (uint32_t i = 0; i < outputs; ++i) shape.output_rows.push_back(1 + up_to(3));
    Walk(shape, seed).ToTheEnd();
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ": " << shape.slice_count
                               << " slices, ring of " << shape.ring_slots;
  }
}

TEST(SlicePipeline, ARingOfOneGoesInStep) {
  SlicePipeline pipeline({.slice_count = 2,
                          .ring_slots = 1,
                          .has_local_block = true,
                          .input_rows = {1},
                          .output_rows = {1}});
  for (uint32_t slice = 0; slice < 2; ++slice) {
    EXPECT_EQ(pipeline.ReadLimit(), slice + 1);
    EXPECT_EQ(pipeline.NextReceive(0), (Position{slice, 0}));
    EXPECT_FALSE(pipeline.WaitsForLocal());
    pipeline.Received(0);
    EXPECT_EQ(pipeline.NextReceive(0), std::nullopt) << "the ring is full";
    EXPECT_TRUE(pipeline.WaitsForLocal());
    EXPECT_EQ(pipeline.NextCombine(), std::nullopt);
    pipeline.LocalRead(slice + 1);
    EXPECT_EQ(pipeline.NextCombine(), slice);
    EXPECT_EQ(pipeline.NextSend(0), std::nullopt);
    EXPECT_EQ(pipeline.SlotOf(slice), 0u);
    pipeline.Combined();
    EXPECT_EQ(pipeline.NextSend(0), (Position{slice, 0}));
    pipeline.Sent(0);
  }
  EXPECT_TRUE(pipeline.Done());
}

TEST(SlicePipeline, RowsOfASliceTravelOneByOne) {
  SlicePipeline pipeline(
      {.slice_count = 1, .ring_slots = 1, .input_rows = {2}, .output_rows = {1, 2}});
  pipeline.Received(0);
  EXPECT_EQ(pipeline.NextReceive(0), (Position{0, 1}));
  EXPECT_EQ(pipeline.NextCombine(), std::nullopt) << "a row is missing";
  pipeline.Received(0);
  EXPECT_EQ(pipeline.NextCombine(), 0u);
  pipeline.Combined();
  pipeline.Sent(0);
  EXPECT_TRUE(pipeline.OutputDone(0));
  EXPECT_TRUE(pipeline.MoreToSend(1));
  pipeline.Sent(1);
  EXPECT_EQ(pipeline.NextSend(1), (Position{0, 1}));
  EXPECT_FALSE(pipeline.MoreToSend(1));
  EXPECT_FALSE(pipeline.Done());
  pipeline.Sent(1);
  EXPECT_TRUE(pipeline.Done());
}

TEST(SlicePipeline, TheSlowestOutputHoldsTheRing) {
  SlicePipeline pipeline(
      {.slice_count = 10, .ring_slots = 2, .has_local_block = true, .output_rows = {1, 1}});
  EXPECT_TRUE(pipeline.WaitsForLocal()) << "without inputs only the block is waited for";
  pipeline.LocalRead(2);
  pipeline.Combined();
  pipeline.Combined();
  pipeline.Sent(0);
  pipeline.Sent(0);
  EXPECT_EQ(pipeline.ReadLimit(), 2u);
  EXPECT_FALSE(pipeline.WaitsForLocal()) << "no slot is free";
  pipeline.Sent(1);
  EXPECT_EQ(pipeline.ReadLimit(), 3u);
  EXPECT_TRUE(pipeline.WaitsForLocal());
}

TEST(SlicePipeline, TheSlotUsedLastIsGivenFirst) {
  SlicePipeline pipeline(
      {.slice_count = 10, .ring_slots = 4, .has_local_block = true, .output_rows = {1}});
  for (uint32_t slice = 0; slice < 10; ++slice) {
    EXPECT_EQ(pipeline.SlotOf(slice), 0u) << "one slice at a time needs one slot";
    pipeline.LocalRead(slice + 1);
    pipeline.Combined();
    pipeline.Sent(0);
  }
}

TEST(SlicePipelineDeathTest, WhatIsNotPossibleIsABrokenInvariant) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const SlicePipeline::Shape shape{.slice_count = 2,
                                   .ring_slots = 1,
                                   .has_local_block = true,
                                   .input_rows = {1},
                                   .output_rows = {1}};
  EXPECT_DEATH(SlicePipeline(shape).Combined(), "broken invariant");
  EXPECT_DEATH(SlicePipeline(shape).Sent(0), "broken invariant");
  EXPECT_DEATH(SlicePipeline(shape).LocalRead(2), "broken invariant");
  EXPECT_DEATH(SlicePipeline(shape).SlotOf(1), "broken invariant");
  EXPECT_DEATH(SlicePipeline({.slice_count = 1, .ring_slots = 1, .output_rows = {1}}),
               "broken invariant");
  SlicePipeline::Shape without_slices = shape;
  without_slices.slice_count = 0;
  EXPECT_DEATH(SlicePipeline{without_slices}, "broken invariant");
  SlicePipeline::Shape without_slots = shape;
  without_slots.ring_slots = 0;
  EXPECT_DEATH(SlicePipeline{without_slots}, "broken invariant");
  SlicePipeline::Shape without_outputs = shape;
  without_outputs.output_rows.clear();
  EXPECT_DEATH(SlicePipeline{without_outputs}, "broken invariant");
  SlicePipeline full(shape);
  full.Received(0);
  EXPECT_DEATH(full.Received(0), "broken invariant");
}

}  // namespace
}  // namespace ecpipe::slice_pipeline_test
