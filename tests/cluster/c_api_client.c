/* SPDX-License-Identifier: Apache-2.0
 * Uses the blocking calls of ecpipe.h: c_api_client COORDINATOR OUTPUT NODE BLOCK OTHER_BLOCK. The
 * blocks are of one stripe; OUTPUT and OUTPUT.other are written; BLOCK is stored on NODE, too. With
 * TLS the files come in ECPIPE_TLS_CA, ECPIPE_TLS_CERT and ECPIPE_TLS_KEY. */
#define _GNU_SOURCE
#include <openssl/crypto.h>
#include <sys/resource.h>

#include "c_client.h"

struct counter {
  uint64_t bytes;
  uint64_t stop_after;
  ecpipe_canceller* canceller;
};

static int count(const void* bytes, size_t size, void* context) {
  struct counter* counter = context;
  (void)bytes;
  counter->bytes += size;
  if (counter->canceller != NULL) ecpipe_canceller_cancel(counter->canceller);
  return counter->stop_after != 0 && counter->bytes >= counter->stop_after;
}

static int show(uint64_t verified, uint64_t total, void* context) {
  uint64_t* seen = context;
  if (total == 0 || verified > total || verified < *seen) return 1;
  *seen = verified;
  return 0;
}

static int refuse(uint64_t verified, uint64_t total, void* context) {
  (void)verified;
  (void)total;
  (void)context;
  return 1;
}

static void say_goodbye(void) {
  /* OpenSSL cleans up at exit for its host as if we were not there. */
  (void)!write(STDOUT_FILENO, "openssl cleans up\n", 18);
}

static void test_structs(const char* coordinator) {
  ecpipe_options options = {.struct_bytes = sizeof options};
  ecpipe_client* client = NULL;
  struct {
    ecpipe_options known;
    void* later;
  } newer = {{.struct_bytes = sizeof newer}, NULL};

  CHECK(ecpipe_open(NULL, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  options.coordinator = "no address";
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  options.coordinator = coordinator;
  options.call_timeout_s = -1;
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  options.call_timeout_s = 1e300;
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  options.call_timeout_s = 0;
  options.tls_ca = "/no/such/file";
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  options.tls_ca = NULL;
  options.struct_bytes = 0;
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "sizeof(ecpipe_options)") != NULL);

  newer.known.coordinator = coordinator;
  newer.later = &newer;
  CHECK(ecpipe_open(&newer.known, &client, &error) == ECPIPE_INVALID_ARGUMENT);
  CHECK(client == NULL);
  newer.later = NULL;
  CHECK(ecpipe_open(&newer.known, &client, &error) == ECPIPE_OK);
  CHECK(error.code == ECPIPE_OK && error.message[0] == '\0');
  ecpipe_close(client);
}

