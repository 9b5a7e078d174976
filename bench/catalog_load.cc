// SPDX-License-Identifier: Apache-2.0
// Loads a catalog of many stripes, opens it again as a restarted coordinator would, looks blocks up
// at random, lists what one node has, and prints what that took:
//
//   catalog_load DIRECTORY [--stripes=1000000] [--n=14] [--nodes=1000] [--ids=hdfs|random]
//                [--sha256] [--lookups=100000] [--bulk]
//
// catalog_stripes.h says what the ids are. The directory must exist and hold no database. --bulk
// fills the tables as no coordinator does: without a log, and with the indexes at the end. Many
// millions of stripes are there sooner.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "catalog_stripes.h"
#include "coordinator/store/sqlite_catalog.h"
#include "coordinator/store/sqlite_db.h"
#include "coordinator/store/sqlite_schema.h"
#include "coordinator/store/sqlite_stripes.h"

namespace ecpipe {
namespace {

constexpr int kBatchStripes = 10'000;  // the most that one PutStripes may carry
constexpr int kPageStripes = 1000;
constexpr uint64_t kSeed = 20260101;

struct Options {
  std::string directory;
  int64_t stripes = 1'000'000;
  int64_t lookups = 100'000;
  bool bulk = false;
  StripeMaker maker;
};

// Exits on an error: a benchmark has nobody to hand it to.
void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "catalog_load: %s\n", StatusText(status).c_str());
  std::exit(1);
}

template <typename T>
T Require(absl::StatusOr<T> result) {
  Require(result.status());
  return *std::move(result);
}

Duration Since(TimePoint start) { return Clock::System().Now() - start; }

struct Spread {
  double median = 0;
  double p99 = 0;
  double worst = 0;
};

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values[values.size() * 99 / 100], values.back()};
}

void Load(const Options& options, Catalog* catalog, std::vector<double>* batch_seconds) {
  for (int64_t first = 0; first < options.stripes; first += kBatchStripes) {
    std::vector<Stripe> batch;
    const int64_t end = std::min<int64_t>(first + kBatchStripes, options.stripes);
    for (int64_t i = first; i < end; ++i) batch.push_back(options.maker.Make(i));
    const TimePoint start = Clock::System().Now();
    Require(catalog->Put(batch).status());
    batch_seconds->push_back(Seconds(Since(start)));
  }
}

constexpr char kBulk[] =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE;"
    " PRAGMA threads = 1;";

// Indexes are made faster once the rows are there. Returns the SQL that makes them.
std::string DropIndexes(SqliteDb* db) {
  std::string drop;
  std::string create;
  {
    auto query = Require(
        db->Prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL"));
    while (Require(query.Step())) {
      drop += "DROP INDEX " + std::string(query.Bytes(0)) + ";";
      create += std::string(query.Bytes(1)) + ";";
    }
  }
  Require(db->Run(drop.c_str()));
  return create;
}

void InsertStripe(const Stripe& stripe, int64_t number, SqliteStatement* row,
                  SqliteStatement* block_row) {
  row->Bind(1, number);
  row->BindText(2, stripe.stripe_id);
  row->BindText(3, stripe.code);
  row->Bind(4, static_cast<int64_t>(stripe.block_bytes));
  row->Bind(5, StripeCrc(stripe));
  Require(row->Execute());
  for (size_t i = 0; i < stripe.blocks.size(); ++i) {
    const BlockPlace& place = stripe.blocks[i];
    block_row->Bind(1, number);
    block_row->Bind(2, static_cast<int64_t>(i));
    block_row->BindText(3, place.block_id);
    block_row->Bind(4, std::atoll(place.node.c_str() + place.node.find('-') + 1) + 1);
    block_row->BindText(5, place.sha256);
    Require(block_row->Execute());
  }
}

void LoadBulk(const Options& options, const std::string& path) {
  Require(EnsureSchema(path));
  const auto db = Require(SqliteDb::Open(path, {.cache_kib = 512 << 10}));
  Require(db->Run(kBulk));
  const std::string create_indexes = DropIndexes(db.get());
  Require(db->Run("BEGIN EXCLUSIVE"));
  {
    auto node = Require(db->Prepare("INSERT INTO nodes(node, name) VALUES(?1, ?2)"));
    for (int i = 0; i < options.maker.nodes; ++i) {
      node.Bind(1, i + 1);
      node.BindText(2, "node-" + std::to_string(i));
      Require(node.Execute());
    }
    auto row =
        Require(db->Prepare("INSERT INTO stripes(stripe, stripe_id, code, block_bytes,"
                            " crc32c) VALUES(?1, ?2, ?3, ?4, ?5)"));
    auto block_row =
        Require(db->Prepare("INSERT INTO blocks(stripe, position, block_id, node,"
                            " sha256) VALUES(?1, ?2, ?3, ?4, ?5)"));
    for (int64_t i = 0; i < options.stripes; ++i) {
      InsertStripe(options.maker.Make(i), i + 1, &row, &block_row);
    }
  }
  Require(db->Run("COMMIT"));
  Require(db->Run(create_indexes.c_str()));
}

std::vector<double> LookUp(const Options& options, Catalog* catalog) {
  std::mt19937_64 random(kSeed);
  std::vector<double> micros;
  for (int64_t i = 0; i < options.lookups; ++i) {
    const auto stripe = static_cast<int64_t>(random() % static_cast<uint64_t>(options.stripes));
    const int index = static_cast<int>(random() % static_cast<uint64_t>(options.maker.n));
    const std::string block_id = options.maker.BlockId(stripe, index);
    const TimePoint start = Clock::System().Now();
    const BlockLocation location = Require(catalog->FindBlock(block_id));
    micros.push_back(Seconds(Since(start)) * 1e6);
    if (location.block_index != index ||
        location.stripe.stripe_id != options.maker.StripeId(stripe)) {
      Require(absl::InternalError("the catalog found the wrong stripe for " + block_id));
    }
  }
  return micros;
}

// The blocks of one node, read as a recovery does.
int64_t CountOnNode(Catalog* catalog, const std::string& node) {
  int64_t blocks = 0;
  std::string next;
  do {
    const NodeBlockPage page = Require(catalog->ListNode(node, next, kPageStripes));
    for (const NodeBlock& block : page.blocks) Require(block.stripe.status());
    blocks += static_cast<int64_t>(page.blocks.size());
    next = page.next;
  } while (!next.empty());
  return blocks;
}

double PeakResidentMib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib / 1024;
  }
  return 0;
}

