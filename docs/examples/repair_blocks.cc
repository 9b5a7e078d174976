// SPDX-License-Identifier: Apache-2.0
//
// Rebuilds blocks of a stripe as files: repair_blocks COORDINATOR DIRECTORY BLOCK...
#include <ecpipe.hpp>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::fprintf(stderr, "usage: repair_blocks COORDINATOR DIRECTORY BLOCK...\n");
    return 2;
  }
  ecpipe::Options options;
  options.coordinator = argv[1];
  ecpipe::Client client(options);

  ecpipe::Target target;
  target.block_ids.assign(argv + 3, argv + argc);
  std::vector<std::string> paths;
  for (const std::string& block : target.block_ids) {
    paths.push_back(std::string(argv[2]) + "/" + block);
  }
  ecpipe::CallOptions call;
  call.progress = [](const ecpipe::Progress& progress) {
    std::fprintf(stderr, "%llu of %llu bytes\n",
                 static_cast<unsigned long long>(progress.verified_bytes),
                 static_cast<unsigned long long>(progress.total_bytes));
  };
  const ecpipe::Report report = client.RepairToFiles(target, paths, call);
  std::printf("%llu bytes in %.3f s\n", static_cast<unsigned long long>(report.bytes),
              report.seconds);
  return 0;
} catch (const ecpipe::Error& error) {
  std::fprintf(stderr, "error %d: %s\n", error.code(), error.what());
  return 1;
}
