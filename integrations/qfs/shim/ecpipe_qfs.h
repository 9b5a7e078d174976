/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of libecpipe_qfs.so: a QFS chunkserver reads a lost chunk that ECPipe repairs.
 * The library speaks to the requestor endpoint of an ecpipe-helper (docs/wire.md) and to nothing
 * else. integrations/qfs/README.md shows how a chunkserver uses it.
 *
 * One read is: open, then submit and poll until the end of the chunk, then close. None of these
 * waits for the network: a thread of the library does.
 *
 * What bytes are worth. A byte is handed over only after the CRC32C of its frame was checked; the
 * endpoint sends a byte only after the helpers have checked the survivors' own checksums. So bytes
 * of a read that has completed stay good when a later one fails: the caller goes on behind them,
 * from another source. That the chunk is complete is another statement, which the endpoint makes
 * last. A read that would reach the end of the range therefore completes only after it has come.
 * Of a read that fails no byte counts, and its buffer's content is not defined.
 *
 * Failure. A failed read ends the whole: all later ones fail in the same way. The message says what
 * happened and what to do. No failure means that the chunk cannot be recovered by other means.
 *
 * Threads. One thread at a time may call submit, poll and close of one read; cancel may come from
 * any thread at any time before close. Different reads do not know each other. A configuration may
 * be used by several threads. The library's threads take none of the process's signals, and writing
 * to a dead peer raises no SIGPIPE. A child made by fork() must not use what its parent has opened.
 *
 * Nothing is thrown, and memory that one side allocates is never freed by the other. Structs begin
 * with `struct_bytes`, which the caller sets to sizeof; they grow at their end only.
 */
#ifndef ECPIPE_QFS_H_
#define ECPIPE_QFS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ECPIPE_QFS_API __attribute__((visibility("default")))
#else
#define ECPIPE_QFS_API
#endif

/* Changes when a program that was compiled with another one can no longer use the library. */
#define ECPIPE_QFS_ABI_VERSION 1

/* Those of gRPC and Abseil, with the same numbers. The endpoint's own codes pass unchanged. */
enum {
  ECPIPE_QFS_PENDING = -1, /* no failure: the read has not completed */
  ECPIPE_QFS_OK = 0,
  ECPIPE_QFS_CANCELLED = 1,
  ECPIPE_QFS_UNKNOWN = 2,
  ECPIPE_QFS_INVALID_ARGUMENT = 3,    /* bad configuration, chunk, or use of this interface */
  ECPIPE_QFS_DEADLINE_EXCEEDED = 4,   /* the endpoint was too slow */
  ECPIPE_QFS_RESOURCE_EXHAUSTED = 8,  /* memory, descriptors or threads; or a limit of ECPipe */
  ECPIPE_QFS_FAILED_PRECONDITION = 9, /* nothing to repair, or too few survivors */
  ECPIPE_QFS_INTERNAL = 13,
  ECPIPE_QFS_UNAVAILABLE = 14,    /* the endpoint is not there, or went away */
  ECPIPE_QFS_DATA_LOSS = 15,      /* what came is damaged or contradicts itself; refused */
  ECPIPE_QFS_UNAUTHENTICATED = 16 /* TLS: a certificate is missing or not good */
};

typedef struct ecpipe_qfs_error {
  size_t struct_bytes;
  int code;
  char message[508]; /* printable ASCII, NUL-terminated; a longer one is cut */
} ecpipe_qfs_error;

/* A lost chunk, as the metaserver's request for its recovery says it. */
typedef struct ecpipe_qfs_chunk {
  size_t struct_bytes;
  int64_t file_id;
  int64_t chunk_id;
  int64_t chunk_version; /* that the recovered chunk will have */
  int64_t chunk_offset;  /* bytes, in the file's chunk address space: a multiple of 64 MiB */
  int64_t file_size;     /* bytes */
  int64_t stripe_size;   /* bytes of a cell */
  int32_t striper_type;  /* 2 or 3 */
  int32_t data_stripes;
  int32_t recovery_stripes;
  int32_t reserved; /* 0 */
  int64_t offset;   /* the range of the chunk that is wanted; 0 and 0: all of it */
  int64_t bytes;    /* 0: to the end of the chunk */
} ecpipe_qfs_chunk;