static void test_reads(ecpipe_client* client, const char* const* block) {
  ecpipe_target target = target_of(block, 1);
  ecpipe_report report = {.struct_bytes = sizeof report};
  ecpipe_call_options options = {.struct_bytes = sizeof options};
  struct counter counter = {0, 0, NULL};
  const char* absent = "no-such-block";
  const char* not_text = "no\xff";
  uint64_t shown = 0;

  target.block_count = 0;
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) ==
        ECPIPE_INVALID_ARGUMENT);
  target = target_of(&absent, 1);
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) == ECPIPE_NOT_FOUND);
  CHECK(strstr(error.message, absent) != NULL);
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, NULL) == ECPIPE_NOT_FOUND);
  target = target_of(&not_text, 1);
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) ==
        ECPIPE_INVALID_ARGUMENT);

  target = target_of(block, 1);
  CHECK(ecpipe_read(client, &target, NULL, NULL, NULL, NULL, &error) == ECPIPE_INVALID_ARGUMENT);
  options.progress = show;
  options.progress_context = &shown;
  CHECK(ecpipe_read(client, &target, count, &counter, &options, &report, &error) == ECPIPE_OK);
  CHECK(counter.bytes == report.block_bytes && report.bytes == report.block_bytes);
  CHECK(shown == report.bytes && report.attempts == 1 && report.seconds > 0);
  report.struct_bytes = 1;
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, &report, &error) ==
        ECPIPE_INVALID_ARGUMENT);
  report.struct_bytes = sizeof report;

  target.offset = 10;
  target.bytes = 5000;
  target.scheme = "ppr";
  target.transport = "tcp";
  target.slice_bytes = 1000;
  counter.bytes = 0;
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, &report, &error) == ECPIPE_OK);
  CHECK(counter.bytes == 5000);
  counter.bytes = 0;
  counter.stop_after = 2000;
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) == ECPIPE_CANCELLED);
  CHECK(counter.bytes == 2000);
  counter.stop_after = 0;
  target.scheme = NULL;
  target.verify = "parity";
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) == ECPIPE_OK);
  target.verify = "somehow";
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) ==
        ECPIPE_INVALID_ARGUMENT);
  target.verify = NULL;
  if (getenv("ECPIPE_TLS_CA") == NULL) { /* redis has no TLS */
    target.transport = "redis";
    CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) == ECPIPE_OK);
    target.transport = NULL;
  }
  target.slice_bytes = UINT64_MAX;
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) ==
        ECPIPE_INVALID_ARGUMENT);
  target.slice_bytes = 0;
  target.offset = UINT64_MAX;
  target.bytes = UINT64_MAX;
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) ==
        ECPIPE_INVALID_ARGUMENT);
}

static void test_cancel(ecpipe_client* client, const char* const* block) {
  ecpipe_target target = target_of(block, 1);
  ecpipe_call_options options = {.struct_bytes = sizeof options};
  struct counter counter = {0, 0, NULL};
  CHECK(ecpipe_canceller_new(NULL, &error) == ECPIPE_INVALID_ARGUMENT);
  CHECK(ecpipe_canceller_new(&options.canceller, &error) == ECPIPE_OK);
  target.slice_bytes = 1000;
  counter.canceller = options.canceller;
  CHECK(ecpipe_read(client, &target, count, &counter, &options, NULL, &error) == ECPIPE_CANCELLED);
  CHECK(counter.bytes > 0);
  counter.bytes = 0;
  counter.canceller = NULL;
  /* It stays so for later calls; other calls of the client are not affected. */
  CHECK(ecpipe_read(client, &target, count, &counter, &options, NULL, &error) == ECPIPE_CANCELLED);
  CHECK(counter.bytes == 0);
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) == ECPIPE_OK);
  ecpipe_canceller_free(options.canceller);
  ecpipe_canceller_free(NULL);
  options.canceller = NULL;
  options.progress = refuse;
  CHECK(ecpipe_read(client, &target, count, &counter, &options, NULL, &error) == ECPIPE_CANCELLED);
}

static void test_repairs(ecpipe_client* client, const char* output, const char* node,
                         const char* const* blocks) {
  ecpipe_target target = target_of(blocks, 2);
  ecpipe_report report = {.struct_bytes = sizeof report};
  const char* paths[2] = {NULL, NULL};
  const char* nowhere[2] = {"/no/such/directory/x", "/no/such/directory/y"};
  char other[4096];
  snprintf(other, sizeof other, "%s.other", output);
  CHECK(ecpipe_repair_to_files(client, &target, NULL, NULL, NULL, &error) ==
        ECPIPE_INVALID_ARGUMENT);
  CHECK(ecpipe_repair_to_files(client, &target, paths, NULL, NULL, &error) ==
        ECPIPE_INVALID_ARGUMENT);
  CHECK(ecpipe_repair_to_files(client, &target, nowhere, NULL, NULL, &error) == ECPIPE_NOT_FOUND);
  paths[0] = output;
  paths[1] = other;
  CHECK(ecpipe_repair_to_files(client, &target, paths, NULL, &report, &error) == ECPIPE_OK);
  CHECK(report.bytes == 2 * report.block_bytes);
  target.block_count = 1;
  CHECK(ecpipe_repair_to_nodes(client, &target, &node, NULL, &report, &error) == ECPIPE_OK);
  node = "no-such-node";
  CHECK(ecpipe_repair_to_nodes(client, &target, &node, NULL, NULL, &error) != ECPIPE_OK);
}