double DatabaseMib(const std::string& path) {
  double bytes = 0;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(path + suffix, missing);
    if (!missing) bytes += static_cast<double>(size);
  }
  return bytes / (1 << 20);
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&](const char* name) -> const char* {
      return arg.starts_with(name) ? argv[i] + std::strlen(name) : nullptr;
    };
    if (const char* stripes = value("--stripes=")) {
      options.stripes = std::atoll(stripes);
    } else if (const char* n = value("--n=")) {
      options.maker.n = std::atoi(n);
    } else if (const char* nodes = value("--nodes=")) {
      options.maker.nodes = std::atoi(nodes);
    } else if (const char* lookups = value("--lookups=")) {
      options.lookups = std::atoll(lookups);
    } else if (arg == "--bulk") {
      options.bulk = true;
    } else if (arg == "--sha256") {
      options.maker.sha256 = true;
    } else if (const char* ids = value("--ids=")) {
      if (std::strcmp(ids, "random") == 0) options.maker.ids = StripeMaker::Ids::kRandom;
    } else {
      options.directory = arg;
    }
  }
  if (options.directory.empty() || options.stripes < 1 || options.lookups < 1 ||
      options.maker.n < 1 || options.maker.n > static_cast<int>(kMaxStripeBlocks) ||
      options.maker.nodes < std::max(options.maker.n, 2)) {
    Require(absl::InvalidArgumentError(
        "usage: catalog_load DIRECTORY [--stripes=N] [--n=N] "
        "[--nodes=N] [--ids=hdfs|random] [--sha256] [--lookups=N] [--bulk]"));
  }
  return options;
}

void Run(const Options& options) {
  const std::string path = options.directory + "/ecpipe.db";
  std::vector<double> batch_seconds;
  TimePoint start = Clock::System().Now();
  if (options.bulk) {
    LoadBulk(options, path);
  } else {
    auto catalog = Require(SqliteCatalog::Open(path, {}));
    Load(options, catalog.get(), &batch_seconds);
  }
  const double load_seconds = Seconds(Since(start));
  const double load_cpu_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;

  start = Clock::System().Now();
  auto catalog = Require(SqliteCatalog::Open(path, {}));
  const uint64_t stripe_count = Require(catalog->CountStripes());
  const double restart_ms = Seconds(Since(start)) * 1e3;
  const Spread lookup = SpreadOf(LookUp(options, catalog.get()));
  start = Clock::System().Now();
  const int64_t on_node = CountOnNode(catalog.get(), "node-7");
  const double node_ms = Seconds(Since(start)) * 1e3;

  std::printf("stripes                    %12llu\n", static_cast<unsigned long long>(stripe_count));
  std::printf("blocks a stripe            %12d\n", options.maker.n);
  std::printf("ids                        %12s\n",
              options.maker.ids == StripeMaker::Ids::kRandom ? "random" : "hdfs");
  std::printf("load                       %12.1f s\n", load_seconds);
  std::printf("  of CPU                   %12.1f s\n", load_cpu_seconds);
  if (!batch_seconds.empty()) {
    const Spread batch = SpreadOf(batch_seconds);
    std::printf("  one Put, median          %12.3f s\n", batch.median);
    std::printf("  one Put, slowest         %12.3f s\n", batch.worst);
  }
  std::printf("restart                    %12.1f ms\n", restart_ms);
  std::printf("FindBlock, median          %12.1f us\n", lookup.median);
  std::printf("FindBlock, p99             %12.1f us\n", lookup.p99);
  std::printf("blocks on a node           %12lld\n", static_cast<long long>(on_node));
  std::printf("  listed in                %12.1f ms\n", node_ms);
  std::printf("database                   %12.1f MiB\n", DatabaseMib(path));
  std::printf("peak resident              %12.1f MiB\n", PeakResidentMib());
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--help") == 0) {
    std::printf(
        "Usage: catalog_load DIRECTORY [--stripes=1000000] [--n=14] [--nodes=1000]\n"
        "                    [--ids=hdfs|random] [--sha256] [--lookups=100000]\n");
    return argc < 2 ? 2 : 0;
  }
  ecpipe::Run(ecpipe::ParseOptions(argc, argv));
  return 0;
}
