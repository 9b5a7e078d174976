// SPDX-License-Identifier: Apache-2.0
// Look-ups in a catalog that is as large as can be loaded in a second: 10,000 stripes of 14 blocks.
// catalog_load loads a million.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "base/check.h"
#include "catalog_stripes.h"
#include "coordinator/store/sqlite_catalog.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {
namespace {

constexpr int64_t kStripes = 10'000;
constexpr size_t kQuestions = 4096;  // asked again and again, in an order without locality

struct LoadedCatalog {
  explicit LoadedCatalog(StripeMaker::Ids ids) : maker{.ids = ids} {
    catalog = SqliteCatalog::Open(directory.File("ecpipe.db"), {}).value();
    std::vector<Stripe> stripes;
    for (int64_t i = 0; i < kStripes; ++i) stripes.push_back(maker.Make(i));
    ECPIPE_CHECK(catalog->Put(stripes).ok());
  }

  // Loaded when it is first asked for.
  static LoadedCatalog& Of(StripeMaker::Ids ids) {
    if (ids == StripeMaker::Ids::kRandom) {
      static LoadedCatalog random(ids);
      return random;
    }
    static LoadedCatalog hdfs(ids);
    return hdfs;
  }

  ScratchDirectory directory;
  StripeMaker maker;
  std::unique_ptr<SqliteCatalog> catalog;
};

struct Question {
  int64_t stripe;
  int index;
  std::string id;
};

template <typename IdOf>
std::vector<Question> Questions(const StripeMaker& maker, const IdOf& id_of) {
  std::mt19937_64 random(1);
  std::vector<Question> questions;
  for (size_t i = 0; i < kQuestions; ++i) {
    const auto stripe = static_cast<int64_t>(random() % kStripes);
    const auto index = static_cast<int>(random() % static_cast<uint64_t>(maker.n));
    questions.push_back({stripe, index, id_of(stripe, index)});
  }
  return questions;
}

void FindBlock(benchmark::State& state, StripeMaker::Ids ids) {
  LoadedCatalog& loaded = LoadedCatalog::Of(ids);
  const auto questions = Questions(
      loaded.maker, [&](int64_t stripe, int index) { return loaded.maker.BlockId(stripe, index); });
  size_t next = 0;
  for (auto _ : state) {
    const Question& question = questions[next++ % kQuestions];
    const auto location = loaded.catalog->FindBlock(question.id);
    ECPIPE_CHECK(location.ok() && location->block_index == question.index);
  }
}
BENCHMARK_CAPTURE(FindBlock, hdfs, StripeMaker::Ids::kHdfs);
BENCHMARK_CAPTURE(FindBlock, random, StripeMaker::Ids::kRandom);

void FindNoBlock(benchmark::State& state) {
  LoadedCatalog& loaded = LoadedCatalog::Of(StripeMaker::Ids::kHdfs);
  const auto questions = Questions(loaded.maker, [&](int64_t stripe, int index) {
    return loaded.maker.BlockId(kStripes + stripe, index);
  });
  size_t next = 0;
  for (auto _ : state) {
    const auto location = loaded.catalog->FindBlock(questions[next++ % kQuestions].id);
    ECPIPE_CHECK(absl::IsNotFound(location.status()));
  }
}
BENCHMARK(FindNoBlock);

void FindStripe(benchmark::State& state) {
  LoadedCatalog& loaded = LoadedCatalog::Of(StripeMaker::Ids::kHdfs);
  const auto questions =
      Questions(loaded.maker, [&](int64_t stripe, int) { return loaded.maker.StripeId(stripe); });
  size_t next = 0;
  for (auto _ : state) {
    const Question& question = questions[next++ % kQuestions];
    const auto stripe = loaded.catalog->FindStripe(question.id);
    ECPIPE_CHECK(stripe.ok() && stripe->stripe_id == question.id);
  }
}
BENCHMARK(FindStripe);

}  // namespace
}  // namespace ecpipe

BENCHMARK_MAIN();
