/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of libecpipe: read or rebuild erasure-coded blocks through ECPipe.
 * docs/library.md shows how to use and link it; ecpipe.hpp is the same for C++17.
 *
 * Strings are NUL-terminated UTF-8 without control characters; the library copies what it needs
 * before a function returns. Functions that return int return ECPIPE_OK or another code of the list
 * below and fill `error`; with ECPIPE_PENDING they leave it alone. A report is filled when all went
 * well. Both may be NULL.
 *
 * Structs. Each begins with `struct_bytes`, which the caller sets to sizeof before every first use;
 * all other members are zero or what the caller sets. Structs grow at their end only. A caller that
 * was compiled with a shorter struct gets the defaults of the members that it does not know. A
 * longer struct is taken if the members that the library does not know are zero, and else refused
 * with ECPIPE_INVALID_ARGUMENT, so that no wish is ignored in silence. Of a report or an error the
 * library fills the members that both know.
 *
 * Threads. Several threads may use one client at once. The library's own threads take none of the
 * process's signals. A child process made by fork() must not use what its parent has opened.
 *
 * Host. No function aborts the process, throws, or changes its signal handlers, its signal masks
 * or what OpenSSL does at exit; writing to a dead peer raises no SIGPIPE. Trouble with TLS files
 * that change while a client is open, and gRPC's own warnings, go to standard error. What no
 * library in C++ over gRPC can promise: where the system has no memory at all, gRPC ends the
 * process.
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

/* The canonical codes of gRPC and Abseil, so that they can be looked up anywhere. No other code
 * leaves the library, but ECPIPE_PENDING from the functions that name it. */
enum {
  ECPIPE_PENDING = -1, /* no failure: nothing to take yet; poll the call's descriptor */
  ECPIPE_OK = 0,
  ECPIPE_CANCELLED = 1,           /* by the caller: a cancel function, or its callback */
  ECPIPE_UNKNOWN = 2,             /* a peer failed without saying how */
  ECPIPE_INVALID_ARGUMENT = 3,    /* bad struct, range, slice size, scheme, transport or address */
  ECPIPE_DEADLINE_EXCEEDED = 4,   /* a node or the coordinator did not answer in time */
  ECPIPE_NOT_FOUND = 5,           /* the coordinator knows no such block; no such directory */
  ECPIPE_ALREADY_EXISTS = 6,      /* something is there that must not be */
  ECPIPE_PERMISSION_DENIED = 7,   /* the certificate's role, or a file's mode, does not allow it */
  ECPIPE_RESOURCE_EXHAUSTED = 8,  /* memory, disk, descriptors or threads; or a limit of a node */
  ECPIPE_FAILED_PRECONDITION = 9, /* too few survivors; the message names each */
  ECPIPE_ABORTED = 10,            /* attempts in a row brought nothing; the last one's reason */
  ECPIPE_OUT_OF_RANGE = 11,       /* beyond what the peer can take */
  ECPIPE_UNIMPLEMENTED = 12,      /* the coordinator or a node is too old for this */
  ECPIPE_INTERNAL = 13,           /* a mistake in ECPipe, or an error of the system */
  ECPIPE_UNAVAILABLE = 14,        /* a node or the coordinator cannot be reached */
  ECPIPE_DATA_LOSS = 15,          /* damaged bytes, refused; or a whole block is not as it should */
  ECPIPE_UNAUTHENTICATED = 16     /* a certificate is missing or not good */
};

/* The version of the library that runs, "MAJOR.MINOR.PATCH". It lives as long as the process. */
ECPIPE_API const char* ecpipe_version(void);

typedef struct ecpipe_error {
  size_t struct_bytes;
  int code;
  char message[1020]; /* UTF-8; a longer one is cut between two characters */
} ecpipe_error;

typedef struct ecpipe_options {
  size_t struct_bytes;
  const char* coordinator; /* "host:port"; required */
  const char* name;        /* of this requestor, for logs; NULL: host name and process id */
  double call_timeout_s;   /* of each call to the coordinator; 0: 15 s */
  double stall_timeout_s;  /* without a byte arriving; 0: 10 s */
  /* TLS, as PEM files: of the cluster's CA, and of this requestor. All three, or none: plain text.
   * New files are taken up while the client is open. */
  const char* tls_ca;
  const char* tls_certificate;
  const char* tls_key;
  /* The file with the password of the cluster's redis-servers, for the transport redis; its mode
   * must keep others out. NULL: they want none. */
  const char* redis_password_file;
} ecpipe_options;

