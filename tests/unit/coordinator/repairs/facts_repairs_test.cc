// SPDX-License-Identifier: Apache-2.0
// Repairs of stripes that no catalog has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coordinator/planning/scheme.h"
#include "coordinator/planning/wanted_blocks.h"
#include "model/systems/hdfs_group.h"
#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::facts_repairs_test {
namespace {

using ::testing::HasSubstr;

class FactsRepairs : public Repairs {
 protected:
  void SetUp() override {
    for (int i = 0; i < 7; ++i) RegisterDatanode("n" + std::to_string(i), "dn" + std::to_string(i));
  }
  void RegisterDatanode(const std::string& node, const std::string& storage_id) {
    NodeRecord record = FakeNode(node);
    record.storage_id = storage_id;
    ASSERT_TRUE(coordinator_.Register(record).ok());
  }

  // Of (3, 2), block i on DataNode i. Blocks have 250, 200, 200, 250, 250 bytes.
  static StripeFacts Facts(uint64_t bytes = 650) {
    HdfsGroup group{.pool = "BP-1",
                    .group = -32,
                    .stamp = 7,
                    .bytes = bytes,
                    .codec = "rs",
                    .data = 3,
                    .parity = 2,
                    .cell_bytes = 100,
                    .sources = {}};
    for (int i = 0; i < 5; ++i) {
      if (group.BlockBytes(i) > 0) group.sources.push_back({i, "dn" + std::to_string(i)});
    }
    return group.Facts();
  }
  static RepairRequest RequestOf(const StripeFacts& facts, int target) {
    RepairRequest request = Request(facts.blocks[static_cast<size_t>(target)].name);
    request.facts = facts;
    return request;
  }
  static void Without(int index, StripeFacts* facts) {
    std::erase_if(facts->sources,
                  [index](const StripeFacts::Source& source) { return source.index == index; });
  }

  // What each helper is to read: the block's name and its length.
  std::map<std::string, std::pair<std::string, uint64_t>> Reads() {
    std::map<std::string, std::pair<std::string, uint64_t>> reads;
    for (const HelperGateway::Handout& handout : helpers_.last) {
      for (const HopSpec& hop : handout.part.hops) {
        if (hop.block) reads[handout.helper.node] = {hop.block->block_id, hop.block->bytes};
      }
    }
    return reads;
  }
};

TEST_F(FactsRepairs, PlansOverTheDatanodesHelpers) {
  StripeFacts facts = Facts();
  Without(0, &facts);
  helpers_.checksum = ChecksumKind{ChecksumKind::Type::kCrc32, 1024};
  const auto grant = coordinator_.BeginRepair(RequestOf(facts, 0));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->stripe_id, "hdfs.BP-1.-32");
  EXPECT_EQ(grant->block_lengths, std::vector<uint64_t>{250});
  EXPECT_EQ(grant->part.grid.bytes, 250u);
  EXPECT_EQ(grant->checksum, helpers_.checksum);
  // Of their own lengths, though the range is longer.
  EXPECT_EQ(Reads(), (std::map<std::string, std::pair<std::string, uint64_t>>{
                         {"n1", {"BP-1.blk_-31_7", 200}},
                         {"n2", {"BP-1.blk_-30_7", 200}},
                         {"n3", {"BP-1.blk_-29_7", 250}}}));
}

TEST_F(FactsRepairs, TheRangeEndsWithTheBlock) {
  EXPECT_EQ(coordinator_.BeginRepair(RequestOf(Facts(), 1))->part.grid.bytes, 200u);
  RepairRequest beyond = RequestOf(Facts(), 1);
  beyond.offset = 200;
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BeginRepair(beyond).status()));
}

TEST_F(FactsRepairs, BlocksThatEndBeforeTheRangeAreNotRead) {
  RepairRequest request = RequestOf(Facts(), 3);
  request.offset = 200;
  ASSERT_TRUE(coordinator_.BeginRepair(request).ok());
  EXPECT_EQ(Reads().size(), 1u) << "only block 0, or the other parity, has a byte there";
}

TEST_F(FactsRepairs, BlocksThatDoNotExistAreZero) {
  const StripeFacts facts = Facts(150);  // 100, 50, 0 bytes
  ASSERT_EQ(facts.sources.size(), 4u);
  for (const int target : {0, 1, 3, 4}) {
    StripeFacts left = facts;
    Without(target, &left);
    ASSERT_TRUE(coordinator_.BeginRepair(RequestOf(left, target)).ok()) << target;
    EXPECT_EQ(Reads().size(), 2u);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BeginRepair(RequestOf(facts, 2)).status()));
}

