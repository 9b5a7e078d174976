// SPDX-License-Identifier: Apache-2.0
#include "power_cut_parts.h"

#include <filesystem>
#include <random>
#include <span>
#include <system_error>
#include <utility>

#include "base/bytes/crc32c.h"
#include "base/file_io.h"
#include "base/status.h"
#include "coordinator/sources/sqlite_losses.h"
#include "coordinator/store/limit_book.h"
#include "coordinator/store/sqlite_catalog.h"
#include "coordinator/store/sqlite_journal.h"
#include "coordinator/store/sqlite_marks.h"
#include "helper/store/plain/plain_store.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

// Steps use names over again, so that rows and files are replaced, too.
constexpr uint64_t kNames = 40;
constexpr int kAll = 1000;  // more than there are of anything

std::string Name(const std::string& kind, uint64_t number) {
  return kind + "-" + std::to_string(number % kNames);
}

std::string TextOf(std::span<const uint8_t> bytes) {
  return std::to_string(bytes.size()) + " bytes, CRC32C " + std::to_string(Crc32c(bytes));
}

// Blocks of a helper. A block that is stored again has the bytes that it had, as after a repair.
class Blocks : public PowerCutPart {
 public:
  std::string name() const override { return "blocks"; }

  absl::Status Open(const std::string& directory) override {
    root_ = directory + "/blocks";
    std::error_code error;
    std::filesystem::create_directory(root_, error);
    if (error) return ErrnoStatus(error.value(), "create " + root_);
    ECPIPE_ASSIGN_OR_RETURN(store_, OpenPlainStore({root_}));
    return absl::OkStatus();
  }

  absl::Status Step(uint64_t number) override {
    const std::vector<uint8_t> bytes = BytesOf(number % kNames);
    const std::span<const uint8_t> all(bytes);
    ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<BlockWriter> writer,
                            store_->Create(Name("block", number), bytes.size()));
    // Slices of several lanes come in no order.
    const size_t half = bytes.size() / 2;
    ECPIPE_RETURN_IF_ERROR(writer->WriteAt(half, all.subspan(half)));
    ECPIPE_RETURN_IF_ERROR(writer->WriteAt(0, all.first(half)));
    return writer->Commit();
  }

  void Expect(uint64_t number, Stored* stored) const override {
    (*stored)[Name("block", number)] = TextOf(BytesOf(number % kNames));
  }

  absl::StatusOr<Stored> Read() override {
    Stored stored;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      const std::string file = entry.path().filename();
      if (file.starts_with(AtomicFile::kTempPrefix)) {
        return absl::InternalError("the half-written file " + file + " was not removed");
      }
      if (!ValidateBlockId(file).ok()) continue;  // a checksum file
      ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<BlockReader> reader, store_->Open(file));
      std::vector<uint8_t> bytes(reader->bytes());
      ECPIPE_RETURN_IF_ERROR(Annotate(reader->ReadAt(0, bytes), "block " + file));
      if (!reader->has_checksums()) {
        return absl::InternalError("block " + file + " has no checksum file");
      }
      stored[file] = TextOf(bytes);
    }
    return stored;
  }

 private:
  static std::vector<uint8_t> BytesOf(uint64_t name) {
    std::mt19937_64 random(name);
    std::vector<uint8_t> bytes(1 + random() % (128 << 10));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
  }

  std::string root_;
  std::unique_ptr<BlockStore> store_;
};

// Two stripes at once, or a block that moves.
class CatalogPart : public PowerCutPart {
 public:
  std::string name() const override { return "catalog"; }

  absl::Status Open(const std::string& directory) override {
    ECPIPE_ASSIGN_OR_RETURN(catalog_, SqliteCatalog::Open(directory + "/catalog.db", {}));
    return absl::OkStatus();
  }

  absl::Status Step(uint64_t number) override {
    if (!Moves(number)) {
      return catalog_->Put({StripeOf("a", number), StripeOf("b", number)}).status();
    }
    ECPIPE_ASSIGN_OR_RETURN(const BlockLocation block, catalog_->FindBlock(Moved(number)));
    return catalog_->MoveBlock(Moved(number), NodeOf(number), block.stripe);
  }

  void Expect(uint64_t number, Stored* stored) const override {
    if (Moves(number)) {
      (*stored)[Moved(number)] = NodeOf(number);
      return;
    }
    for (const char* which : {"a", "b"}) Add(StripeOf(which, number), stored);
  }

  absl::StatusOr<Stored> Read() override {
    ECPIPE_ASSIGN_OR_RETURN(const StripePage page, catalog_->List("", kAll));
    ECPIPE_ASSIGN_OR_RETURN(const uint64_t count, catalog_->CountStripes());
    const std::vector<Stripe>& stripes = page.stripes;
    if (count != stripes.size()) {
      return absl::DataLossError(std::to_string(count) + " stripes are counted, " +
                                 std::to_string(stripes.size()) + " listed");
    }
    Stored stored;
    for (const Stripe& stripe : stripes) {
      Add(stripe, &stored);
      for (const BlockPlace& block : stripe.blocks) {
        ECPIPE_ASSIGN_OR_RETURN(const BlockLocation found, catalog_->FindBlock(block.block_id));
        if (found.stripe != stripe) {
          return absl::DataLossError(block.block_id + " is not found in its stripe");
        }
      }
    }
    return stored;
  }

