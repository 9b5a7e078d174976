// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/qfs/qfs_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "unit/coordinator/fakes.h"
#include "unit/coordinator/sources/qfs/scripted_metaserver.h"

namespace ecpipe::qfs_source_test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kChunk = kQfsChunkBytes;

// The value of a header of a request; empty: it has none.
std::string HeaderOf(const std::string& request, const std::string& key) {
  const size_t at = request.find("\r\n" + key + ": ");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 4;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

// A file of 3 + 3 chunks a group with cells of 64 KiB, of two groups; of the second only the first
// data chunk has bytes.
class QfsSourceTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 3 * kChunk + 1000;

  void SetUp() override {
    for (int i = 0; i < 6; ++i) {
      chunks_.push_back({static_cast<uint64_t>(i) * kChunk,
                         65539 + i,
                         1,
                         {"127.0.0.1:" + std::to_string(22000 + i)}});
    }
    for (const int i : {0, 3, 4, 5}) {
      chunks_.push_back({static_cast<uint64_t>(6 + i) * kChunk,
                         65600 + i,
                         1,
                         {"127.0.0.1:" + std::to_string(22000 + i)}});
    }
    clock_.Advance(std::chrono::hours(1));
  }

  std::string Answer(const std::string& request) {
    MutexLock lock(&mutex_);
    if (script_) {
      if (const std::string said = script_(request); said != "as ever") return said;
    }
    const std::string begin = "OK\r\nCseq: " + HeaderOf(request, "Cseq") + "\r\n";
    const std::string attributes =
        "File-handle: 5\r\nFile-size: " + std::to_string(file_bytes_) +
        "\r\nStriper-type: 2\r\nNum-stripes: 3\r\nNum-recovery-stripes: 3\r\nStripe-size: 65536"
        "\r\n\r\n";
    if (request.starts_with("GETPATHNAME")) {
      for (const QfsLayoutChunk& chunk : chunks_) {
        if (std::to_string(chunk.chunk) != HeaderOf(request, "Chunk-handle")) continue;
        return begin + "Status: 0\r\nChunk-offset: " + std::to_string(chunk.address) +
               "\r\nChunk-version: " + std::to_string(chunk.version) + "\r\n" + attributes;
      }
      return begin + "Status: -2\r\nStatus-message: no such chunk\r\n\r\n";
    }
    if (request.starts_with("LOOKUP_PATH")) {
      if (HeaderOf(request, "Pathname") == "/a b") return begin + "Status: 0\r\n" + attributes;
      return begin + "Status: -2\r\n\r\n";
    }
    return begin + Layout(std::stoull(HeaderOf(request, "Start-offset")),
                          std::min<size_t>(std::stoul(HeaderOf(request, "Max-chunks")), most_));
  }

  std::string Layout(uint64_t from, size_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string content;
    size_t listed = 0;
    bool more = false;
    for (const QfsLayoutChunk& chunk : chunks_) {
      if (chunk.address < from) continue;
      more = listed == most;
      if (more) break;
      ++listed;
      content += std::to_string(chunk.address) + " " + std::to_string(chunk.chunk) + " " +
                 std::to_string(chunk.version) + " " + std::to_string(chunk.servers.size()) + " ";
      for (const std::string& server : chunk.servers) {
        content +=
            server.substr(0, server.find(':')) + " " + server.substr(server.find(':') + 1) + " ";
      }
    }
    return "Status: 0\r\nFile-size: " + std::to_string(file_bytes_) +
           "\r\nNum-chunks: " + std::to_string(announced_.value_or(listed)) +
           (more ? "\r\nHas-more-chunks: 1" : "") +
           "\r\nContent-length: " + std::to_string(content.size()) + "\r\n\r\n" + content;
  }

  void Say(std::function<std::string(const std::string&)> script) {
    MutexLock lock(&mutex_);
    script_ = std::move(script);
  }
  absl::StatusOr<StripeFacts> Facts(const std::string& block, const std::string& claim = "") {
    return source_.FactsOf(block, claim);
  }
  // Of the chunk 65540, as a request says it.
  static QfsPlace Place() { return {{5, kBytes, 2, 3, 3, 65536}, {5, 65540, 1}, kChunk}; }

  Mutex mutex_;
  std::function<std::string(const std::string&)> script_ ABSL_GUARDED_BY(mutex_);
  std::vector<QfsLayoutChunk> chunks_;
  uint64_t file_bytes_ = kBytes;
  size_t most_ = 1000;               // chunks in an answer
  std::optional<size_t> announced_;  // how many an answer says it has, if not so many
  FakeClock clock_;
  NodeRegistry nodes_{&clock_, std::chrono::seconds(5), {}, ""};
  CorruptBlocks corrupt_;
  ScriptedMetaServer server_{[this](const std::string& request) { return Answer(request); }};
  QfsSource source_{&nodes_,
                    &corrupt_,
                    {{server_.address()}, std::chrono::seconds(2), std::chrono::seconds(2)},
                    &clock_};
};