TEST_F(FactsRepairs, TheShortestBlockCanBeRepaired) {
  EXPECT_EQ(coordinator_.BeginRepair(RequestOf(Facts(101), 1))->part.grid.bytes, 1u);
}

TEST_F(FactsRepairs, AnyBlockMayEndBeforeTheRange) {
  RepairRequest request = RequestOf(Facts(), 3);
  request.facts->blocks[0].bytes = 100;
  request.offset = 150;
  ASSERT_TRUE(coordinator_.BeginRepair(request).ok());
  EXPECT_FALSE(Reads().contains("n0"));
}

TEST_F(FactsRepairs, ADatanodeWithoutHelperIsNamed) {
  StripeFacts facts = Facts();
  facts.sources = {{1, "dn1"}, {2, "dn2"}, {3, "stranger"}};
  const absl::Status status = coordinator_.BeginRepair(RequestOf(facts, 0)).status();
  // The coordinator has just started: it may still come.
  EXPECT_TRUE(absl::IsUnavailable(status));
  clock_.Advance(std::chrono::seconds(4));
  for (int i = 0; i < 7; ++i) RegisterDatanode("n" + std::to_string(i), "dn" + std::to_string(i));
  clock_.Advance(std::chrono::seconds(2));
  const absl::Status later = coordinator_.BeginRepair(RequestOf(facts, 0)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(later)) << later;
  EXPECT_TRUE(Says(later, "storage:stranger: its helper has not registered")) << later;
  EXPECT_TRUE(Says(later, "BP-1.blk_-28_7: no node is known to have it")) << later;
}

TEST_F(FactsRepairs, ANodeThatDiedBeforeTheStartMayStillRegister) {
  StripeFacts facts = Facts();
  facts.sources = {{1, "dn1"}, {2, "dn2"}, {3, "dn9"}};
  NodeRecord remembered = FakeNode("n9");
  remembered.storage_id = "dn9";
  ASSERT_TRUE(coordinator_.nodes().AddDead(remembered, std::chrono::seconds(60)).ok());
  const absl::Status status = coordinator_.BeginRepair(RequestOf(facts, 0)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  clock_.Advance(std::chrono::seconds(4));
  for (int i = 0; i < 7; ++i) RegisterDatanode("n" + std::to_string(i), "dn" + std::to_string(i));
  clock_.Advance(std::chrono::seconds(2));
  const absl::Status later = coordinator_.BeginRepair(RequestOf(facts, 0)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(later)) << later;
}

TEST_F(FactsRepairs, AnyReplicaThatIsLiveWillDo) {
  StripeFacts facts = Facts();
  facts.sources = {{1, "stranger"}, {1, "dn5"}, {1, "dn6"}, {2, "dn2"}, {3, "dn3"}};
  ASSERT_TRUE(coordinator_.BeginRepair(RequestOf(facts, 0)).ok());
  EXPECT_EQ(Reads().at("n5").first, "BP-1.blk_-31_7");
  // It refuses: the other one is taken, within the same call.
  helpers_.down = {"n5"};
  const auto grant = coordinator_.BeginRepair(RequestOf(facts, 0));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->part.attempt, 1u);
  EXPECT_EQ(Reads().at("n6").first, "BP-1.blk_-31_7");
}

TEST_F(FactsRepairs, ABlockThatIsReadDirectlyComesFromALiveReplicaToo) {
  StripeFacts facts = Facts();
  facts.sources = {{0, "stranger"}, {0, "dn5"}, {1, "dn1"}, {2, "dn2"}};
  RepairRequest request = RequestOf(facts, 0);
  request.scheme = "direct";
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(Reads().begin()->first, "n5");
}

TEST_F(FactsRepairs, ANodeIsReadForTwoBlocksOnlyIfNoOtherOneWillDo) {
  StripeFacts facts = Facts();
  facts.sources = {{1, "dn1"}, {2, "dn1"}, {2, "dn5"}, {3, "dn1"}, {4, "dn4"}};
  ASSERT_TRUE(coordinator_.BeginRepair(RequestOf(facts, 0)).ok());
  EXPECT_EQ(Reads().size(), 3u);
  EXPECT_EQ(Reads().at("n5").first, "BP-1.blk_-30_7");
  facts.sources = {{1, "dn1"}, {2, "dn1"}, {3, "dn1"}, {4, "dn4"}};
  for (const std::string& scheme : SchemesThatRepair()) {
    RepairRequest request = RequestOf(facts, 0);
    request.scheme = scheme;
    const auto grant = coordinator_.BeginRepair(request);
    ASSERT_TRUE(grant.ok()) << scheme << ": " << grant.status();
    std::set<std::string> read;
    for (const auto& handout : helpers_.last) {
      for (const HopSpec& hop : handout.part.hops) {
        if (hop.block) read.insert(handout.helper.node + " " + hop.block->block_id);
      }
    }
    EXPECT_TRUE(read.contains("n1 BP-1.blk_-31_7")) << scheme;
    EXPECT_GE(read.size(), 3u) << scheme;
  }
}

