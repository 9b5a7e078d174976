/* SPDX-License-Identifier: Apache-2.0
 * What the test programs in C share. */
#ifndef C_CLIENT_H_
#define C_CLIENT_H_

#include <dirent.h>
#include <ecpipe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ecpipe_error error = {.struct_bytes = sizeof error};

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "line %d: %s: last error %d: %s\n", __LINE__, #condition,      \
              error.code, error.message);                                            \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

static ecpipe_target target_of(const char* const* blocks, size_t count) {
  ecpipe_target target = {.struct_bytes = sizeof target};
  target.block_ids = blocks;
  target.block_count = count;
  return target;
}

static ecpipe_client* client_of(const char* coordinator) {
  ecpipe_options options = {.struct_bytes = sizeof options};
  ecpipe_client* client = NULL;
  options.coordinator = coordinator;
  /* Of a cluster with TLS. */
  options.tls_ca = getenv("ECPIPE_TLS_CA");
  options.tls_certificate = getenv("ECPIPE_TLS_CERT");
  options.tls_key = getenv("ECPIPE_TLS_KEY");
  CHECK(ecpipe_open(&options, &client, &error) == ECPIPE_OK);
  return client;
}

/* What the process does on each signal, and which this thread takes. */
struct signals {
  struct sigaction actions[65];
  sigset_t mask;
};

static void look_at_signals(struct signals* signals) {
  int number = 0;
  memset(signals, 0, sizeof *signals);
  for (number = 1; number < 65; ++number) sigaction(number, NULL, &signals->actions[number]);
  sigprocmask(SIG_SETMASK, NULL, &signals->mask);
}

static void check_signals_are(const struct signals* before) {
  static struct signals now;
  int number = 0;
  look_at_signals(&now);
  for (number = 1; number < 65; ++number) {
    CHECK(now.actions[number].sa_handler == before->actions[number].sa_handler);
    CHECK(sigismember(&now.mask, number) == sigismember(&before->mask, number));
  }
}

/* Threads of the library must not run the host's handlers. The host has its first thread only. */
static void check_threads_take_no_signals(void) {
  const unsigned long long must = (1ULL << (SIGUSR1 - 1)) | (1ULL << (SIGINT - 1));
  DIR* folder = opendir("/proc/self/task");
  struct dirent* entry = NULL;
  int threads = 0;
  CHECK(folder != NULL);
  while ((entry = readdir(folder)) != NULL) {
    char path[300], line[300];
    FILE* status = NULL;
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    status = fopen(path, "r");
    if (status == NULL) continue; /* it has ended */
    while (fgets(line, sizeof line, status) != NULL) {
      unsigned long long blocked = 0;
      if (sscanf(line, "SigBlk: %llx", &blocked) != 1) continue;
      ++threads;
      CHECK((blocked & must) == must);
    }
    fclose(status);
  }
  closedir(folder);
  CHECK(threads > 0);
}

#endif /* C_CLIENT_H_ */