TEST_F(QfsSourceTest, AChunkAloneTellsItsStripe) {
  chunks_[1].servers.clear();  // it is lost
  const auto facts = Facts("qfs.5.65540.1");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->stripe_id, "qfs.5.0");
  EXPECT_EQ(facts->code, "qfs-rs(3,3)");
  ASSERT_EQ(facts->blocks.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(facts->blocks[i],
              (StripeFacts::Block{"qfs.5." + std::to_string(65539 + i) + ".1", kChunk}));
  }
  EXPECT_EQ(facts->sources.size(), 5u);
  EXPECT_EQ(facts->sources[1], (StripeFacts::Source{2, "qfs.127.0.0.1_22002"}));
}

TEST_F(QfsSourceTest, HolesAreBlocksThatDoNotExist) {
  const auto facts = Facts("qfs.5.65600.1");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->stripe_id, "qfs.5.1");
  EXPECT_EQ(facts->blocks[0].bytes, 1000u);
  EXPECT_EQ(facts->blocks[1].bytes, 0u);
  EXPECT_EQ(facts->blocks[2].bytes, 0u);
  EXPECT_EQ(facts->blocks[3], (StripeFacts::Block{"qfs.5.65603.1", 1000}));
  EXPECT_EQ(facts->sources.size(), 4u);
}

TEST_F(QfsSourceTest, AHoleInAFullGroupIsZeros) {
  chunks_.erase(chunks_.begin() + 2);
  const auto facts = Facts("qfs.5.65540.1");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->blocks[2], (StripeFacts::Block{"qfs.5.hole.134217728", 0}));
}

// Its bytes are not known to be zeros: QFS writes the cells of a group in turn.
TEST_F(QfsSourceTest, AHoleBeforeAChunkIsRefused) {
  for (const int missing : {0, 1}) {
    const QfsLayoutChunk gone = chunks_[static_cast<size_t>(missing)];
    chunks_.erase(chunks_.begin() + missing);
    for (const absl::Status& status :
         {Facts("qfs.5.65541.1").status(), source_.FileAt("/a b", 0).status()}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("no data chunk at address " + std::to_string(gone.address) +
                            ", but chunks behind it"));
    }
    EXPECT_TRUE(source_.FileAt("/a b", 3 * kChunk).ok()) << "the other group has none";
    chunks_.insert(chunks_.begin() + missing, gone);
  }
  chunks_.erase(chunks_.begin(), chunks_.begin() + 3);
  EXPECT_TRUE(absl::IsFailedPrecondition(Facts("qfs.5.65542.1").status()))
      << "a group without data has no recovery chunks";
}

TEST_F(QfsSourceTest, AGroupThatIsNotWrittenToItsEndIsRefused) {
  chunks_.erase(chunks_.begin() + 4);
  const absl::Status status = Facts("qfs.5.65540.1").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("not written to its end"));
}

TEST_F(QfsSourceTest, ATruncatedListIsReadOn) {
  most_ = 2;
  const auto facts = Facts("qfs.5.65540.1");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->sources.size(), 6u);
  EXPECT_EQ(server_.requests(), 4);
}

TEST_F(QfsSourceTest, AnswersAreUsedAgainForAWhile) {
  ASSERT_TRUE(Facts("qfs.5.65540.1").ok());
  ASSERT_TRUE(Facts("qfs.5.65540.1", Place().Claim()).ok());
  EXPECT_EQ(server_.requests(), 2);
  clock_.Advance(std::chrono::seconds(3));
  ASSERT_TRUE(Facts("qfs.5.65540.1").ok());
  EXPECT_EQ(server_.requests(), 4);
}