TEST_F(FactsRepairs, AFailedAttemptIsResumedFromTheSameFacts) {
  const RepairRequest request = RequestOf(Facts(), 0);
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok());
  ASSERT_TRUE(coordinator_.CheckProgress(grant->repair_id, 0, 250, true).ok());
  helpers_.down = {"n2"};
  ResumePoint from;
  from.repair_id = grant->repair_id;
  from.left = {grant->part.grid, {{1, 2, 1}}};
  from.scheme = "rp";
  from.failure = absl::UnavailableError("n2 has gone");
  const auto again = coordinator_.ResumeRepair(request, from);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(Reads().contains("n2"));
  // A coordinator that has restarted takes it up as well.
  RepairCoordinator fresh(&catalog_, &journal_, &helpers_, &clock_, {});
  for (int i = 0; i < 7; ++i) {
    NodeRecord record = FakeNode("n" + std::to_string(i));
    record.storage_id = "dn" + std::to_string(i);
    ASSERT_TRUE(fresh.Register(record).ok());
  }
  journal_.records[grant->repair_id].state = RepairState::kInterrupted;
  EXPECT_TRUE(fresh.ResumeRepair(request, from).ok());
}

TEST_F(FactsRepairs, ACorruptReplicaIsLeftOut) {
  const RepairRequest request = RequestOf(Facts(), 0);
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok());
  const std::string block = "BP-1.blk_-30_7";
  // Not from somebody who has not read it.
  coordinator_.ReportCorrupt("n1", grant->repair_id, block, "a lie");
  coordinator_.ReportCorrupt("n2", grant->repair_id + 1, block, "of no repair");
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
  coordinator_.ReportCorrupt("n2", grant->repair_id, block, "its bytes differ");
  EXPECT_EQ(coordinator_.corrupt().Reason(block, "n2"), "its bytes differ");
  ASSERT_TRUE(coordinator_.BeginRepair(request).ok());
  EXPECT_FALSE(Reads().contains("n2"));
  // The replica elsewhere is good.
  StripeFacts facts = Facts();
  facts.sources.push_back({2, "dn6"});
  ASSERT_TRUE(coordinator_.BeginRepair(RequestOf(facts, 0)).ok());
  EXPECT_EQ(Reads().at("n6").first, block);
  // A requestor that has found one by parity means the one that it was sent.
  coordinator_.ReportCorrupt("", grant->repair_id, "BP-1.blk_-31_7", "does not fit");
  EXPECT_EQ(coordinator_.corrupt().Suspicion("BP-1.blk_-31_7", "n1"), "does not fit");
}

// HDFS is to hear what a helper found on its own disks, of the replicas that HDFS counts on.
TEST_F(FactsRepairs, NamesTheSourcesWhoseHelpersFoundThemCorrupt) {
  const RepairRequest request = RequestOf(Facts(), 0);
  const RepairId first = coordinator_.BeginRepair(request)->repair_id;
  EXPECT_TRUE(coordinator_.CorruptSources(first).empty());
  coordinator_.ReportCorrupt("", first, "BP-1.blk_-31_7", "says the requestor's parity");
  EXPECT_TRUE(coordinator_.CorruptSources(first).empty()) << "nobody else can accuse a replica";
  coordinator_.ReportCorrupt("n1", first, "BP-1.blk_-31_7", "its bytes differ");
  coordinator_.ReportCorrupt("n2", first, "BP-1.blk_-30_7", "its bytes differ");
  const std::vector<StripeFacts::Source> corrupt = {{1, "dn1"}, {2, "dn2"}};
  EXPECT_EQ(coordinator_.CorruptSources(first), corrupt);
  coordinator_.FinishRepair(first, {absl::OkStatus(), 250});
  EXPECT_TRUE(coordinator_.CorruptSources(first).empty()) << "the repair is over";
  // Later repairs of the group do not read them, and know nothing of them at first hand: HDFS may
  // have restored a replica meanwhile.
  StripeFacts facts = Facts();
  Without(2, &facts);
  facts.sources.push_back({1, "dn6"});
  facts.sources.push_back({2, "dn5"});
  const auto grant = coordinator_.BeginRepair(RequestOf(facts, 0));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_TRUE(coordinator_.CorruptSources(grant->repair_id).empty());
}

