/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a block from an event loop, which goes on with other things meanwhile, and writes it to
 * standard output: read_event_loop COORDINATOR BLOCK */
#include <ecpipe.h>
#include <poll.h>
#include <stdio.h>

/* None of the library's codes. */
enum { NOT_WRITTEN = 1000 };

/* Takes what has come. ECPIPE_PENDING: there will be more. ECPIPE_OK: that was all. */
static int take_all(ecpipe_call* call, ecpipe_error* error) {
  static char buffer[1 << 16];
  size_t taken = 0;
  int code = ECPIPE_OK;
  do {
    code = ecpipe_call_take(call, buffer, sizeof buffer, &taken, error);
    if (code != ECPIPE_OK) return code;
    if (fwrite(buffer, 1, taken, stdout) != taken) return NOT_WRITTEN;
  } while (taken > 0);
  return ECPIPE_OK;
}

int main(int argc, char** argv) {
  ecpipe_error error = {.struct_bytes = sizeof error};
  ecpipe_options options = {.struct_bytes = sizeof options};
  ecpipe_target target = {.struct_bytes = sizeof target};
  ecpipe_client* client = NULL;
  ecpipe_call* call = NULL;
  const char* block = NULL;
  int code = ECPIPE_OK;
  if (argc != 3) {
    fprintf(stderr, "usage: read_event_loop COORDINATOR BLOCK\n");
    return 2;
  }
  block = argv[2];
  options.coordinator = argv[1];
  code = ecpipe_open(&options, &client, &error);
  if (code == ECPIPE_OK) {
    target.block_ids = &block;
    target.block_count = 1;
    code = ecpipe_submit_read(client, &target, NULL, &call, &error);
  }
  if (code == ECPIPE_OK) {
    struct pollfd polled = {0, POLLIN, 0};
    polled.fd = ecpipe_call_descriptor(call);
    code = ECPIPE_PENDING;
    while (code == ECPIPE_PENDING) {
      poll(&polled, 1, 1000); /* with the program's other descriptors and timers */
      code = take_all(call, &error);
    }
  }
  if (code == ECPIPE_OK && fflush(stdout) != 0) code = NOT_WRITTEN;
  if (code == NOT_WRITTEN) {
    fprintf(stderr, "error: standard output could not be written\n");
  } else if (code != ECPIPE_OK) {
    fprintf(stderr, "error %d: %s\n", code, error.message);
  }
  ecpipe_call_free(call); /* cancels it if it is under way */
  ecpipe_close(client);
  return code == ECPIPE_OK ? 0 : 1;
}
