// SPDX-License-Identifier: Apache-2.0
// A temporary directory of one test.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tenure::test {

/// Below it a test's own server keeps its data. As for docker/common.sh that is TENURE_SERVER_DATA, which tests/run
/// sets to a file system in memory: a server that waits for the disk keeps a test waiting. It is where temporary files
/// are if nothing is set, or if what is set has little room left: a new etcd takes 128 MB of it.
inline std::filesystem::path server_data() {
  constexpr std::uintmax_t room = 1 << 30;
  const char* const set = std::getenv("TENURE_SERVER_DATA");
  if (set != nullptr && *set != 0 && std::filesystem::space(set).available >= room) return set;
  return std::filesystem::temp_directory_path();
}

/// A new directory below `below`. It is removed at the end, with all that is in it.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& below = std::filesystem::temp_directory_path()) {
    auto name = (below / "tenure-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  operator const std::filesystem::path&() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  /// Writes a file, and returns its path.
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tenure::test
