// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/qfs/qfs_source.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "coordinator/sources/record_report.h"

namespace ecpipe {
namespace {

// A name for a chunk that does not exist; no file has it.
std::string NameOfHole(const QfsFile& file, uint64_t address) {
  return "qfs." + std::to_string(file.file) + ".hole." + std::to_string(address);
}

// The chunks of a group, by their place in it; nullopt: the metaserver lists none there.
using Group = std::vector<std::optional<QfsLayoutChunk>>;
absl::StatusOr<Group> GroupIn(const QfsFile& file, uint64_t group,
                              const std::vector<QfsLayoutChunk>& layout) {
  const uint64_t begin = file.GroupAddress(group);
  const uint64_t end = file.GroupAddress(group + 1);
  Group chunks(static_cast<size_t>(file.blocks()));
  for (const QfsLayoutChunk& chunk : layout) {
    if (chunk.address < begin || chunk.address >= end) continue;
    if (chunk.address % kQfsChunkBytes != 0) {
      return absl::InvalidArgumentError("the metaserver lists a chunk at address " +
                                        std::to_string(chunk.address) +
                                        ", which is not a multiple of 64 MiB");
    }
    chunks[static_cast<size_t>((chunk.address - begin) / kQfsChunkBytes)] = chunk;
  }
  return chunks;
}

// Whether a data chunk that has bytes is listed nowhere.
bool HasGap(const QfsFile& file, uint64_t group, const Group& chunks) {
  for (int i = 0; i < file.data; ++i) {
    if (!chunks[static_cast<size_t>(i)] && file.ChunkBytes(group, i) > 0) return true;
  }
  return false;
}

// Whether all chunks that the list lacks are holes, whose bytes are zeros. QFS writes the cells of
// a group in turn and then its recovery chunks, so a group that ends before the file's length says
// lacks its last data chunks alone. Without a recovery chunk, what is missing may only be on its
// way; and one that is missing before another has bytes that nobody knows, so QFS, too, takes it
// for damaged.
absl::Status CheckHoles(const QfsFile& file, uint64_t group, const Group& chunks) {
  const auto refuse = [&](int index, const std::string& what) {
    return absl::FailedPreconditionError(
        "group " + file.StripeId(group) + " has no " + what + " at address " +
        std::to_string(file.GroupAddress(group) + static_cast<uint64_t>(index) * kQfsChunkBytes));
  };
  for (int i = file.data; i < file.blocks(); ++i) {
    if (chunks[static_cast<size_t>(i)]) continue;
    absl::Status refused = refuse(i, "recovery chunk");
    return absl::FailedPreconditionError(std::string(refused.message()) +
                                         ", so it is not written to its end");
  }
  int written = 1;  // what is coded has a first chunk
  for (int i = 0; i < file.data; ++i) {
    if (chunks[static_cast<size_t>(i)]) written = i + 1;
  }
  for (int i = 0; i < written; ++i) {
    if (chunks[static_cast<size_t>(i)]) continue;
    absl::Status refused = refuse(i, "data chunk");
    return absl::FailedPreconditionError(std::string(refused.message()) +
                                         ", but chunks behind it; QFS writes no such hole");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<QfsLayoutChunk>> AskLayout(MetaServerClient* client, const QfsFile& file,
                                                      uint64_t group) {
  const uint64_t end = file.GroupAddress(group + 1);
  std::vector<QfsLayoutChunk> chunks;
  // Each answer has one more chunk at least.
  for (uint64_t from = file.GroupAddress(group); from < end;) {
    ECPIPE_ASSIGN_OR_RETURN(const MetaAnswer answer,
                            client->Ask("GETLAYOUT",
                                        {{"File-handle", std::to_string(file.file)},
                                         {"Start-offset", std::to_string(from)},
                                         {"Max-chunks", std::to_string(file.blocks())},
                                         {"Continue-if-no-replicas", "1"}},
                                        "the layout of file " + std::to_string(file.file)));
    ECPIPE_ASSIGN_OR_RETURN(const int64_t bytes, answer.Number("File-size"));
    if (static_cast<uint64_t>(bytes) != file.bytes) {
      return absl::UnavailableError("file " + std::to_string(file.file) +
                                    " has changed its length between two answers; ask again");
    }
    ECPIPE_ASSIGN_OR_RETURN(const int64_t listed, answer.Number("Num-chunks"));
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<QfsLayoutChunk> more, ParseQfsLayout(answer.content));
    if (static_cast<uint64_t>(listed) != more.size()) {
      return absl::InvalidArgumentError("the metaserver announces " + std::to_string(listed) +
                                        " chunks and lists " + std::to_string(more.size()));
    }
    const auto has_more = answer.fields.find("Has-more-chunks");
    for (const QfsLayoutChunk& chunk : more) {
      if (chunk.address < from) {
        return absl::InvalidArgumentError("the metaserver lists chunks that were not asked for");
      }
      if (chunk.address < end) chunks.push_back(chunk);
    }
    if (more.empty() || has_more == answer.fields.end() || has_more->second != "1") break;
    from = more.back().address + kQfsChunkBytes;
  }
  return chunks;
}

absl::StatusOr<QfsPlace> AskPlace(MetaServerClient* client, const QfsChunkId& id) {
  ECPIPE_ASSIGN_OR_RETURN(const MetaAnswer answer,
                          client->Ask("GETPATHNAME", {{"Chunk-handle", std::to_string(id.chunk)}},
                                      "where chunk " + std::to_string(id.chunk) + " is"));
  QfsPlace place;
  ECPIPE_ASSIGN_OR_RETURN(place.file, QfsFileOf(answer));
  place.id = {place.file.file, id.chunk, 0};
  ECPIPE_ASSIGN_OR_RETURN(place.id.version, answer.Number("Chunk-version"));
  ECPIPE_ASSIGN_OR_RETURN(const int64_t address, answer.Number("Chunk-offset"));
  place.address = static_cast<uint64_t>(address);
  ECPIPE_RETURN_IF_ERROR(Annotate(place.Validate(), "the metaserver's answer"));
  return place;
}

// Whether a metaserver has said so, and another one would say the same. What it cannot say, or says
// in no way that is understood, is asked of the next one.
bool IsTold(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

// In the order of their ids.
const BlockList& ChunksOf(const NodeBlocks& blocks) {
  static const BlockList kNone;
  const auto pool = blocks.pools.find(kQfsPool);
  return pool == blocks.pools.end() ? kNone : pool->second;
}

// Which of the lost chunks a node has, in this version or a newer one. It takes a step for each
// chunk, since all lists have one order.
std::vector<bool> RebuiltOf(const BlockList& lost,
                            const std::vector<std::shared_ptr<const NodeBlocks>>& nodes) {
  std::vector<bool> rebuilt(lost.size());
  for (const auto& node : nodes) {
    size_t i = 0;
    auto chunk = lost.begin();
    for (const InternalBlock& has : ChunksOf(*node)) {
      for (; chunk != lost.end() && chunk->id < has.id; ++chunk) ++i;
      if (chunk == lost.end()) break;
      if (chunk->id == has.id && has.stamp >= chunk->stamp) rebuilt[i] = true;
    }
  }
  return rebuilt;
}

absl::Status CheckClaim(const std::string& block_id, const QfsPlace& is, const std::string& claim) {
  if (claim.empty()) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(const QfsPlace said, QfsPlace::OfClaim(claim));
  const std::string difference = DifferenceOf(is, said);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "block " + block_id + ": the request does not say what the metaserver says: " + difference);
}

}  // namespace

absl::StatusOr<StripeFacts> QfsFacts(const QfsPlace& place,
                                     const std::vector<QfsLayoutChunk>& layout) {
  const QfsFile& file = place.file;
  ECPIPE_ASSIGN_OR_RETURN(const Group group, GroupIn(file, place.group(), layout));
  const std::optional<QfsLayoutChunk>& own = group[static_cast<size_t>(place.index())];
  if (!own || own->chunk != place.id.chunk || own->version != place.id.version) {
    return absl::UnavailableError("block " + place.id.Name() +
                                  " is not in the metaserver's list of its group's chunks: the "
                                  "file was changed between two answers; ask again");
  }
  ECPIPE_RETURN_IF_ERROR(
      Annotate(CheckHoles(file, place.group(), group), "block " + place.id.Name()));
  StripeFacts facts{file.StripeId(place.group()), file.Code(), {}, {}};
  for (int i = 0; i < file.blocks(); ++i) {
    const std::optional<QfsLayoutChunk>& chunk = group[static_cast<size_t>(i)];
    const uint64_t bytes = file.ChunkBytes(place.group(), i);
    const uint64_t address =
        file.GroupAddress(place.group()) + static_cast<uint64_t>(i) * kQfsChunkBytes;
    if (!chunk) {
      facts.blocks.push_back({NameOfHole(file, address), 0});
      continue;
    }
    if (bytes == 0) {
      return absl::FailedPreconditionError("block " + place.id.Name() +
                                           ": its group has a chunk at address " +
                                           std::to_string(address) + ", which a file of " +
                                           std::to_string(file.bytes) + " bytes does not have");
    }
    facts.blocks.push_back({QfsChunkId{file.file, chunk->chunk, chunk->version}.Name(), bytes});
    for (const std::string& server : chunk->servers) {
      const absl::StatusOr<std::string> id = QfsStorageId(server);
      if (id.ok()) facts.sources.push_back({i, *id});  // no helper can have registered another
    }
  }
  ECPIPE_RETURN_IF_ERROR(Annotate(facts.Validate(), "the metaserver's answer"));
  return facts;
}

std::optional<std::string> QfsSource::BlockNamed(const std::string& text) const {
  return ParseQfsChunk(text).ok() ? std::optional(text) : std::nullopt;
}

template <typename Answer>
absl::StatusOr<Answer> QfsSource::AskedInTurn(const AskFn<Answer>& ask, TimePoint deadline,
                                              size_t* server) const {
  constexpr int kRounds = 2;  // a metaserver that restarts has closed the connection
  const size_t servers = options_.metaservers.size();
  absl::StatusOr<Answer> answer = absl::UnavailableError("no metaserver was asked");
  for (int round = 0; round < kRounds; ++round) {
    for (size_t left = servers; left > 0; --left) {
      // One that is silent leaves the others their share.
      const TimePoint now = Clock::System().Now();
      if (now >= deadline) return answer;
      const TimePoint until = now + (deadline - now) / static_cast<Duration::rep>(left);
      absl::StatusOr<MetaServerClient> client =
          MetaServerClient::Connect(options_.metaservers[*server], until);
      answer = client.ok() ? ask(&*client) : absl::StatusOr<Answer>(client.status());
      if (IsTold(answer.status())) return answer;
      *server = (*server + 1) % servers;
    }
  }
  return answer;
}

template <typename Answer>
absl::StatusOr<Answer> QfsSource::Asked(const AskFn<Answer>& ask) {
  if (options_.metaservers.empty()) {
    return absl::NotFoundError(
        "no metaserver is configured; to find chunks of QFS set [qfs] metaservers");
  }
  const TimePoint deadline = Clock::System().Now() + options_.timeout;
  size_t first = 0;
  {
    MutexLock lock(&mutex_);
    if (waiting_ >= kMaxWaiting) {
      return absl::UnavailableError("too many questions to the metaserver wait already");
    }
    ++waiting_;
    while (asking_ >= kMaxAsking && asked_.WaitUntil(lock, deadline)) {
    }
    --waiting_;
    if (asking_ >= kMaxAsking) {
      return absl::UnavailableError("too many questions to the metaserver are under way");
    }
    ++asking_;
    first = first_;
  }
  size_t server = first;
  absl::StatusOr<Answer> answer = AskedInTurn<Answer>(ask, deadline, &server);
  const bool told = IsTold(answer.status());
  {
    MutexLock lock(&mutex_);
    --asking_;
    if (told) {
      answered_ = clock_->Now();
      first_ = server;
    }
    last_error_ = told ? "" : CleanText(StatusText(answer.status()));
  }
  asked_.NotifyAll();
  // Silence and garbage are troubles of the metaserver, not of who asks.
  return told ? answer : absl::UnavailableError(answer.status().message());
}

absl::StatusOr<StripeFacts> QfsSource::FactsOf(const std::string& block_id,
                                               const std::string& claim) {
  ECPIPE_ASSIGN_OR_RETURN(const QfsChunkId id, ParseQfsChunk(block_id));
  if (!claim.empty()) ECPIPE_RETURN_IF_ERROR(QfsPlace::OfClaim(claim).status());
  {
    MutexLock lock(&mutex_);
    const auto known = known_.find(block_id);
    const bool fresh =
        known != known_.end() && clock_->Now() - known->second.as_of < options_.fresh;
    // A request that says something else may know better.
    if (fresh && CheckClaim(block_id, known->second.place, claim).ok()) return known->second.facts;
  }
  const TimePoint as_of = clock_->Now();
  ECPIPE_ASSIGN_OR_RETURN(
      const Known known, Asked<Known>([&](MetaServerClient* client) -> absl::StatusOr<Known> {
        ECPIPE_ASSIGN_OR_RETURN(const QfsPlace place, AskPlace(client, id));
        if (place.id != id) {
          return absl::FailedPreconditionError("block " + block_id +
                                               ": the metaserver knows it as " + place.id.Name());
        }
        ECPIPE_RETURN_IF_ERROR(CheckClaim(block_id, place, claim));
        ECPIPE_ASSIGN_OR_RETURN(const std::vector<QfsLayoutChunk> layout,
                                AskLayout(client, place.file, place.group()));
        ECPIPE_ASSIGN_OR_RETURN(StripeFacts facts, QfsFacts(place, layout));
        return Known{place, std::move(facts), as_of};
      }));
  Remember(block_id, known);
  return known.facts;
}

void QfsSource::Remember(const std::string& block_id, const Known& known) {
  MutexLock lock(&mutex_);
  if (known_.size() >= kMaxKnown) {
    const TimePoint now = clock_->Now();
    std::erase_if(known_,
                  [&](const auto& entry) { return now - entry.second.as_of >= options_.fresh; });
    if (known_.size() >= kMaxKnown) known_.clear();
  }
  known_[block_id] = known;
}

absl::StatusOr<StripedFile> QfsSource::FileAt(const std::string& path, uint64_t offset) {
  if (path.empty() || path[0] != '/' || path.size() > StripedFile::kMaxPathBytes ||
      path.find_first_of("\r\n") != std::string::npos) {
    return absl::InvalidArgumentError("a path of QFS begins with '/', and has no line ends");
  }
  return Asked<StripedFile>([&](MetaServerClient* client) -> absl::StatusOr<StripedFile> {
    ECPIPE_ASSIGN_OR_RETURN(
        const MetaAnswer answer,
        client->Ask("LOOKUP_PATH", {{"Root File-handle", "2"}, {"Pathname", path}}, path));
    StripedFile striped;
    ECPIPE_ASSIGN_OR_RETURN(const int64_t file_id, answer.Number("File-handle", 1));
    striped.id = std::to_string(file_id);
    if (answer.Number("File-size").value_or(1) == 0) return striped;
    ECPIPE_ASSIGN_OR_RETURN(const QfsFile file, QfsFileOf(answer));
    striped.bytes = file.bytes;
    const uint64_t group_bytes = static_cast<uint64_t>(file.data) * kQfsChunkBytes;
    if (offset >= file.bytes) return striped;
    for (uint64_t group = offset / group_bytes;
         group < file.groups() && striped.parts.size() < StripedFile::kMaxParts; ++group) {
      ECPIPE_ASSIGN_OR_RETURN(const std::vector<QfsLayoutChunk> layout,
                              AskLayout(client, file, group));
      ECPIPE_ASSIGN_OR_RETURN(const Group chunks, GroupIn(file, group, layout));
      if (HasGap(file, group, chunks)) {
        ECPIPE_RETURN_IF_ERROR(Annotate(CheckHoles(file, group, chunks), path));
      }
      StripedFile::Part part{group * group_bytes,
                             std::min(group_bytes, file.bytes - group * group_bytes),
                             file.cell_bytes,
                             {}};
      for (int i = 0; i < file.data; ++i) {
        const std::optional<QfsLayoutChunk>& chunk = chunks[static_cast<size_t>(i)];
        part.data_blocks.push_back(
            chunk ? QfsChunkId{file.file, chunk->chunk, chunk->version}.Name() : "");
      }
      striped.parts.push_back(std::move(part));
    }
    return striped;
  });
}

bool QfsSource::Reports(const NodeView& node) const {
  const std::shared_ptr<const NodeBlocks> blocks = reported_.Of(node.record.node_id);
  return blocks != nullptr && blocks->incarnation == node.record.incarnation;
}

absl::StatusOr<ReportedBlocks::Outcome> QfsSource::Record(BlockReport report) {
  return RecordReport(std::move(report), {nodes_, corrupt_, &reported_}, *clock_,
                      [](const std::string& block_id) -> std::optional<ReportedName> {
                        const absl::StatusOr<QfsChunkId> chunk = ParseQfsChunk(block_id);
                        if (!chunk.ok()) return std::nullopt;
                        return ReportedName{kQfsPool, chunk->chunk,
                                            static_cast<uint64_t>(chunk->version)};
                      });
}

QfsSource::Live QfsSource::LiveBlocks() {
  Live live;
  for (const NodeView& node : nodes_->All()) {
    if (!HasNode(node.record.storage_id) || node.state == NodeState::kDead) continue;
    if (!Reports(node)) {
      ++live.unreported;
      continue;
    }
    live.blocks.push_back(reported_.Of(node.record.node_id));
    live.oldest_seconds =
        std::max(live.oldest_seconds, Seconds(clock_->Now() - live.blocks.back()->reported));
  }
  return live;
}

SourceFacts QfsSource::Facts() {
  MutexLock lock(&mutex_);
  SourceFacts facts{!options_.metaservers.empty(), std::nullopt, known_.size(), last_error_, ""};
  if (answered_) facts.age_seconds = Seconds(clock_->Now() - *answered_);
  return facts;
}

std::optional<SourceStatus> QfsSource::Overview() {
  const Live live = LiveBlocks();
  if (options_.metaservers.empty() && live.blocks.empty()) return std::nullopt;
  SourceStatus status{Facts(), live.blocks.size(), 0, std::nullopt, std::nullopt};
  for (const auto& blocks : live.blocks) status.blocks += blocks->block_count;
  return status;
}

SystemNode QfsSource::NodeOf(const NodeView& node) { return {Reports(node), "", 0}; }

absl::StatusOr<NodeLoss> QfsSource::LossOf(const NodeView& node,
                                           const std::set<std::string>& running) {
  NodeLoss loss;
  loss.node = node.record.node_id;
  loss.system = system();
  loss.state = loss.helper_state = NodeStateName(node.state);
  loss.silent_seconds = loss.helper_silent_seconds = node.seconds_since_heartbeat;
  loss.facts = Facts();
  const Live live = LiveBlocks();
  loss.report_age_seconds = live.oldest_seconds;
  loss.unreported_nodes = live.unreported;
  if (node.state != NodeState::kDead) return loss;
  const std::shared_ptr<const NodeBlocks> had = reported_.Of(node.record.node_id);
  if (had == nullptr) {
    return absl::NotFoundError("node " + node.record.node_id +
                               " is dead and never reported its chunks to this coordinator, so "
                               "what it had is not known here; run qfsfsck");
  }
  std::set<int64_t> repaired;  // at present
  for (const std::string& block_id : running) {
    if (const auto chunk = ParseQfsChunk(block_id); chunk.ok()) repaired.insert(chunk->chunk);
  }
  const BlockList& lost = ChunksOf(*had);
  const std::vector<bool> rebuilt = RebuiltOf(lost, live.blocks);
  size_t i = 0;
  for (const InternalBlock& chunk : lost) {
    const bool is_rebuilt = rebuilt[i++];
    loss.loss.lost.Add(chunk.bytes);
    (is_rebuilt ? loss.loss.rebuilt : loss.loss.outstanding).Add(chunk.bytes);
    if (is_rebuilt) continue;
    ++loss.loss.of_unknown_groups;
    if (repaired.contains(chunk.id)) ++loss.loss.repairs_running;
  }
  return loss;
}

}  // namespace ecpipe
