// SPDX-License-Identifier: Apache-2.0
// A server's own wall clock, to be stepped while it runs.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <tenure/clock.hpp>

namespace tenure::test {

/// In a directory that the server's user may read. Any thread.
class ClockShim {
 public:
  /// Puts the library there as well: who runs as another user may not see the build.
  explicit ClockShim(const std::filesystem::path& directory)
      : library_(directory / "clock_shim.so"), file_(directory / "clock_shim.ns") {
    namespace fs = std::filesystem;
    fs::copy_file(TENURE_CLOCK_SHIM, library_, fs::copy_options::overwrite_existing);
    const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ::ftruncate(fd, sizeof(std::int64_t)) != 0)
      throw std::system_error(errno, std::generic_category(), file_);
    void* mapped = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), file_);
    shift_ = static_cast<std::int64_t*>(mapped);
  }
  ~ClockShim() { ::munmap(shift_, sizeof(std::int64_t)); }
  ClockShim(const ClockShim&) = delete;
  ClockShim& operator=(const ClockShim&) = delete;

  /// What the server's environment must hold: NAME=VALUE.
  std::vector<std::string> environment() const {
    return {"LD_PRELOAD=" + library_.string(), "TENURE_CLOCK_SHIM_FILE=" + file_.string()};
  }

  /// By so much more, at once.
  void step(Clock::Duration by) { std::atomic_ref(*shift_).fetch_add(by.count()); }

 private:
  const std::filesystem::path library_, file_;
  std::int64_t* shift_{};
};

}  // namespace tenure::test
