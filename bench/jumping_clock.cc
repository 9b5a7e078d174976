// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: the program's real-time clock is off by as many nanoseconds as stand in
// the file that ECPIPE_CLOCK_OFFSET names (8 bytes, in the machine's order), also when they change.
// All other clocks, and the machine's, stay as they are. For daemons under test: it covers the
// calls that they and their libraries make (nm -D), and not those of every program.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1'000'000'000;

const std::atomic<int64_t>* OpenOffset() {
  static constexpr std::atomic<int64_t> kNone = 0;
  const char* const path = std::getenv("ECPIPE_CLOCK_OFFSET");
  const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return &kNone;
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return mapped == MAP_FAILED ? &kNone : static_cast<const std::atomic<int64_t>*>(mapped);
}

int64_t Offset() {
  static const std::atomic<int64_t>* const offset = OpenOffset();
  return offset->load(std::memory_order_relaxed);
}

timespec Moved(const timespec& time, int64_t nanoseconds) {
  int64_t rest = time.tv_nsec + nanoseconds % kSecond;
  int64_t seconds = time.tv_sec + nanoseconds / kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  } else if (rest >= kSecond) {
    rest -= kSecond;
    ++seconds;
  }
  return {.tv_sec = seconds < 0 ? 0 : seconds, .tv_nsec = rest};
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    *now = Moved(*now, Offset());
  }
  return result;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec precise = {};
  clock_gettime(CLOCK_REALTIME, &precise);
  *now = {.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* copy) noexcept {
  timespec precise = {};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (copy != nullptr) *copy = precise.tv_sec;
  return precise.tv_sec;
}

// Abseil waits for a point of time by a futex, with the kernel's clock.
long syscall(long number, ...) noexcept {
  static auto* const next = Next<long(long, ...)>("syscall");
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  timespec deadline = {};
  if (number == SYS_futex && (words[1] & FUTEX_CLOCK_REALTIME) != 0 && words[3] != 0) {
    deadline = Moved(*reinterpret_cast<const timespec*>(words[3]), -Offset());
    words[3] = reinterpret_cast<long>(&deadline);
  }
  return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // extern "C"
