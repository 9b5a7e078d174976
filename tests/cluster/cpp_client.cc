// SPDX-License-Identifier: Apache-2.0
// Uses all of ecpipe.hpp: cpp_client COORDINATOR OUTPUT NODE BLOCK OTHER_BLOCK. The blocks are of
// one stripe; OUTPUT has the bytes of BLOCK in the end.
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ecpipe.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);    \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

// The code that the function throws; ECPIPE_OK if it throws nothing.
template <typename Function>
int Thrown(Function function) {
  try {
    function();
  } catch (const ecpipe::Error& error) {
    CHECK(error.what()[0] != '\0');
    return error.code();
  }
  return ECPIPE_OK;
}

void Await(const ecpipe::Call& call) {
  pollfd polled{call.descriptor(), POLLIN, 0};
  CHECK(poll(&polled, 1, 60000) == 1);
}

struct Own {};  // an exception that the library knows nothing of

void TestReads(ecpipe::Client* client, const std::string& block) {
  ecpipe::Target target;
  target.block_ids = {block};
  target.slice_bytes = 10'000;
  std::uint64_t bytes = 0;
  const auto count = [&bytes](const std::uint8_t*, std::size_t size) {
    bytes += size;
    return true;
  };
  ecpipe::Progress last;
  ecpipe::CallOptions options;
  options.progress = [&last](const ecpipe::Progress& progress) { last = progress; };
  const ecpipe::Report report = client->Read(target, count, options);
  CHECK(bytes == report.bytes && report.bytes == report.block_bytes && report.attempts == 1);
  CHECK(last.verified_bytes == bytes && last.total_bytes == bytes);

  CHECK(Thrown([&] {
          client->Read(target, [](const std::uint8_t*, std::size_t) { return false; });
        }) == ECPIPE_CANCELLED);
  bool own = false;
  try {
    client->Read(target, [](const std::uint8_t*, std::size_t) -> bool { throw Own(); });
  } catch (const Own&) {
    own = true;
  }
  CHECK(own);
  own = false;
  options.progress = [](const ecpipe::Progress&) { throw Own(); };
  try {
    client->Read(target, count, options);
  } catch (const Own&) {
    own = true;
  }
  CHECK(own);

  // From another thread, while the callback has its time.
  ecpipe::Canceller canceller;
  options.progress = nullptr;
  options.canceller = &canceller;
  std::thread other([&canceller] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // sleep-ok: the read has begun
    canceller.Cancel();
  });
  CHECK(Thrown([&] {
          client->Read(
              target,
              [](const std::uint8_t*, std::size_t) {
                // sleep-ok: slower than the other thread
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                return true;
              },
              options);
        }) == ECPIPE_CANCELLED);
  other.join();
  target.block_ids = {"no-such-block"};
  CHECK(Thrown([&] { client->Read(target, count); }) == ECPIPE_NOT_FOUND);
}

void TestSubmittedCalls(ecpipe::Client* client, const std::string& output,
                        const std::vector<std::string>& blocks) {
  ecpipe::Target target;
  target.block_ids = {blocks[0]};
  ecpipe::Call call = client->SubmitRead(target, 4096);
  CHECK(!call.Result());
  Await(call);
  char byte = 0;
  CHECK(call.Take(&byte, 1) == std::size_t{1});
  ecpipe::Call moved = std::move(call);
  moved.Cancel();
  int code = ECPIPE_OK;
  while ((code = Thrown([&] { moved.Result(); })) == ECPIPE_OK) Await(moved);
  CHECK(code == ECPIPE_CANCELLED);
  CHECK(Thrown([&] { moved.Take(&byte, 1); }) == ECPIPE_CANCELLED);
  moved = client->SubmitRead(target, 4096);
  client->CancelAll();
  while ((code = Thrown([&] { moved.Result(); })) == ECPIPE_OK) std::this_thread::yield();
  CHECK(code == ECPIPE_CANCELLED);

  target.block_ids = blocks;
  ecpipe::Call repair = client->SubmitRepairToFiles(target, {output, output + ".other"});
  Await(repair);
  const std::optional<ecpipe::Report> report = repair.Result();
  CHECK(report && report->bytes == 2 * report->block_bytes);
  CHECK(repair.progress().verified_bytes == report->bytes);
  CHECK(repair.Take(&byte, 1) == std::size_t{0});
  ecpipe::Call nowhere = client->SubmitRepairToNodes(target, {"no-such-node", "nor-this"});
  Await(nowhere);
  CHECK(Thrown([&] { nowhere.Result(); }) != ECPIPE_OK);
}

void TestRepairs(ecpipe::Client* client, const std::string& output, const std::string& node,
                 const std::vector<std::string>& blocks) {
  ecpipe::Target target;
  target.block_ids = blocks;
  target.verify = "none";
  CHECK(Thrown([&] { client->RepairToFiles(target, {output}); }) == ECPIPE_INVALID_ARGUMENT);
  CHECK(Thrown([&] { client->SubmitRepairToNodes(target, {}); }) == ECPIPE_INVALID_ARGUMENT);
  client->RepairToFiles(target, {output, output + ".other"});
  target.block_ids = {blocks[0]};
  client->RepairToNodes(target, {node});
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 6);
  ecpipe::Options options;
  CHECK(Thrown([&] { ecpipe::Client client(options); }) == ECPIPE_INVALID_ARGUMENT);
  options.coordinator = argv[1];
  options.name = "cpp_client";
  const std::vector<std::string> blocks(argv + 4, argv + 6);
  CHECK(!ecpipe::Version().empty());
  ecpipe::Client first(options);
  ecpipe::Client client = std::move(first);
  TestReads(&client, blocks[0]);
  TestSubmittedCalls(&client, argv[2], blocks);
  TestRepairs(&client, argv[2], argv[3], blocks);
  std::printf("ok\n");
  return 0;
}
