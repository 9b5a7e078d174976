/* SPDX-License-Identifier: Apache-2.0
 * Uses every function of ecpipe.h: c_api_client COORDINATOR BLOCK OUTPUT [CA CERTIFICATE
 * KEY]. */
#include <ecpipe.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, error.message); \
      return 1;                                                                \
    }                                                                          \
  } while (0)

struct counter {
  uint64_t bytes;
  uint64_t stop_after;
};

static int count(const void* bytes, size_t size, void* context) {
  struct counter* counter = context;
  (void)bytes;
  counter->bytes += size;
  return counter->stop_after != 0 && counter->bytes >= counter->stop_after;
}

int main(int argc, char** argv) {
  ecpipe_error error;
  ecpipe_options options;
  ecpipe_target target;
  ecpipe_report report;
  ecpipe_client* client = NULL;
  struct counter counter = {0, 0};
  memset(&error, 0, sizeof error);
  memset(&options, 0, sizeof options);
  memset(&target, 0, sizeof target);
  CHECK(argc == 4 || argc == 7);

  CHECK(ecpipe_open(NULL, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  options.coordinator = "no address";
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  options.coordinator = argv[1];
  if (argc == 7) {
    options.tls_ca = argv[4];
    CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
    options.tls_certificate = argv[5];
    options.tls_key = argv[6];
  }
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_OK);

  CHECK(ecpipe_read(client, &target, count, &counter, NULL, &error) == ECPIPE_INVALID_ARGUMENT);
  target.block_id = "no-such-block";
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, &error) == ECPIPE_NOT_FOUND);
  CHECK(strstr(error.message, "no-such-block") != NULL);

  target.block_id = argv[2];
  CHECK(ecpipe_read(client, &target, count, &counter, &report, &error) == ECPIPE_OK);
  CHECK(counter.bytes == report.block_bytes && report.bytes == report.block_bytes);

  target.offset = 10;
  target.bytes = 5000;
  target.scheme = "ppr";
  target.transport = "tcp";
  target.slice_bytes = 1000;
  counter.bytes = 0;
  CHECK(ecpipe_read(client, &target, count, &counter, &report, &error) == ECPIPE_OK);
  CHECK(counter.bytes == 5000);
  counter.bytes = 0;
  counter.stop_after = 2000;
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, &error) == ECPIPE_CANCELLED);
  CHECK(counter.bytes == 2000);

  memset(&target, 0, sizeof target);
  target.block_id = argv[2];
  CHECK(ecpipe_repair_to_file(client, &target, argv[3], &report, &error) == ECPIPE_OK);
  CHECK(ecpipe_repair_to_file(client, &target, "/no/such/directory/x", NULL, &error) ==
        ECPIPE_NOT_FOUND);
  ecpipe_cancel(client);
  ecpipe_close(client);
  ecpipe_close(NULL);
  printf("ok\n");
  return 0;
}