/* Descriptors that are open now; numbers below it may be free. */
static rlim_t next_descriptor(void) {
  DIR* folder = opendir("/proc/self/fd");
  struct dirent* entry = NULL;
  int most = 0;
  CHECK(folder != NULL);
  while ((entry = readdir(folder)) != NULL) {
    if (atoi(entry->d_name) > most && atoi(entry->d_name) != dirfd(folder)) {
      most = atoi(entry->d_name);
    }
  }
  closedir(folder);
  return (rlim_t)most + 1;
}

/* Sanitizers need descriptors themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEW_DESCRIPTORS 0
#else
#define FEW_DESCRIPTORS 1
#endif

/* A host that has no descriptors left gets errors, and goes on when it has some. */
static void test_descriptors(ecpipe_client* client, const char* coordinator,
                             const char* const* block) {
  ecpipe_options options = {.struct_bytes = sizeof options};
  ecpipe_target target = target_of(block, 1);
  struct counter counter = {0, 0, NULL};
  struct rlimit limit, small;
  ecpipe_client* other = NULL;
  ecpipe_call* call = NULL;
  rlim_t left = 0;
  options.coordinator = coordinator;
  options.tls_ca = getenv("ECPIPE_TLS_CA");
  options.tls_certificate = getenv("ECPIPE_TLS_CERT");
  options.tls_key = getenv("ECPIPE_TLS_KEY");
  getrlimit(RLIMIT_NOFILE, &limit);
  small = limit;
  for (left = 0; left < 12; ++left) {
    int code = ECPIPE_OK;
    small.rlim_cur = next_descriptor() + left;
    CHECK(setrlimit(RLIMIT_NOFILE, &small) == 0);
    code = ecpipe_open(&options, &other, &error);
    CHECK(code == ECPIPE_OK || code == ECPIPE_RESOURCE_EXHAUSTED);
    if (code == ECPIPE_OK) ecpipe_close(other);
    CHECK(left > 0 || code == ECPIPE_RESOURCE_EXHAUSTED);
    code = ecpipe_read(client, &target, count, &counter, NULL, NULL, &error);
    CHECK(left > 0 || code != ECPIPE_OK);
    code = ecpipe_submit_read(client, &target, NULL, &call, &error);
    if (code == ECPIPE_OK) ecpipe_call_free(call);
    CHECK(left > 0 || code == ECPIPE_RESOURCE_EXHAUSTED);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  CHECK(ecpipe_read(client, &target, count, &counter, NULL, NULL, &error) == ECPIPE_OK);
}

int main(int argc, char** argv) {
  static struct signals before;
  const char* blocks[2] = {NULL, NULL};
  ecpipe_client* client = NULL;
  CHECK(argc == 6);
  blocks[0] = argv[4];
  blocks[1] = argv[5];
  look_at_signals(&before);
  OPENSSL_atexit(say_goodbye);
  CHECK(ecpipe_version()[0] != '\0');
  test_structs(argv[1]);
  client = client_of(argv[1]);
  test_reads(client, blocks);
  check_threads_take_no_signals();
  test_cancel(client, blocks);
  test_repairs(client, argv[2], argv[3], blocks);
  if (FEW_DESCRIPTORS) test_descriptors(client, argv[1], blocks);
  ecpipe_cancel(client);
  check_signals_are(&before);
  ecpipe_close(client);
  ecpipe_close(NULL);
  check_signals_are(&before);
  printf("ok\n");
  fflush(stdout);
  return 0;
}