 private:
  static bool Moves(uint64_t number) { return number % 3 == 0; }
  static std::string NodeOf(uint64_t number) { return "node-" + std::to_string(number); }
  static Stripe StripeOf(const std::string& which, uint64_t number) {
    const std::string id = Name("stripe-" + which, number);
    Stripe stripe{.stripe_id = id, .code = "rs(3,2)", .block_bytes = number};
    for (const char* block : {"-0", "-1", "-2"}) {
      stripe.blocks.push_back({.block_id = id + block, .node = NodeOf(number)});
    }
    return stripe;
  }
  // A block of the stripes that the step before has put.
  static std::string Moved(uint64_t number) {
    return StripeOf("b", number - 1).blocks.back().block_id;
  }
  static void Add(const Stripe& stripe, Stored* stored) {
    (*stored)[stripe.stripe_id] = std::to_string(stripe.block_bytes) + " " + stripe.code;
    for (const BlockPlace& block : stripe.blocks) (*stored)[block.block_id] = block.node;
  }

  std::unique_ptr<SqliteCatalog> catalog_;
};

// Three repairs, which may be forgotten, then a recovery, which may not.
class JournalPart : public PowerCutPart {
 public:
  std::string name() const override { return "journal"; }

  absl::Status Open(const std::string& directory) override {
    ECPIPE_ASSIGN_OR_RETURN(journal_, SqliteJournal::Open(directory + "/journal.db"));
    return journal_->ClaimInterrupted(1).status();
  }

  absl::Status Step(uint64_t number) override {
    const uint64_t id = number % kNames + 1;
    if (!Acknowledges(number)) {
      return journal_->Record({.repair_id = id,
                               .block_ids = {Name("block", number)},
                               .bytes = number,
                               .scheme = "rp",
                               .transport = "tcp",
                               .state = RepairState::kDone,
                               .started_unix_ms = static_cast<int64_t>(number)});
    }
    RecoveryRecord recovery{.recovery_id = id, .blocks = number};
    recovery.request.node = Name("node", number);
    recovery.request.hosts = {"host-1", "host-2"};
    ECPIPE_RETURN_IF_ERROR(journal_->RecordRecovery(recovery));
    return journal_->Sync();
  }

  void Expect(uint64_t number, Stored* stored) const override {
    const bool recovery = Acknowledges(number);
    Add(recovery ? "recovery" : "repair", number % kNames + 1, number,
        Name(recovery ? "node" : "block", number), stored);
  }

  absl::StatusOr<Stored> Read() override {
    Stored stored;
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<RepairRecord> repairs, journal_->Recent(kAll));
    for (const RepairRecord& repair : repairs) {
      Add("repair", repair.repair_id, repair.bytes, repair.block_ids.at(0), &stored);
    }
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<RecoveryRecord> recoveries,
                            journal_->Recoveries(kAll));
    for (const RecoveryRecord& recovery : recoveries) {
      if (recovery.request.hosts.size() != 2) {
        return absl::DataLossError("a recovery has lost its hosts");
      }
      Add("recovery", recovery.recovery_id, recovery.blocks, recovery.request.node, &stored);
    }
    return stored;
  }

  bool Acknowledges(uint64_t number) const override { return number % 4 == 0; }
  uint64_t in_flight() const override { return 4; }

 private:
  static void Add(const std::string& kind, uint64_t id, uint64_t number, const std::string& text,
                  Stored* stored) {
    (*stored)[kind + " " + std::to_string(id)] = std::to_string(number) + " " + text;
  }

  std::unique_ptr<SqliteJournal> journal_;
};

class LimitsPart : public PowerCutPart {
 public:
  std::string name() const override { return "limits"; }

  absl::Status Open(const std::string& directory) override {
    ECPIPE_ASSIGN_OR_RETURN(book_, LimitBook::Open(directory + "/limits.db"));
    return absl::OkStatus();
  }

  absl::Status Step(uint64_t number) override {
    const double rate = RateOf(number);
    const auto count = static_cast<uint32_t>(number);
    if (OfCluster(number)) {
      return book_->Set({.repair_bytes_per_second = rate, .max_running = count});
    }
    return book_->Set(Name("node", number),
                      {.repair_bytes_per_second = rate, .max_sessions = count});
  }

  void Expect(uint64_t number, Stored* stored) const override {
    Add(OfCluster(number) ? "cluster" : Name("node", number), RateOf(number),
        static_cast<uint32_t>(number), stored);
  }