// Blocks 0, 1 and 4 have 250, 200 and 250 bytes.
TEST_F(FactsRepairs, SeveralBlocksAreRepairedToTheEndOfTheLongest) {
  RepairRequest request = RequestOf(Facts(), 1);
  request.block_ids.push_back(request.facts->blocks[0].name);
  const std::vector<uint64_t> lengths = {200, 250};
  for (const uint64_t bytes : {0, 250}) {
    request.bytes = bytes;
    const auto grant = coordinator_.BeginRepair(request);
    ASSERT_TRUE(grant.ok()) << grant.status();
    EXPECT_EQ(grant->part.grid.bytes, 250u) << bytes;
    EXPECT_EQ(grant->block_lengths, lengths) << "each says where it ends";
    EXPECT_EQ(grant->part.hops[0].stored_rows, (std::vector<Row>{0, 1}));
    EXPECT_EQ(Reads().size(), 3u) << "each survivor once";
  }
  request.bytes = 251;
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BeginRepair(request).status()));
}

TEST_F(FactsRepairs, ABlockThatDoesNotExistIsRefusedBesideOneThatDoes) {
  RepairRequest request = RequestOf(Facts(90), 0);
  request.block_ids.push_back(request.facts->blocks[1].name);
  const absl::Status refused = coordinator_.BeginRepair(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_TRUE(Says(refused, "BP-1.blk_-31_7 does not exist")) << refused;
}

TEST_F(FactsRepairs, WhatCannotBeIsRefused) {
  RepairRequest request = RequestOf(Facts(), 0);
  request.block_ids = {"b0"};
  EXPECT_TRUE(Says(coordinator_.BeginRepair(request).status(), "not of stripe hdfs.BP-1.-32"));
  request = RequestOf(Facts(), 0);
  request.facts->code = "rs-vandermonde";
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BeginRepair(request).status()));
  request = RequestOf(Facts(), 0);
  request.hosts = {"n6"};
  EXPECT_TRUE(Says(coordinator_.BeginRepair(request).status(), "stores its blocks itself"));
}

TEST_F(FactsRepairs, AreValid) {
  StripeFacts facts = Facts();
  facts.stripe_id.clear();
  const absl::Status refused =
      FindWanted(facts, {facts.blocks[0].name}, &coordinator_.nodes()).status();
  EXPECT_TRUE(Says(refused, "the facts of the stripe: ")) << refused;
}

TEST_F(FactsRepairs, FitTheirCode) {
  CodeCache codes;
  StripeFacts facts = Facts();
  const auto refused = [&](const std::string& what) {
    return Says(CheckFacts(facts, &codes), "the facts of stripe hdfs.BP-1.-32: " + what);
  };
  EXPECT_TRUE(CheckFacts(facts, &codes).ok()) << "blocks of one code may differ in length";
  facts.code = "rs(6,4)";
  EXPECT_TRUE(refused("there are 5 blocks, but code rs-cauchy(6,4) needs 6"))
      << CheckFacts(facts, &codes);
  facts.code = "magic";
  EXPECT_TRUE(refused("")) << CheckFacts(facts, &codes);
  facts = Facts(600);
  facts.code = "rotated-rs(5,3,2,10)";
  EXPECT_TRUE(CheckFacts(facts, &codes).ok()) << CheckFacts(facts, &codes);
  facts.blocks[1].bytes -= 20;
  EXPECT_TRUE(refused("code rotated-rs(5,3,2,10) needs blocks of one length"));
  for (StripeFacts::Block& block : facts.blocks) block.bytes = 190;
  EXPECT_TRUE(refused("code rotated-rs(5,3,2,10) needs blocks of one length, a multiple of 20"));
}

TEST_F(FactsRepairs, VerifiesByParity) {
  RepairRequest request = RequestOf(Facts(150), 0);
  request.verify = Verification::kParity;
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(Reads().size(), 3u) << "one more than the two that a shortened stripe needs";
}

TEST_F(FactsRepairs, EachSchemeHasAPlan) {
  std::vector<std::string> schemes = SchemesThatRepair();
  schemes.push_back("auto");
  for (const std::string& scheme : schemes) {
    for (const uint64_t bytes : {uint64_t{650}, uint64_t{150}, uint64_t{90}}) {
      StripeFacts facts = Facts(bytes);
      Without(0, &facts);
      RepairRequest request = RequestOf(facts, 0);
      request.scheme = scheme;
      const auto grant = coordinator_.BeginRepair(request);
      EXPECT_TRUE(grant.ok()) << scheme << " " << bytes << ": " << grant.status();
    }
  }
}

}  // namespace
}  // namespace ecpipe::facts_repairs_test