/* Which bytes of which blocks. */
typedef struct ecpipe_target {
  size_t struct_bytes;
  const char* const* block_ids; /* required; of one stripe */
  size_t block_count;           /* required */
  uint64_t offset;              /* bytes into each block */
  uint64_t bytes;               /* 0: to the end of the block, of several: of the longest */
  const char* scheme;           /* NULL: the coordinator chooses */
  const char* transport;        /* "tcp" or "redis"; NULL: the coordinator's default */
  /* NULL or "none". "parity": one more survivor is read, and no slice is handed over in which the
   * blocks do not fit together. "locate": two more, and the corrupt block is named. */
  const char* verify;
  uint64_t slice_bytes; /* 0: the coordinator's default */
  double link_mbit;     /* what this machine's link receives; 0: not known. Plans that look at links
                         * use it whole only if it is known */
} ecpipe_target;

typedef struct ecpipe_report {
  size_t struct_bytes;
  uint64_t repair_id;
  uint64_t block_bytes;    /* length of a whole block, of several: of the longest */
  uint64_t bytes;          /* verified and handed over, of all blocks together */
  uint64_t bytes_received; /* on the network, with frame headers */
  double seconds;          /* from the call to the last verified byte */
  uint64_t attempts;       /* 1: nothing went wrong on the way */
} ecpipe_report;

/* ---- Clients ---- */

typedef struct ecpipe_client ecpipe_client;

/* Makes a client. It dials the coordinator when first needed. */
ECPIPE_API int ecpipe_open(const ecpipe_options* options, ecpipe_client** client,
                           ecpipe_error* error);

/* Ends the client's calls that are under way, blocking and submitted, with ECPIPE_CANCELLED. Any
 * thread. Calls that are made later are not affected. */
ECPIPE_API void ecpipe_cancel(ecpipe_client* client);

/* Cancels the submitted calls that are under way and waits for their threads: milliseconds, or as
 * long as a cancelled call takes at most (see ecpipe_canceller_cancel). Calls that were submitted
 * keep their result until they are freed. No blocking call may be under way. The last client of the
 * process also waits for gRPC's threads, two seconds at most. Close clients before main() returns
 * or exit() is called. NULL is ignored. */
ECPIPE_API void ecpipe_close(ecpipe_client* client);

/* ---- Blocking calls ---- */

/* Cancels the calls that it is given to: one, or several at once. */
typedef struct ecpipe_canceller ecpipe_canceller;
ECPIPE_API int ecpipe_canceller_new(ecpipe_canceller** canceller, ecpipe_error* error);
/* Any thread, once or several times; not from a signal handler. It does not wait. The calls under
 * way, and those that are made later, end with ECPIPE_CANCELLED: at once, or within 4 seconds where
 * the coordinator does not answer, or when the caller's own callback or a write to disk returns. */
ECPIPE_API void ecpipe_canceller_cancel(ecpipe_canceller* canceller);
/* After the calls that it was given to have returned. NULL is ignored. */
ECPIPE_API void ecpipe_canceller_free(ecpipe_canceller* canceller);

/* Called from the thread that made the call, a few times a second. Anything but 0 cancels the call.
 * Not called for blocks that nodes store, whose bytes do not come by here. */
typedef int (*ecpipe_progress_fn)(uint64_t verified_bytes, uint64_t total_bytes, void* context);

/* NULL in place of the struct: neither. */
typedef struct ecpipe_call_options {
  size_t struct_bytes;
  ecpipe_canceller* canceller; /* borrowed; NULL: only ecpipe_cancel ends the call */
  ecpipe_progress_fn progress; /* may be NULL */
  void* progress_context;
} ecpipe_call_options;

/* Takes the next bytes of the range, in order, from the thread that made the call. `bytes` is valid
 * during the call. Anything but 0 ends the read with ECPIPE_CANCELLED. Callbacks must not throw. */
typedef int (*ecpipe_bytes_fn)(const void* bytes, size_t size, void* context);

/* Degraded read of one block. Blocks until the end. What `take` was given is what the survivors
 * give, which is right unless one of them is corrupt and nothing tells (no checksums, no parity).
 * Whether a whole block is the one that its manifest knows shows at the end: its bytes count when
 * the read has succeeded. */
ECPIPE_API int ecpipe_read(ecpipe_client* client, const ecpipe_target* target, ecpipe_bytes_fn take,
                           void* context, const ecpipe_call_options* options, ecpipe_report* report,
                           ecpipe_error* error);

