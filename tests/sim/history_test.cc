// SPDX-License-Identifier: Apache-2.0
// JudgeHistory, on histories that are good and on those that are not.
#include "sim/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::sim::history_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = HistoryEvent::Kind;

HistoryEvent Placed(const std::string& block, const std::string& node) {
  return {.kind = Kind::kPlaced, .stripe = "s", .block = block, .node = node};
}
HistoryEvent Moved(const std::string& block, const std::string& node, RecoveryId recovery) {
  return {.kind = Kind::kMoved, .stripe = "s", .block = block, .node = node, .recovery = recovery};
}
HistoryEvent Recovered(const std::string& node, RecoveryId recovery) {
  return {.kind = Kind::kRecovered, .node = node, .recovery = recovery};
}
HistoryEvent Starts(const std::string& node) { return {.kind = Kind::kNodeStarts, .node = node}; }
HistoryEvent Begins(const std::string& node, uint32_t attempt) {
  return {.kind = Kind::kPartBegins, .node = node, .repair = 7, .attempt = attempt};
}
HistoryEvent Ends(const std::string& node, uint32_t attempt) {
  return {.kind = Kind::kPartEnds, .node = node, .repair = 7, .attempt = attempt};
}
HistoryEvent Handed(const std::string& reader, uint64_t offset, uint64_t bytes) {
  return {.kind = Kind::kHandedOver, .reader = reader, .offset = offset, .bytes = bytes};
}
HistoryEvent GoesOn(uint32_t attempt, uint64_t missing) {
  return {.kind = Kind::kGoesOn, .repair = 7, .attempt = attempt, .bytes = missing};
}

TEST(History, OfAGoodRecovery) {
  EXPECT_THAT(JudgeHistory({Placed("a", "n1"), Placed("b", "n2"), Moved("a", "n3", 1),
                            Recovered("n1", 1), Moved("a", "n4", 2), Recovered("n3", 2)}),
              IsEmpty());
}

TEST(History, ABlockIsRebuiltOnceARecovery) {
  EXPECT_THAT(JudgeHistory({Placed("a", "n1"), Moved("a", "n3", 1), Moved("a", "n4", 1)}),
              ElementsAre(HasSubstr("rebuilt block a twice")));
  // A coordinator that crashed after the first may say it again.
  EXPECT_THAT(JudgeHistory({Placed("a", "n1"), Moved("a", "n3", 1), Moved("a", "n3", 1)}),
              IsEmpty());
  // By two repairs that somebody asked for it may be.
  EXPECT_THAT(JudgeHistory({Placed("a", "n1"), Moved("a", "n3", 0), Moved("a", "n4", 0)}),
              IsEmpty());
}

TEST(History, ARecoveryThatIsDoneLeavesNoBlock) {
  EXPECT_THAT(JudgeHistory({Placed("a", "n1"), Placed("b", "n2"), Recovered("n1", 1)}),
              ElementsAre(HasSubstr("block a is still on n1")));
}

TEST(History, TwoBlocksOfAStripeAreNotOnOneNode) {
  EXPECT_THAT(JudgeHistory({Placed("a", "n1"), Placed("b", "n2"), Moved("a", "n2", 1)}),
              ElementsAre(HasSubstr("blocks b and a of stripe s are both on n2")));
  // The other one has gone before.
  EXPECT_THAT(JudgeHistory(
                  {Placed("a", "n1"), Placed("b", "n2"), Moved("b", "n3", 1), Moved("a", "n2", 1)}),
              IsEmpty());
}

TEST(History, AReadersBytesFollowOnEachOther) {
  EXPECT_THAT(JudgeHistory({Handed("r", 100, 50), Handed("r", 150, 10), Handed("q", 0, 1)}),
              IsEmpty());
  EXPECT_THAT(JudgeHistory({Handed("r", 0, 50), Handed("r", 40, 10)}),
              ElementsAre(HasSubstr("r got bytes from 40 on, and had got all before 50")));
  EXPECT_THAT(JudgeHistory({Handed("r", 0, 50), Handed("r", 60, 10)}),
              ElementsAre(HasSubstr("r got bytes from 60 on, and had got all before 50")));
}

TEST(History, NoPartOfAnEarlierAttemptRunsBesideALaterOne) {
  EXPECT_THAT(JudgeHistory({Begins("n1", 1), Ends("n1", 1), Begins("n1", 2), Ends("n1", 2)}),
              IsEmpty());
  EXPECT_THAT(JudgeHistory({Begins("n1", 2), Begins("n1", 1)}),
              ElementsAre(HasSubstr("n1 began attempt 1 of repair 7 after attempt 2")));
  // The network may bring an order twice.
  EXPECT_THAT(JudgeHistory({Begins("n1", 1), Begins("n1", 1)}), IsEmpty());
  EXPECT_THAT(JudgeHistory({Begins("n1", 1), Begins("n1", 2), Ends("n1", 1)}),
              ElementsAre(HasSubstr("ended attempt 1 of repair 7 well after it had begun")));
  EXPECT_THAT(JudgeHistory({Ends("n1", 1)}), ElementsAre(HasSubstr("had not begun")));
  // A helper that has crashed knows nothing of it.
  EXPECT_THAT(JudgeHistory({Begins("n1", 2), Starts("n1"), Begins("n1", 1)}), IsEmpty());
  EXPECT_THAT(JudgeHistory({Begins("n1", 2), Begins("n2", 1)}), IsEmpty());
}

TEST(History, ARepairNeverMissesMoreThanItDid) {
  EXPECT_THAT(JudgeHistory({GoesOn(1, 50), GoesOn(2, 50), GoesOn(3, 10)}), IsEmpty());
  EXPECT_THAT(JudgeHistory({GoesOn(1, 50), GoesOn(2, 60)}),
              ElementsAre(HasSubstr("attempt 2 of repair 7 misses 60 bytes, and an earlier one "
                                    "missed 50")));
}

TEST(History, ABlockOfAnUnknownStripeIsWithNoOther) {
  HistoryEvent moved = Moved("a", "n2", 1), other = Moved("b", "n2", 1);
  moved.stripe = other.stripe = "";
  EXPECT_THAT(JudgeHistory({moved, other}), IsEmpty());
}

}  // namespace
}  // namespace ecpipe::sim::history_test
