/* SPDX-License-Identifier: Apache-2.0
 * Uses the submitted calls of ecpipe.h from one thread with poll():
 *   event_loop_client SCENARIO COORDINATOR FILE BLOCK...
 * FILE has the bytes of the first block, or is where a repair writes. */
#define _GNU_SOURCE
#include <poll.h>
#include <time.h>

#include "c_client.h"

enum { MOST_CALLS = ECPIPE_MOST_SUBMITTED };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Whether the descriptor says that there is something, within so long. */
static int ready_within(ecpipe_call* call, int milliseconds) {
  struct pollfd polled = {0, POLLIN, 0};
  polled.fd = ecpipe_call_descriptor(call);
  CHECK(polled.fd >= 0);
  return poll(&polled, 1, milliseconds) == 1;
}

static int result_within(ecpipe_call* call, double seconds) {
  const double end = now() + seconds;
  int code = ECPIPE_PENDING;
  while ((code = ecpipe_call_result(call, NULL, &error)) == ECPIPE_PENDING && now() < end) {
    static char sink[1 << 16];
    size_t taken = 0;
    ready_within(call, 100);
    (void)ecpipe_call_take(call, sink, sizeof sink, &taken, &error);
  }
  return code;
}

static ecpipe_call* read_of(ecpipe_client* client, const char* const* block, size_t buffer) {
  ecpipe_target target = target_of(block, 1);
  ecpipe_submit_options options = {.struct_bytes = sizeof options};
  ecpipe_call* call = NULL;
  options.buffer_bytes = buffer;
  CHECK(ecpipe_submit_read(client, &target, &options, &call, &error) == ECPIPE_OK);
  return call;
}

static char* contents_of(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* bytes = NULL;
  CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
  *size = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(*size);
  CHECK(bytes != NULL && fread(bytes, 1, *size, file) == *size);
  fclose(file);
  return bytes;
}

/* Takes what has come and compares it. 1: that was all. */
static int take_and_compare(ecpipe_call* call, const char* expected, size_t size, size_t* at) {
  static char buffer[3000];
  size_t taken = 0;
  int code = ECPIPE_OK;
  do {
    code = ecpipe_call_take(call, buffer, sizeof buffer, &taken, &error);
    if (code == ECPIPE_PENDING) return 0;
    CHECK(code == ECPIPE_OK && *at + taken <= size);
    CHECK(memcmp(buffer, expected + *at, taken) == 0);
    *at += taken;
  } while (taken > 0);
  CHECK(*at == size);
  return 1;
}

/* Many reads of the first block at once, with small buffers. */
static void many(ecpipe_client* client, const char* const* block, const char* path) {
  enum { COUNT = 32 };
  ecpipe_call* calls[COUNT];
  size_t at[COUNT] = {0};
  struct pollfd polled[COUNT];
  int left = COUNT;
  int i = 0;
  size_t size = 0;
  char* expected = contents_of(path, &size);
  ecpipe_report report = {.struct_bytes = sizeof report};
  for (i = 0; i < COUNT; ++i) {
    calls[i] = read_of(client, block, (size_t)501 + 1000 * (size_t)i);
    polled[i].fd = ecpipe_call_descriptor(calls[i]);
    polled[i].events = POLLIN;
  }
  while (left > 0) {
    CHECK(poll(polled, COUNT, 60000) > 0);
    for (i = 0; i < COUNT; ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      if (!take_and_compare(calls[i], expected, size, &at[i])) continue;
      CHECK(ecpipe_call_result(calls[i], &report, &error) == ECPIPE_OK && report.bytes == size);
      CHECK(ready_within(calls[i], 0)); /* stays so */
      ecpipe_call_free(calls[i]);
      polled[i].fd = -1;
      --left;
    }
  }
  free(expected);
}

/* Whoever takes nothing holds the helpers up, and no memory grows. */
static void back_pressure(ecpipe_client* client, const char* const* block, const char* path) {
  uint64_t verified = 0, later = 0, total = 0;
  size_t at = 0, size = 0;
  char* expected = contents_of(path, &size);
  ecpipe_call* call = read_of(client, block, 4096);
  CHECK(ready_within(call, 60000));
  poll(NULL, 0, 500);
  ecpipe_call_progress(call, &verified, &total);
  poll(NULL, 0, 500);
  ecpipe_call_progress(call, &later, &total);
  CHECK(total == size && verified == later && later < size / 4);
  CHECK(ecpipe_call_result(call, NULL, &error) == ECPIPE_PENDING);
  while (!take_and_compare(call, expected, size, &at)) CHECK(ready_within(call, 60000));
  ecpipe_call_free(call);
  free(expected);
}

