// SPDX-License-Identifier: Apache-2.0
//
// Reads several blocks at once from one event loop and says how long each is:
// read_many COORDINATOR BLOCK...
#include <ecpipe.hpp>

#include <poll.h>

#include <cstdio>
#include <list>
#include <string>
#include <vector>

namespace {

struct Reading {
  std::string block;
  ecpipe::Call call;
  unsigned long long bytes = 0;
};

// Takes what has come. True: that was all.
bool TakeAll(Reading* reading) {
  static std::vector<char> buffer(1 << 16);
  while (const std::optional<std::size_t> taken =
             reading->call.Take(buffer.data(), buffer.size())) {
    if (*taken == 0) return true;
    reading->bytes += *taken;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: read_many COORDINATOR BLOCK...\n");
    return 2;
  }
  ecpipe::Options options;
  options.coordinator = argv[1];
  ecpipe::Client client(options);
  std::list<Reading> readings;
  for (int i = 2; i < argc; ++i) {
    ecpipe::Target target;
    target.block_ids = {argv[i]};
    readings.push_back({argv[i], client.SubmitRead(target)});
  }
  while (!readings.empty()) {
    std::vector<pollfd> polled;
    for (const Reading& reading : readings) {
      polled.push_back({reading.call.descriptor(), POLLIN, 0});
    }
    poll(polled.data(), polled.size(), 1000);
    for (auto reading = readings.begin(); reading != readings.end();) {
      if (!TakeAll(&*reading)) {
        ++reading;
        continue;
      }
      std::printf("%s %llu\n", reading->block.c_str(), reading->bytes);
      reading = readings.erase(reading);
    }
  }
  return 0;
} catch (const ecpipe::Error& error) {
  std::fprintf(stderr, "error %d: %s\n", error.code(), error.what());
  return 1;
}
