/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of libecpipe: read or rebuild erasure-coded blocks through ECPipe.
 *
 * Strings are NUL-terminated UTF-8 and only borrowed during a call. Functions that return int
 * return ECPIPE_OK or one of the codes below, and then fill `error` (which may be NULL). One client
 * may be used by several threads. No C++ exception leaves the library.
 */
#ifndef ECPIPE_H_
#define ECPIPE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ECPIPE_API __attribute__((visibility("default")))
#else
#define ECPIPE_API
#endif

/* The canonical codes of gRPC and Abseil, so that they can be looked up anywhere. */
enum {
  ECPIPE_OK = 0,
  ECPIPE_CANCELLED = 1,           /* by ecpipe_cancel, or the callback refused the bytes */
  ECPIPE_INVALID_ARGUMENT = 3,    /* bad range, slice size, scheme, transport or address */
  ECPIPE_DEADLINE_EXCEEDED = 4,   /* a node or the coordinator did not answer in time */
  ECPIPE_NOT_FOUND = 5,           /* the coordinator knows no such block */
  ECPIPE_RESOURCE_EXHAUSTED = 8,  /* disk full, or a limit of a node */
  ECPIPE_FAILED_PRECONDITION = 9, /* too few survivors; the message names each */
  ECPIPE_INTERNAL = 13,
  ECPIPE_UNAVAILABLE = 14, /* a node or the coordinator cannot be reached */
  ECPIPE_DATA_LOSS = 15    /* damaged bytes, refused; or a whole block is not what it should be */
};

typedef struct ecpipe_client ecpipe_client;

typedef struct ecpipe_error {
  int code;
  char message[1024]; /* cut if longer */
} ecpipe_error;

/* Zero-initialise it, then set what differs from the defaults. */
typedef struct ecpipe_options {
  const char* coordinator; /* "host:port"; required */
  const char* name;        /* of this requestor, for logs; NULL: host name and process id */
  double call_timeout_s;   /* of each call to the coordinator; 0: 15 s */
  double stall_timeout_s;  /* without a byte arriving; 0: 10 s */
  /* TLS, as PEM files: of the cluster's CA, and of this requestor. All three, or none: plain text.
   * New files are taken up while the client is open. */
  const char* tls_ca;
  const char* tls_certificate;
  const char* tls_key;
} ecpipe_options;

/* Zero-initialise it, then set what differs from the defaults. */
typedef struct ecpipe_target {
  const char* block_id;  /* required */
  uint64_t offset;       /* bytes into the block */
  uint64_t bytes;        /* 0: to the end of the block */
  const char* scheme;    /* NULL: the coordinator chooses */
  const char* transport; /* "tcp" or "redis"; NULL: the coordinator's default */
  uint32_t slice_bytes;  /* 0: the coordinator's default */
} ecpipe_target;

typedef struct ecpipe_report {
  uint64_t repair_id;
  uint64_t block_bytes;    /* length of the whole block */
  uint64_t bytes;          /* verified and handed over */
  uint64_t bytes_received; /* on the network, with frame headers */
  double seconds;
} ecpipe_report;

/* Takes the next bytes of the range, in order, from the thread that made the call. `bytes` is valid
 * during the call. Anything but 0 ends the read with ECPIPE_CANCELLED. */
typedef int (*ecpipe_bytes_fn)(const void* bytes, size_t size, void* context);

/* Makes a client. It dials the coordinator when first needed. */
ECPIPE_API int ecpipe_open(const ecpipe_options* options, ecpipe_client** client,
                           ecpipe_error* error);

/* Degraded read. Blocks until the end. What `take` was given is what the survivors give, which is
 * right unless one of them is corrupt and nothing tells (no checksums, no parity). Whether a whole
 * block is the one that its manifest knows shows at the end: its bytes count when the read has
 * succeeded. `report` may be NULL. */
ECPIPE_API int ecpipe_read(ecpipe_client* client, const ecpipe_target* target, ecpipe_bytes_fn take,
                           void* context, ecpipe_report* report, ecpipe_error* error);

/* Repair to disk: `path` appears whole and durable, or not at all. `report` may be NULL. */
ECPIPE_API int ecpipe_repair_to_file(ecpipe_client* client, const ecpipe_target* target,
                                     const char* path, ecpipe_report* report, ecpipe_error* error);

/* Ends the calls that are under way in other threads with ECPIPE_CANCELLED. */
ECPIPE_API void ecpipe_cancel(ecpipe_client* client);

/* No call may be under way. NULL is ignored. */
ECPIPE_API void ecpipe_close(ecpipe_client* client);

#ifdef __cplusplus
}
#endif

#endif /* ECPIPE_H_ */