  absl::StatusOr<Stored> Read() override {
    const Limits limits = book_->limits();
    Stored stored;
    if (limits.cluster != LimitsOfCluster{}) {
      Add("cluster", limits.cluster.repair_bytes_per_second.value_or(-1),
          limits.cluster.max_running.value_or(0), &stored);
    }
    for (const auto& [node, of_node] : limits.nodes) {
      Add(node, of_node.repair_bytes_per_second.value_or(-1), of_node.max_sessions.value_or(0),
          &stored);
    }
    return stored;
  }

 private:
  static bool OfCluster(uint64_t number) { return number % 5 == 0; }
  static double RateOf(uint64_t number) { return 1e6 + static_cast<double>(number); }
  static void Add(const std::string& name, double rate, uint32_t count, Stored* stored) {
    (*stored)[name] = std::to_string(rate) + " " + std::to_string(count);
  }

  std::unique_ptr<LimitBook> book_;
};

// Marks of corrupt blocks, of which each third step forgets one.
class MarksPart : public PowerCutPart {
 public:
  std::string name() const override { return "marks"; }

  absl::Status Open(const std::string& directory) override {
    ECPIPE_ASSIGN_OR_RETURN(marks_, SqliteMarks::Open(directory + "/marks.db"));
    return absl::OkStatus();
  }

  absl::Status Step(uint64_t number) override {
    if (Forgets(number)) return marks_->Forget(Forgotten(number), Name("node", number - 2));
    return marks_->Keep(MarkOf(number));
  }

  void Expect(uint64_t number, Stored* stored) const override {
    if (Forgets(number)) {
      stored->erase(Forgotten(number));
    } else {
      Add(MarkOf(number), stored);
    }
  }

  absl::StatusOr<Stored> Read() override {
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<CorruptBlock> marks, marks_->Load());
    Stored stored;
    for (const CorruptBlock& mark : marks) Add(mark, &stored);
    return stored;
  }

 private:
  static bool Forgets(uint64_t number) { return number % 3 == 0; }
  static std::string Forgotten(uint64_t number) { return Name("block", number - 2); }
  static CorruptBlock MarkOf(uint64_t number) {
    return {.block_id = Name("block", number),
            .node = Name("node", number),
            .reason = "found in step " + std::to_string(number),
            .found_unix_ms = static_cast<int64_t>(number),
            .suspect = number % 2 == 0};
  }
  static void Add(const CorruptBlock& mark, Stored* stored) {
    (*stored)[mark.block_id] = mark.node + (mark.suspect ? " suspect " : " corrupt ") + mark.reason;
  }

  std::unique_ptr<SqliteMarks> marks_;
};

// The blocks of dead nodes. No step is promised to survive; what does is whole, and of one time.
class LossesPart : public PowerCutPart {
 public:
  std::string name() const override { return "losses"; }

  absl::Status Open(const std::string& directory) override {
    ECPIPE_ASSIGN_OR_RETURN(losses_, SqliteLosses::Open(directory + "/losses.db"));
    return absl::OkStatus();
  }

  absl::Status Step(uint64_t number) override {
    NodeRecord record;
    record.node_id = Name("node", number);
    std::vector<InternalBlock> of_pool;
    for (uint64_t i = 0; i <= number % 1000; ++i) {
      of_pool.push_back({static_cast<int64_t>(i) + 1, number, 0});
    }
    NodeBlocks blocks;
    blocks.pools["pool"] = BlockList(of_pool);
    return losses_->Keep(record, static_cast<int64_t>(number), blocks);
  }

  void Expect(uint64_t number, Stored* stored) const override {
    Add(Name("node", number), number, number, number % 1000 + 1, stored);
  }

  absl::StatusOr<Stored> Read() override {
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<std::string> nodes, losses_->Nodes());
    Stored stored;
    for (const std::string& node : nodes) {
      ECPIPE_ASSIGN_OR_RETURN(const LostNode lost, losses_->Load(node));
      const BlockList& blocks = lost.blocks.pools.at("pool");
      Add(node, static_cast<uint64_t>(lost.heard_unix_ms), blocks.begin()->stamp, blocks.size(),
          &stored);
    }
    return stored;
  }

  bool Acknowledges(uint64_t /*number*/) const override { return false; }
  uint64_t in_flight() const override { return 100'000; }

 private:
  static void Add(const std::string& node, uint64_t heard, uint64_t stamp, uint64_t count,
                  Stored* stored) {
    (*stored)[node] =
        std::to_string(heard) + " " + std::to_string(stamp) + " " + std::to_string(count);
  }

  std::unique_ptr<SqliteLosses> losses_;
};

}  // namespace

std::vector<std::unique_ptr<PowerCutPart>> PowerCutParts() {
  std::vector<std::unique_ptr<PowerCutPart>> parts;
  parts.push_back(std::make_unique<Blocks>());
  parts.push_back(std::make_unique<CatalogPart>());
  parts.push_back(std::make_unique<JournalPart>());
  parts.push_back(std::make_unique<LimitsPart>());
  parts.push_back(std::make_unique<MarksPart>());
  parts.push_back(std::make_unique<LossesPart>());
  return parts;
}

}  // namespace ecpipe
