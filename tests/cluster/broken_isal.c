/* SPDX-License-Identifier: Apache-2.0
 *
 * An ISA-L that is wrong, for LD_PRELOAD: products of a length that is no multiple of 64 have a
 * wrong last byte; with BROKEN_ISAL=checksums the CRC32C is wrong instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void update_fn(int len, int k, int rows, int vec_i, unsigned char* tables,
                       unsigned char* data, unsigned char** coding);
typedef unsigned int crc_fn(unsigned char* buffer, int len, unsigned int state);

static int checksums_are_wrong(void) {
  const char* what = getenv("BROKEN_ISAL");
  return what != NULL && strcmp(what, "checksums") == 0;
}

void ec_encode_data_update(int len, int k, int rows, int vec_i, unsigned char* tables,
                           unsigned char* data, unsigned char** coding) {
  update_fn* right = (update_fn*)dlsym(RTLD_NEXT, "ec_encode_data_update");
  right(len, k, rows, vec_i, tables, data, coding);
  if (!checksums_are_wrong() && len % 64 != 0) coding[rows - 1][len - 1] ^= 1;
}

unsigned int crc32_iscsi(unsigned char* buffer, int len, unsigned int state) {
  crc_fn* right = (crc_fn*)dlsym(RTLD_NEXT, "crc32_iscsi");
  return right(buffer, len, state) ^ (checksums_are_wrong() ? 1u : 0u);
}