TEST_F(QfsSourceTest, AClaimMustBeExactlyWhatTheMetaserverSays) {
  EXPECT_TRUE(Facts("qfs.5.65540.1", Place().Claim()).ok());
  const auto refused = [&](void (*change)(QfsPlace*), const std::string& why) {
    QfsPlace place = Place();
    change(&place);
    const absl::Status status = Facts("qfs.5.65540.1", place.Claim()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  refused([](QfsPlace* place) { place->file.cell_bytes = 4096; }, "cell is 65536 and not 4096");
  refused([](QfsPlace* place) { place->file.bytes += 1; }, "file-size");
  refused([](QfsPlace* place) { place->address = 0; }, "chunk-offset");
  refused([](QfsPlace* place) { place->file.data = 4; }, "data is 3 and not 4");
  refused([](QfsPlace* place) { place->id.chunk = 65541; }, "chunk is 65540 and not 65541");
  EXPECT_TRUE(absl::IsInvalidArgument(Facts("qfs.5.65540.1", "nonsense").status()));
}

TEST_F(QfsSourceTest, OtherVersionsAndUnknownChunksAreRefused) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Facts("qfs.5.65540.2").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Facts("qfs.6.65540.1").status()));
  EXPECT_TRUE(absl::IsNotFound(Facts("qfs.5.77777.1").status()));
  EXPECT_EQ(source_.Overview()->facts.last_error, "") << "an answer is no trouble";
}

TEST_F(QfsSourceTest, AFileThatChangesBetweenTwoAnswersIsAskedForAgain) {
  Say([this](const std::string& request) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (request.starts_with("GETLAYOUT")) file_bytes_ = kBytes + 1;
    return std::string("as ever");
  });
  EXPECT_TRUE(Facts("qfs.5.65540.1").ok());
  EXPECT_EQ(server_.requests(), 4);
}

TEST_F(QfsSourceTest, AMetaserverThatRestartsIsAskedOnceMore) {
  int asked = 0;
  Say([&asked](const std::string&) { return std::string(asked++ == 0 ? "" : "as ever"); });
  EXPECT_TRUE(Facts("qfs.5.65540.1").ok());
}

TEST_F(QfsSourceTest, GarbageAndSilenceAreTroublesOfTheMetaserver) {
  for (const std::string& garbage :
       {std::string("\0\1\2\3\r\n\r\n", 8), std::string("OK\r\nCseq: 77\r\n\r\n"),
        std::string("OK\r\n\r\n"), std::string(100'000, 'x')}) {
    Say([&garbage](const std::string&) { return garbage; });
    const absl::Status status = Facts("qfs.5.65540.1").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(source_.Overview()->facts.last_error, "");
  }
  Say([](const std::string&) { return std::string("OK\r\nCseq: 1\r\n"); });  // and no more
  EXPECT_TRUE(absl::IsUnavailable(Facts("qfs.5.65540.1").status()));
  EXPECT_THAT(source_.Overview()->facts.last_error, HasSubstr("has not answered in time"));
  Say(nullptr);
  EXPECT_TRUE(Facts("qfs.5.65540.1").ok());
  EXPECT_EQ(source_.Overview()->facts.last_error, "");
}

TEST_F(QfsSourceTest, WithoutAMetaserverItSaysWhatToDo) {
  QfsSource without(&nodes_, &corrupt_, {}, &clock_);
  const absl::Status none = without.FactsOf("qfs.5.65540.1", "").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("[qfs] metaservers"));
  EXPECT_FALSE(without.Overview());
  QfsSource nowhere(&nodes_, &corrupt_, {{"127.0.0.1:1"}, std::chrono::seconds(2), {}}, &clock_);
  EXPECT_TRUE(absl::IsUnavailable(nowhere.FactsOf("qfs.5.65540.1", "").status()));
  QfsSource second(&nodes_, &corrupt_,
                   {{"127.0.0.1:1", server_.address()}, std::chrono::seconds(2), {}}, &clock_);
  EXPECT_TRUE(second.FactsOf("qfs.5.65540.1", "").ok()) << "the other one answers";
}

TEST_F(QfsSourceTest, ASilentMetaserverLeavesTheNextItsShareOfTheTime) {
  ScriptedMetaServer silent([](const std::string&) { return std::string("OK\r\n"); });
  QfsSource both(&nodes_, &corrupt_,
                 {{silent.address(), server_.address()}, std::chrono::seconds(2), {}}, &clock_);
  const TimePoint begun = Clock::System().Now();
  const auto facts = both.FactsOf("qfs.5.65540.1", "");
  EXPECT_TRUE(facts.ok()) << facts.status();
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(2));
  EXPECT_EQ(silent.requests(), 1);
  EXPECT_TRUE(both.FactsOf("qfs.5.65541.1", "").ok());
  EXPECT_EQ(silent.requests(), 1) << "the one that answered last is asked first";
}

