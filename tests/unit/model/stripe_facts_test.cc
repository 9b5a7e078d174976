// SPDX-License-Identifier: Apache-2.0
#include "model/stripe_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/plan/slice_grid.h"

namespace ecpipe::stripe_facts_test {
namespace {

StripeFacts Facts() {
  return {"s.1", "xor(3,2)", {{"a", 7}, {"b", 0}, {"c", 7}}, {{0, "n-1"}, {2, "n-2"}, {2, "n-3"}}};
}

TEST(StripeFacts, TakesAnySystemsStripe) {
  EXPECT_TRUE(Facts().Validate().ok()) << Facts().Validate();
  EXPECT_EQ(Facts().LongestBlock(), 7u);
}

TEST(StripeFacts, RefusesWhatCannotBe) {
  const auto refused = [](void (*change)(StripeFacts*), const std::string& why) {
    StripeFacts facts = Facts();
    change(&facts);
    const absl::Status status = facts.Validate();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << why;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(why));
  };
  refused([](StripeFacts* f) { f->stripe_id = ""; }, "the stripe's id");
  refused([](StripeFacts* f) { f->stripe_id = "../s"; }, "the stripe's id");
  refused([](StripeFacts* f) { f->code = ""; }, "code");
  refused([](StripeFacts* f) { f->code = std::string(65, 'x'); }, "code");
  refused([](StripeFacts* f) { f->blocks.clear(); }, "0 blocks");
  refused([](StripeFacts* f) { f->blocks.resize(256, {"x", 1}); }, "256 blocks");
  refused([](StripeFacts* f) { f->blocks[1].name = "a/b"; }, "the name of a block");
  refused([](StripeFacts* f) { f->blocks[1].name = ""; }, "the name of a block");
  refused([](StripeFacts* f) { f->blocks[1].name = "c"; }, "two blocks have the name c");
  refused([](StripeFacts* f) { f->blocks[1].bytes = kMaxBlockBytes + 1; }, "over the limit");
  refused([](StripeFacts* f) { f->blocks[0].bytes = f->blocks[2].bytes = 0; }, "has a byte");
  refused([](StripeFacts* f) { f->sources[0].index = 3; }, "the stripe has blocks 0 to 2");
  refused([](StripeFacts* f) { f->sources[0].index = -1; }, "block -1");
  refused([](StripeFacts* f) { f->sources[0].storage_id = "a b"; }, "storage id");
  refused([](StripeFacts* f) { f->sources[0].index = 1; }, "block 1, which is empty");
  refused([](StripeFacts* f) { f->sources.resize(513, {0, "n"}); }, "513 sources");
}

}  // namespace
}  // namespace ecpipe::stripe_facts_test
