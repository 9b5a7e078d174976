// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slice_pipeline.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace ecpipe {
namespace {

// Takes random possible steps to the end and checks the invariants after each.
void Walk(const SlicePipeline::Shape& shape, uint32_t seed) {
  SlicePipeline pipeline(shape);
  std::mt19937 random(seed);
  std::vector<uint64_t> received(shape.input_rows.size());
  std::vector<uint64_t> sent(shape.output_rows.size());
  uint32_t combined = 0;
  uint32_t read = 0;
  for (int step = 0; !pipeline.Done(); ++step) {
    ASSERT_LT(step, 1'000'000) << "no end in sight, seed " << seed;
    switch (random() % 4) {
      case 0:
        if (!received.empty()) {
          const size_t input = random() % received.size();
          if (const auto next = pipeline.NextReceive(input)) {
            EXPECT_EQ(next->ordinal, received[input] / shape.input_rows[input]);
            pipeline.Received(input);
            ++received[input];
          }
        }
        break;
      case 1:
        if (shape.has_local_block && read < pipeline.ReadLimit()) pipeline.LocalRead(++read);
        break;
      case 2:
        if (const auto next = pipeline.NextCombine()) {
          EXPECT_EQ(*next, combined);
          for (size_t i = 0; i < received.size(); ++i) {
            EXPECT_GT(received[i] / shape.input_rows[i], combined);
          }
          EXPECT_TRUE(!shape.has_local_block || read > combined);
          pipeline.Combined();
          ++combined;
        }
        break;
      default: {
        const size_t output = random() % sent.size();
        if (const auto next = pipeline.NextSend(output)) {
          EXPECT_LT(next->ordinal, combined);
          pipeline.Sent(output);
          ++sent[output];
        }
      }
    }
    // Slices that are in the ring have slots of their own.
    uint32_t released = shape.slice_count;
    for (size_t i = 0; i < sent.size(); ++i) {
      released = std::min(released, static_cast<uint32_t>(sent[i] / shape.output_rows[i]));
    }
    std::set<uint32_t> slots;
    for (uint32_t ordinal = released; ordinal < pipeline.ReadLimit(); ++ordinal) {
      EXPECT_TRUE(slots.insert(pipeline.SlotOf(ordinal)).second);
      EXPECT_LT(pipeline.SlotOf(ordinal), shape.ring_slots);
    }
    EXPECT_LE(pipeline.ReadLimit() - released, shape.ring_slots);
  }
  EXPECT_EQ(combined, shape.slice_count);
  EXPECT_FALSE(pipeline.NextCombine().has_value());
}

TEST(SlicePipeline, RandomWalksKeepTheInvariants) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Walk({.slice_count = 9,
          .ring_slots = 4,
          .has_local_block = true,
          .input_rows = {1},
          .output_rows = {1}},
         seed);
    Walk({.slice_count = 5, .ring_slots = 1, .has_local_block = true, .output_rows = {1}}, seed);
    Walk({.slice_count = 7,
          .ring_slots = 3,
          .has_local_block = true,
          .input_rows = {2, 1, 3},
          .output_rows = {2, 1}},
         seed);
    Walk({.slice_count = 6, .ring_slots = 2, .input_rows = {1, 1, 1, 1}, .output_rows = {1, 1}},
         seed);
  }
}

TEST(SlicePipeline, WaitsForLocalOnlyWhenNothingElseIsMissing) {
  SlicePipeline pipeline({.slice_count = 2,
                          .ring_slots = 2,
                          .has_local_block = true,
                          .input_rows = {1},
                          .output_rows = {1}});
  EXPECT_FALSE(pipeline.WaitsForLocal());
  pipeline.Received(0);
  EXPECT_TRUE(pipeline.WaitsForLocal());
  pipeline.LocalRead(1);
  EXPECT_FALSE(pipeline.WaitsForLocal());
  EXPECT_EQ(pipeline.NextCombine(), 0u);
}

TEST(SlicePipeline, TheSlotUsedLastIsGivenFirst) {
  SlicePipeline pipeline(
      {.slice_count = 10, .ring_slots = 4, .input_rows = {1}, .output_rows = {1}});
  const uint32_t first = pipeline.SlotOf(0);
  pipeline.Received(0);
  pipeline.Combined();
  pipeline.Sent(0);
  EXPECT_EQ(pipeline.SlotOf(1), first);
}

}  // namespace
}  // namespace ecpipe