typedef struct ecpipe_qfs_config ecpipe_qfs_config;
typedef struct ecpipe_qfs_read ecpipe_qfs_read;

/* The library's ECPIPE_QFS_ABI_VERSION. A caller compares it with its own before anything else. */
ECPIPE_QFS_API int ecpipe_qfs_abi_version(void);
/* "MAJOR.MINOR.PATCH" of ECPipe; lives as long as the process. */
ECPIPE_QFS_API const char* ecpipe_qfs_version(void);

/* Functions that return int return ECPIPE_QFS_OK or another code, and then fill `error`, which may
 * be NULL. */

/* Reads a configuration file such as deploy/qfs-shim.conf. The caller frees it, at any time: reads
 * that were opened with it keep what they need. INVALID_ARGUMENT names file and line. */
ECPIPE_QFS_API int ecpipe_qfs_config_load(const char* path, ecpipe_qfs_config** config,
                                          ecpipe_qfs_error* error);
ECPIPE_QFS_API void ecpipe_qfs_config_free(ecpipe_qfs_config* config); /* NULL is fine */

/* The bytes that the range has, by the chunk's place in its file; -1: the chunk is refused. */
ECPIPE_QFS_API int64_t ecpipe_qfs_range_bytes(const ecpipe_qfs_chunk* chunk,
                                              ecpipe_qfs_error* error);

/* Begins to read a chunk. Starts a thread; waits for nothing.
 * `wake`, which may be NULL, is called once for each submit, when its read has completed or failed:
 * by the library's thread, or from within submit or cancel. It must be short and must not call the
 * library. Close does not call it, and after close nobody does. */
ECPIPE_QFS_API int ecpipe_qfs_open(const ecpipe_qfs_config* config, const ecpipe_qfs_chunk* chunk,
                                   void (*wake)(void* context), void* context,
                                   ecpipe_qfs_read** read, ecpipe_qfs_error* error);

/* Asks for the next bytes. `position` is where they begin, counted from the beginning of the range:
 * 0, and then what has been read so far. The buffer, of `bytes` (1 to 64 MiB), is the library's
 * until poll returns something else than PENDING, or cancel or close has returned. One read at a
 * time. INVALID_ARGUMENT: not this position, or a read is under way; nothing has changed. A failure
 * of the repair is told by poll, not here. */
ECPIPE_QFS_API int ecpipe_qfs_submit(ecpipe_qfs_read* read, int64_t position, void* buffer,
                                     size_t bytes, ecpipe_qfs_error* error);

/* The outcome of the read that was submitted last. OK: `got` bytes are in the buffer, as many as
 * were asked for, or fewer, or none, where the range ends; `at_end`: it ends here, and is complete.
 * PENDING: not yet; `error` is left alone. Says the same until the next submit. Waits for nothing.
 * `got` and `at_end` are set to 0 unless OK. */
ECPIPE_QFS_API int ecpipe_qfs_poll(ecpipe_qfs_read* read, size_t* got, int* at_end,
                                   ecpipe_qfs_error* error);

/* Ends the repair. A read under way fails with CANCELLED and no longer touches its buffer when this
 * returns. Waits at most while the library's thread copies a frame of 1 MiB. NULL is fine. */
ECPIPE_QFS_API void ecpipe_qfs_cancel(ecpipe_qfs_read* read);

/* Cancels what is under way, waits for the library's thread and frees the read. The thread never
 * blocks on the network: it ends within the time of one step (1 MiB to check, a step of a TLS
 * handshake, the TLS files to read, a `wake` to return). NULL is fine. Not from within `wake`. */
ECPIPE_QFS_API void ecpipe_qfs_close(ecpipe_qfs_read* read);

#ifdef __cplusplus
}
#endif

#endif /* ECPIPE_QFS_H_ */