/* Repair to disk, of one block or several of a stripe: `paths` has one for each block of the
 * target. A block that ends within the range gives its file what it has of it. The files appear
 * when all bytes are there, each whole and durable or not at all; a device or FIFO of that name is
 * written to then. */
ECPIPE_API int ecpipe_repair_to_files(ecpipe_client* client, const ecpipe_target* target,
                                      const char* const* paths, const ecpipe_call_options* options,
                                      ecpipe_report* report, ecpipe_error* error);

/* Has the helpers of `nodes`, one for each block of the target, store the blocks, whole; the
 * catalog then names the new places. ECPIPE_ABORTED: it failed there. ECPIPE_CANCELLED: the nodes
 * may store the blocks nevertheless; the catalog says whether they did. */
ECPIPE_API int ecpipe_repair_to_nodes(ecpipe_client* client, const ecpipe_target* target,
                                      const char* const* nodes, const ecpipe_call_options* options,
                                      ecpipe_report* report, ecpipe_error* error);

/* ---- Submitted calls, for programs with an event loop ----
 *
 * Submitting returns at once; a thread of the library does the work. One thread at a time may use a
 * call, but any thread may cancel it. At most ECPIPE_MOST_SUBMITTED calls of a client are under way
 * at once; one more is refused with ECPIPE_RESOURCE_EXHAUSTED. */
#define ECPIPE_MOST_SUBMITTED 256

typedef struct ecpipe_call ecpipe_call;

/* NULL in place of the struct: the defaults. */
typedef struct ecpipe_submit_options {
  size_t struct_bytes;
  /* What a read holds for ecpipe_call_take at most, up to 1 GiB; 0: 1 MiB. When it is full the
   * helpers wait. Helpers give up what waits for longer than their stall_seconds; the call then
   * goes on with another attempt, and after sixteen that bring nothing ends with ECPIPE_ABORTED. */
  size_t buffer_bytes;
} ecpipe_submit_options;

ECPIPE_API int ecpipe_submit_read(ecpipe_client* client, const ecpipe_target* target,
                                  const ecpipe_submit_options* options, ecpipe_call** call,
                                  ecpipe_error* error);
ECPIPE_API int ecpipe_submit_repair_to_files(ecpipe_client* client, const ecpipe_target* target,
                                             const char* const* paths,
                                             const ecpipe_submit_options* options,
                                             ecpipe_call** call, ecpipe_error* error);
ECPIPE_API int ecpipe_submit_repair_to_nodes(ecpipe_client* client, const ecpipe_target* target,
                                             const char* const* nodes,
                                             const ecpipe_submit_options* options,
                                             ecpipe_call** call, ecpipe_error* error);

/* A descriptor for poll(), select() or epoll: POLLIN while there are bytes to take, and from the
 * call's end on. It is the call's: do not read or close it, and forget it before freeing. */
ECPIPE_API int ecpipe_call_descriptor(const ecpipe_call* call);

/* Copies the next bytes of a read to `buffer`, `size` at most and not 0. Never blocks.
 * ECPIPE_OK: `*taken` bytes; 0: the read has succeeded and all its bytes were taken.
 * ECPIPE_PENDING: nothing has come; poll. Anything else: the read has failed so, at once: bytes
 * that had come and were not taken are gone. */
ECPIPE_API int ecpipe_call_take(ecpipe_call* call, void* buffer, size_t size, size_t* taken,
                                ecpipe_error* error);

/* How the call has ended; ECPIPE_PENDING until then. A read ends when its last byte waits to be
 * taken. Never blocks. */
ECPIPE_API int ecpipe_call_result(ecpipe_call* call, ecpipe_report* report, ecpipe_error* error);

/* How far the call is. `*total_bytes` is 0 until it is known. */
ECPIPE_API void ecpipe_call_progress(const ecpipe_call* call, uint64_t* verified_bytes,
                                     uint64_t* total_bytes);

/* Has the call end as ecpipe_canceller_cancel says, unless it has ended. Any thread. */
ECPIPE_API void ecpipe_call_cancel(ecpipe_call* call);

/* Cancels the call if it is under way, and does not wait for that. Also after ecpipe_close. NULL is
 * ignored. */
ECPIPE_API void ecpipe_call_free(ecpipe_call* call);

#ifdef __cplusplus
}
#endif

#endif /* ECPIPE_H_ */
