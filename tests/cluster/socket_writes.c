/* SPDX-License-Identifier: Apache-2.0
 * Linked into a test program, these stand before the C library's functions, for libecpipe and for
 * all that it uses: whoever writes to a socket in a way that may raise SIGPIPE ends the program.
 * Sanitizers have to stand there themselves. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static void check(int fd, int quiet, const char* function) {
  struct stat status;
  if (quiet || fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  fprintf(stderr, "%s() to a socket without MSG_NOSIGNAL\n", function);
  abort();
}

ssize_t write(int fd, const void* bytes, size_t size) {
  check(fd, 0, "write");
  return syscall(SYS_write, fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  check(fd, 0, "writev");
  return syscall(SYS_writev, fd, parts, count);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  check(fd, flags & MSG_NOSIGNAL, "send");
  return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

ssize_t sendto(int fd, const void* bytes, size_t size, int flags, const struct sockaddr* to,
               socklen_t to_bytes) {
  check(fd, flags & MSG_NOSIGNAL, "sendto");
  return syscall(SYS_sendto, fd, bytes, size, flags, to, to_bytes);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  check(fd, flags & MSG_NOSIGNAL, "sendmsg");
  return syscall(SYS_sendmsg, fd, message, flags);
}

#else
typedef int nothing_here;
#endif