static void cancel_in_each_state(ecpipe_client* client, const char* const* block) {
  char byte = 0;
  size_t taken = 0;
  ecpipe_call* call = read_of(client, block, 4096);
  ecpipe_call_cancel(call); /* while it is begun */
  CHECK(result_within(call, 10) == ECPIPE_CANCELLED);
  CHECK(ecpipe_call_take(call, &byte, 1, &taken, &error) == ECPIPE_CANCELLED);
  ecpipe_call_cancel(call);
  ecpipe_call_free(call);

  call = read_of(client, block, 4096); /* while its buffer is full */
  CHECK(ready_within(call, 60000));
  poll(NULL, 0, 200);
  ecpipe_call_cancel(call);
  CHECK(result_within(call, 10) == ECPIPE_CANCELLED);
  ecpipe_call_free(call);

  call = read_of(client, block, 4096); /* while bytes flow */
  CHECK(ready_within(call, 60000));
  CHECK(ecpipe_call_take(call, &byte, 1, &taken, &error) == ECPIPE_OK && taken == 1);
  ecpipe_call_cancel(call);
  CHECK(result_within(call, 10) == ECPIPE_CANCELLED);
  ecpipe_call_free(call);

  call = read_of(client, block, 4096); /* when it has ended */
  CHECK(result_within(call, 60) == ECPIPE_OK);
  ecpipe_call_cancel(call);
  CHECK(ecpipe_call_result(call, NULL, &error) == ECPIPE_OK);
  ecpipe_call_free(call);

  call = read_of(client, block, 4096); /* by the client */
  CHECK(ready_within(call, 60000));
  ecpipe_cancel(client);
  CHECK(result_within(call, 10) == ECPIPE_CANCELLED);
  ecpipe_call_free(call);
  ecpipe_call_free(NULL);

  ecpipe_call_free(read_of(client, block, 4096)); /* by freeing it: at once, */
  call = read_of(client, block, 4096);
  CHECK(ready_within(call, 60000)); /* and in its midst */
  ecpipe_call_free(call);
}

/* The files' bytes are the test script's to compare. */
static void repair(ecpipe_client* client, const char* const* blocks, const char* path) {
  ecpipe_target target = target_of(blocks, 2);
  ecpipe_report report = {.struct_bytes = sizeof report};
  ecpipe_call* call = NULL;
  uint64_t verified = 0, total = 0;
  char other[4096];
  const char* paths[2] = {NULL, NULL};
  const char* nodes[2] = {"no-such-node", "nor-this"};
  char byte = 0;
  size_t taken = 0;
  snprintf(other, sizeof other, "%s.other", path);
  CHECK(ecpipe_submit_repair_to_files(client, &target, NULL, NULL, &call, &error) ==
        ECPIPE_INVALID_ARGUMENT);
  paths[0] = path;
  paths[1] = other;
  CHECK(ecpipe_submit_repair_to_files(client, &target, paths, NULL, &call, &error) == ECPIPE_OK);
  CHECK(ready_within(call, 60000));
  CHECK(ecpipe_call_result(call, &report, &error) == ECPIPE_OK);
  CHECK(report.bytes == 2 * report.block_bytes);
  ecpipe_call_progress(call, &verified, &total);
  CHECK(verified == report.bytes && total == report.bytes);
  CHECK(ecpipe_call_take(call, &byte, 1, &taken, &error) == ECPIPE_OK && taken == 0);
  ecpipe_call_free(call);
  CHECK(ecpipe_submit_repair_to_nodes(client, &target, nodes, NULL, &call, &error) == ECPIPE_OK);
  CHECK(ready_within(call, 60000));
  CHECK(ecpipe_call_result(call, &report, &error) > ECPIPE_OK);
  ecpipe_call_free(call);
}

/* As many calls as there may be, and one more; then room again. The coordinator says nothing, so
 * that none of them ends by itself. */
static void too_many(ecpipe_client* client, const char* const* block) {
  static ecpipe_call* calls[MOST_CALLS];
  ecpipe_target target = target_of(block, 1);
  ecpipe_call* call = NULL;
  double end = 0;
  int i = 0;
  int code = ECPIPE_OK;
  for (i = 0; i < MOST_CALLS; ++i) calls[i] = read_of(client, block, 4096);
  CHECK(ecpipe_submit_read(client, &target, NULL, &call, &error) == ECPIPE_RESOURCE_EXHAUSTED);
  for (i = 0; i < MOST_CALLS; ++i) ecpipe_call_free(calls[i]);
  end = now() + 30;
  while ((code = ecpipe_submit_read(client, &target, NULL, &call, &error)) != ECPIPE_OK) {
    CHECK(code == ECPIPE_RESOURCE_EXHAUSTED && now() < end);
    poll(NULL, 0, 20);
  }
  ecpipe_call_free(call);
}