TEST_F(QfsSourceTest, ThoseWhoWaitForASilentMetaserverAreLimited) {
  ScriptedMetaServer silent([](const std::string&) { return std::string("OK\r\n"); });
  QfsSource source(&nodes_, &corrupt_, {{silent.address()}, std::chrono::seconds(2), {}}, &clock_);
  constexpr int kSurplus = 10;
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < QfsSource::kMaxAsking + QfsSource::kMaxWaiting + kSurplus; ++i) {
    threads.emplace_back([&] {
      const absl::Status status = source.FactsOf("qfs.5.65540.1", "").status();
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      const std::string message(status.message());
      if (message.find("wait already") != std::string::npos) ++refused;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(refused, 1);
  EXPECT_LE(refused, kSurplus);
  Say(nullptr);
  EXPECT_TRUE(Facts("qfs.5.65540.1").ok());
}

TEST_F(QfsSourceTest, AMetaserverThatIsNotThePrimaryIsNotTheLastToBeAsked) {
  for (const std::string answer : {"Status: -1008", "Status: -1009", "Status: -1010", "nonsense"}) {
    ScriptedMetaServer backup([answer](const std::string& request) {
      return "OK\r\nCseq: " + HeaderOf(request, "Cseq") + "\r\n" + answer + "\r\n\r\n";
    });
    QfsSource both(&nodes_, &corrupt_,
                   {{backup.address(), server_.address()}, std::chrono::seconds(2), {}}, &clock_);
    const auto facts = both.FactsOf("qfs.5.65540.1", "");
    EXPECT_TRUE(facts.ok()) << answer << facts.status();
    EXPECT_EQ(backup.requests(), 1);
  }
}

TEST_F(QfsSourceTest, AFileIsFoundByItsPath) {
  const auto file = source_.FileAt("/a b", 0);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->id, "5");
  EXPECT_EQ(file->bytes, kBytes);
  ASSERT_EQ(file->parts.size(), 2u);
  EXPECT_EQ(file->parts[0].data_blocks,
            (std::vector<std::string>{"qfs.5.65539.1", "qfs.5.65540.1", "qfs.5.65541.1"}));
  EXPECT_EQ(file->parts[1].offset, 3 * kChunk);
  EXPECT_EQ(file->parts[1].bytes, 1000u);
  EXPECT_EQ(file->parts[1].data_blocks, (std::vector<std::string>{"qfs.5.65600.1", "", ""}));
  EXPECT_EQ(source_.FileAt("/a b", 3 * kChunk)->parts.size(), 1u);
  EXPECT_TRUE(source_.FileAt("/a b", kBytes)->parts.empty());
  EXPECT_TRUE(absl::IsNotFound(source_.FileAt("/none", 0).status()));
  for (const char* path : {"", "relative", "/a\r\nb"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(source_.FileAt(path, 0).status())) << path;
  }
}

TEST_F(QfsSourceTest, AMissingChunkOfAFileIsZerosOnlyInAGroupWrittenToItsEnd) {
  chunks_.erase(chunks_.begin() + 2);
  const auto file = source_.FileAt("/a b", 0);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->parts[0].data_blocks[2], "");
  chunks_.erase(chunks_.begin() + 3);  // a recovery chunk
  const absl::Status status = source_.FileAt("/a b", 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not written to its end"));
  EXPECT_TRUE(source_.FileAt("/a b", 3 * kChunk).ok()) << "the other group is complete";
}

TEST_F(QfsSourceTest, AListMustHaveAsManyChunksAsItAnnounces) {
  announced_ = 7;
  for (const absl::Status& status :
       {source_.FileAt("/a b", 0).status(), Facts("qfs.5.65540.1").status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("announces 7 chunks and lists"));
  }
}

TEST_F(QfsSourceTest, ADeadNodesChunksAreLostUntilAnotherReportsThem) {
  const auto report = [&](const std::string& node, int server, std::vector<int64_t> chunks) {
    NodeRecord record = FakeNode(node);
    record.incarnation = 1;
    record.storage_id = "qfs.127.0.0.1_" + std::to_string(server);
    ASSERT_TRUE(nodes_.Register(record).ok());
    BlockChanges changes;
    for (const int64_t chunk : chunks) changes.added.push_back({{chunk, 1, 1000}, 0});
    ASSERT_TRUE(source_.Record({node, 1, 1, 0, {{kQfsPool, changes}}}).ok());
  };
  report("n1", 22001, {65539, 65540});
  EXPECT_EQ(source_.LossOf(*nodes_.Find("n1"), {})->loss.lost.blocks, 0u);
  clock_.Advance(std::chrono::seconds(4));
  report("n2", 22002, {65541});
  clock_.Advance(std::chrono::seconds(4));
  nodes_.Tick();
  auto loss = source_.LossOf(*nodes_.Find("n1"), {"qfs.5.65540.1"});
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(loss->state, "dead");
  EXPECT_EQ(loss->loss.lost, (BlockCount{2, 2000}));
  EXPECT_EQ(loss->loss.outstanding.blocks, 2u);
  EXPECT_EQ(loss->loss.repairs_running, 1u);
  report("n2", 22002, {65541, 65540});
  loss = source_.LossOf(*nodes_.Find("n1"), {});
  EXPECT_EQ(loss->loss.rebuilt.blocks, 1u);
  EXPECT_EQ(loss->loss.outstanding.blocks, 1u);
  EXPECT_EQ(source_.Overview()->blocks, 2u);
  report("n3", 22003, {65000, 65539, 70000});
  loss = source_.LossOf(*nodes_.Find("n1"), {});
  EXPECT_EQ(loss->loss.rebuilt.blocks, 2u) << "on different nodes";
}

TEST_F(QfsSourceTest, AnOlderVersionElsewhereIsNoRebuiltChunk) {
  const auto report = [&](const std::string& node, int server, int64_t chunk, uint64_t version) {
    NodeRecord record = FakeNode(node);
    record.incarnation = 1;
    record.storage_id = "qfs.127.0.0.1_" + std::to_string(server);
    ASSERT_TRUE(nodes_.Register(record).ok());
    BlockChanges changes;
    changes.added.push_back({{chunk, version, 1000}, 0});
    ASSERT_TRUE(source_.Record({node, 1, 1, 0, {{kQfsPool, changes}}}).ok());
  };
  report("n1", 22001, 65540, 3);
  clock_.Advance(std::chrono::seconds(6));
  nodes_.Tick();
  for (const auto& [version, rebuilt] : {std::pair{2u, 0u}, {3u, 1u}, {4u, 1u}}) {
    report("n2", 22002, 65540, version);
    EXPECT_EQ(source_.LossOf(*nodes_.Find("n1"), {})->loss.rebuilt.blocks, rebuilt) << version;
  }
}

TEST_F(QfsSourceTest, ACorruptChunkThatIsRewrittenOnItsNodeIsReadAgain) {
  NodeRecord record = FakeNode("n1");
  record.incarnation = 1;
  record.storage_id = "qfs.127.0.0.1_22001";
  ASSERT_TRUE(nodes_.Register(record).ok());
  const auto report = [&](uint64_t sequence, std::optional<uint64_t> age_ms) {
    BlockChanges changes;
    if (age_ms) changes.added.push_back({{65540, 1, 1000}, *age_ms});
    EXPECT_TRUE(source_.Record({"n1", 1, sequence, sequence - 1, {{kQfsPool, changes}}}).ok());
  };
  report(1, 0);
  corrupt_.Add({"qfs.5.65540.1", "n1", "flipped", clock_.UnixMillis()});
  clock_.Advance(std::chrono::seconds(60));
  report(2, 61'000);
  EXPECT_EQ(corrupt_.Reason("qfs.5.65540.1", "n1"), "flipped") << "its file is older";
  report(3, std::nullopt);
  EXPECT_EQ(corrupt_.Reason("qfs.5.65540.1", "n1"), "flipped");
  report(4, 1'000);
  EXPECT_EQ(corrupt_.Reason("qfs.5.65540.1", "n1"), "") << "QFS has written it anew";
}

}  // namespace
}  // namespace ecpipe::qfs_source_test
