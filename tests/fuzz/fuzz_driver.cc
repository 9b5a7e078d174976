// SPDX-License-Identifier: Apache-2.0
// Feeds a fuzz target the files of a corpus and seeded mutations of them:
//   x_fuzz [--runs N] [--seed S] CORPUS_DIRECTORY
// The same arguments give the same inputs. A target aborts on what must not happen. Every other
// input goes on from the one before it, so that changes gather over some generations.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> ReadCorpus(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus = {{}};
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

void Mutate(Bytes* bytes, const std::vector<Bytes>& corpus, std::mt19937_64* random) {
  constexpr size_t kMaxBytes = 1 << 16;
  const auto at = [&] { return bytes->empty() ? 0 : (*random)() % bytes->size(); };
  switch ((*random)() % 6) {
    case 0:
      if (!bytes->empty()) (*bytes)[at()] ^= static_cast<uint8_t>(1u << ((*random)() % 8));
      break;
    case 1:
      if (!bytes->empty()) (*bytes)[at()] = static_cast<uint8_t>((*random)());
      break;
    case 2:
      bytes->resize(at());
      break;
    case 3:
      bytes->insert(bytes->begin() + static_cast<std::ptrdiff_t>(at()),
                    (*random)() % 8 + 1, static_cast<uint8_t>((*random)()));
      break;
    case 4: {  // repeat or drop a piece
      const size_t from = at();
      const size_t length = std::min<size_t>((*random)() % 16 + 1, bytes->size() - from);
      const Bytes piece(bytes->begin() + static_cast<std::ptrdiff_t>(from),
                        bytes->begin() + static_cast<std::ptrdiff_t>(from + length));
      bytes->insert(bytes->begin() + static_cast<std::ptrdiff_t>(at()), piece.begin(), piece.end());
      break;
    }
    default: {  // the end of another one, instead of its own
      const Bytes& other = corpus[(*random)() % corpus.size()];
      bytes->resize((*random)() % (bytes->size() + 1));
      const size_t from = (*random)() % (other.size() + 1);
      bytes->insert(bytes->end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
    }
  }
  if (bytes->size() > kMaxBytes) bytes->resize(kMaxBytes);
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t runs = 1000;
  uint64_t seed = 1;
  std::string directory;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
      runs = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      directory = argv[i];
    }
  }
  const std::vector<Bytes> corpus = ReadCorpus(directory);
  for (const Bytes& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  std::mt19937_64 random(seed);
  Bytes input;
  for (uint64_t run = 0; run < runs; ++run) {
    if (random() % 2 == 0) input = corpus[random() % corpus.size()];
    for (uint64_t changes = random() % 8 + 1; changes > 0; --changes) {
      Mutate(&input, corpus, &random);
    }
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu corpus files, %llu mutations, seed %llu\n", corpus.size() - 1,
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed));
  return corpus.size() > 1 ? 0 : 1;
}
