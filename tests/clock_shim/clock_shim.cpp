// SPDX-License-Identifier: Apache-2.0
// Preloaded into a server, shifts its wall clock (and no other clock of it) by the nanoseconds that stand in the file
// named by TENURE_CLOCK_SHIM_FILE. The file is mapped, so whoever writes to it steps the clock of a running server.
// By system calls, because the first callers come before the C library is ready to look symbols up.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t second = 1'000'000'000;

const std::int64_t* shift = nullptr;

[[gnu::constructor]] void map_file() {
  const char* path = ::getenv("TENURE_CLOCK_SHIM_FILE");
  const int fd = path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void* mapped = ::mmap(nullptr, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (mapped != MAP_FAILED) shift = static_cast<const std::int64_t*>(mapped);
}

timespec wall_clock() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  if (!shift) return now;
  const auto ns = now.tv_sec * second + now.tv_nsec + __atomic_load_n(shift, __ATOMIC_RELAXED);
  return {ns / second, ns % second};
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  *now = wall_clock();
  return 0;
}

int gettimeofday(timeval* now, void*) noexcept {
  const auto t = wall_clock();
  *now = {t.tv_sec, t.tv_nsec / 1000};
  return 0;
}

int timespec_get(timespec* now, int base) noexcept {
  if (base != TIME_UTC) return 0;
  *now = wall_clock();
  return base;
}

time_t time(time_t* out) noexcept {
  const auto now = wall_clock().tv_sec;
  if (out) *out = now;
  return now;
}
}
