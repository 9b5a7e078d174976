/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a block, lost or not, to standard output: read_block COORDINATOR BLOCK */
#include <ecpipe.h>
#include <stdio.h>

static int write_out(const void* bytes, size_t size, void* file) {
  return fwrite(bytes, 1, size, file) == size ? 0 : 1; /* not 0: end the read */
}

int main(int argc, char** argv) {
  ecpipe_error error = {.struct_bytes = sizeof error};
  ecpipe_options options = {.struct_bytes = sizeof options};
  ecpipe_target target = {.struct_bytes = sizeof target};
  ecpipe_report report = {.struct_bytes = sizeof report};
  ecpipe_client* client = NULL;
  const char* block = NULL;
  int code = ECPIPE_OK;
  int written = 0;
  if (argc != 3) {
    fprintf(stderr, "usage: read_block COORDINATOR BLOCK\n");
    return 2;
  }
  block = argv[2];
  options.coordinator = argv[1];
  code = ecpipe_open(&options, &client, &error);
  if (code == ECPIPE_OK) {
    target.block_ids = &block;
    target.block_count = 1;
    code = ecpipe_read(client, &target, write_out, stdout, NULL, &report, &error);
  }
  written = fflush(stdout) == 0 && !ferror(stdout);
  if (!written) {
    fprintf(stderr, "error: standard output could not be written\n");
  } else if (code == ECPIPE_OK) {
    fprintf(stderr, "%llu bytes in %.3f s\n", (unsigned long long)report.bytes, report.seconds);
  } else {
    fprintf(stderr, "error %d: %s\n", code, error.message);
  }
  ecpipe_close(client);
  return code == ECPIPE_OK && written ? 0 : 1;
}