/* Closes the client with calls under way, which keep their results. */
static void close_under_way(ecpipe_client* client, const char* const* block) {
  ecpipe_call* full = read_of(client, block, 4096);
  ecpipe_call* beginning = NULL;
  const double begun = now();
  CHECK(ready_within(full, 60000));
  beginning = read_of(client, block, 4096);
  ecpipe_close(client);
  CHECK(now() - begun < 30);
  CHECK(ecpipe_call_result(full, NULL, &error) == ECPIPE_CANCELLED);
  CHECK(ecpipe_call_result(beginning, NULL, &error) == ECPIPE_CANCELLED);
  ecpipe_call_cancel(full);
  ecpipe_call_free(full);
  ecpipe_call_free(beginning);
}

/* A coordinator that is not there; or, `silent`, takes connections and says nothing. */
static void down(ecpipe_client* client, const char* const* block, int silent) {
  ecpipe_call* call = read_of(client, block, 4096);
  double begun = 0;
  if (!silent) {
    const int code = result_within(call, 60);
    CHECK(code == ECPIPE_UNAVAILABLE || code == ECPIPE_DEADLINE_EXCEEDED);
    ecpipe_call_free(call);
    call = read_of(client, block, 4096);
  }
  poll(NULL, 0, 300);
  begun = now();
  ecpipe_call_cancel(call);
  if (silent) CHECK(result_within(call, 10) == ECPIPE_CANCELLED && now() - begun < 4);
  ecpipe_call_free(call);
  call = read_of(client, block, 4096);
  begun = now();
  ecpipe_close(client);
  CHECK(now() - begun < 8);
  CHECK(ecpipe_call_result(call, NULL, &error) > ECPIPE_OK);
  ecpipe_call_free(call);
}

/* The script kills all daemons when this says "reading"; what comes of it is an error. */
static void dead_peers(ecpipe_client* client, const char* const* block) {
  ecpipe_call* call = read_of(client, block, 4096);
  char line[16];
  CHECK(ready_within(call, 60000));
  printf("reading\n");
  fflush(stdout);
  CHECK(fgets(line, sizeof line, stdin) != NULL);
  CHECK(result_within(call, 120) > ECPIPE_OK);
  ecpipe_call_free(call);
  call = read_of(client, block, 4096);
  CHECK(result_within(call, 120) > ECPIPE_OK);
  ecpipe_call_free(call);
}

static void signals(ecpipe_client* client, const char* const* block) {
  ecpipe_call* call = read_of(client, block, 4096);
  CHECK(ready_within(call, 60000));
  check_threads_take_no_signals();
  ecpipe_call_free(call);
}

int main(int argc, char** argv) {
  static struct signals before;
  const char* const* blocks = (const char* const*)(argv + 4);
  const char* scenario = argc > 4 ? argv[1] : "";
  ecpipe_client* client = NULL;
  look_at_signals(&before);
  CHECK(before.actions[SIGPIPE].sa_handler == SIG_DFL);
  CHECK(argc > 4);
  client = client_of(argv[2]);
  if (strcmp(scenario, "many") == 0) {
    many(client, blocks, argv[3]);
  } else if (strcmp(scenario, "back-pressure") == 0) {
    back_pressure(client, blocks, argv[3]);
  } else if (strcmp(scenario, "cancel") == 0) {
    cancel_in_each_state(client, blocks);
  } else if (strcmp(scenario, "repair") == 0) {
    CHECK(argc == 6);
    repair(client, blocks, argv[3]);
  } else if (strcmp(scenario, "too-many") == 0) {
    too_many(client, blocks);
  } else if (strcmp(scenario, "dead-peers") == 0) {
    dead_peers(client, blocks);
  } else if (strcmp(scenario, "signals") == 0) {
    signals(client, blocks);
  } else {
    if (strcmp(scenario, "close") == 0) {
      close_under_way(client, blocks);
    } else {
      CHECK(strcmp(scenario, "down") == 0 || strcmp(scenario, "silent") == 0);
      down(client, blocks, strcmp(scenario, "silent") == 0);
    }
    client = NULL;
  }
  check_signals_are(&before);
  ecpipe_close(client);
  check_signals_are(&before);
  printf("ok\n");
  fflush(stdout);
  return 0;
}
