// SPDX-License-Identifier: Apache-2.0
// Reads files that a user names, up to a limit.
#include <tenure/kit/files.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <tenure/kit/descriptor.hpp>

namespace tenure {
namespace {

Error refused(const std::string& why) { return {Fault::misconfigured, why}; }
Error refused_by_system(const std::string& what) {
  return refused(what + ": " + std::generic_category().message(errno));
}

}  // namespace

Result<std::string> content_of(const std::filesystem::path& path, std::size_t most) {
  struct stat status {};
  // Before it is opened: to open a device can do something.
  if (::stat(path.c_str(), &status) != 0) return refused_by_system("cannot be found");
  if (!S_ISREG(status.st_mode)) return refused("is not a regular file");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return refused_by_system("cannot be opened");
  std::string out(most + 1, '\0');
  std::size_t size = 0;
  while (size < out.size()) {
    const auto got = ::read(file.get(), out.data() + size, out.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused_by_system("cannot be read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > most) return refused("is too large: at most " + std::to_string(most) + " bytes are allowed");
  out.resize(size);
  return out;
}

Result<std::string> secret_of(const std::filesystem::path& path, std::size_t most) {
  auto read = content_of(path, most);
  if (!read) return read;
  if (read->ends_with('\n')) read->pop_back();
  if (read->empty()) return refused("is empty");
  if (read->find('\0') != read->npos) return refused("has a NUL byte in it");
  return read;
}

}  // namespace tenure
