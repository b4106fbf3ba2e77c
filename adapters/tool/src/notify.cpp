// SPDX-License-Identifier: Apache-2.0
// The sockets of sd_notify(3).
#include "notify.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "supervisor_protocol.hpp"

namespace tenure::tool {
namespace {

constexpr int at_a_time = 16;  ///< So that a command that never ends to tell does not keep us from all else.

/// Whether one line of a message to a service manager is that the watchdog may rest.
bool rests(std::string_view message) {
  for (std::size_t at = 0; at <= message.size();) {
    const auto end = std::min(message.find('\n', at), message.size());
    if (message.substr(at, end - at) == "WATCHDOG=1") return true;
    at = end + 1;
  }
  return false;
}

/// Whether a message to this socket was read; and it was of our user or of root, and tells of progress.
bool read_message(int socket, bool& told) {
  const auto packet = receive_packet(socket);
  if (!packet) return false;
  for (const int unasked : packet->descriptors) ::close(unasked);  // sd_notify may send some
  const bool known = packet->sender && (*packet->sender == ::getuid() || *packet->sender == 0);
  told = told || (known && rests(packet->text));
  return true;
}

/// The variable's text, which is taken away.
std::string taken(const char* name) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs
  const char* text = std::getenv(name);
  std::string out = text ? text : "";
  ::unsetenv(name);
  // NOLINTEND(concurrency-mt-unsafe)
  return out;
}

/// Calls ::bind or ::connect with this name. One that begins with '@' is no file's.
template <class Call>
bool with_address(const std::string& name, int socket, Call call) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  errno = ENAMETOOLONG;
  if (name.size() < 2 || name.size() >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) return false;
  std::copy(name.begin(), name.end(), address.sun_path);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return call(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

/// A socket that sends there, if there is one.
Descriptor connected_to(const std::string& name) {
  Descriptor out(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (out && !with_address(name, out.get(), ::connect)) out.reset();
  return out;
}

}  // namespace

Progress::Progress() {
  int both[2]{-1, -1};
  const bool made = ::pipe2(both, O_CLOEXEC) == 0 && ::fcntl(both[0], F_SETFL, O_NONBLOCK) == 0;
  read_ = Descriptor(both[0]);
  write_ = Descriptor(both[1]);
  if (made) socket_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (!socket_ || ::setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0)
    throw std::system_error(errno, std::generic_category(), "no descriptor for the command's progress");
  auto directory = (std::filesystem::temp_directory_path() / "tenure-XXXXXX").string();
  // A name that is no file's could be flooded by anybody, and the command's own words would find no room.
  if (::mkdtemp(directory.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "no directory for the command's progress in TMPDIR");
  name_ = directory + "/notify";
  if (with_address(name_, socket_.get(), ::bind)) return;
  const std::system_error failed(errno, std::generic_category(), "no socket at " + name_);
  remove(name_);
  throw failed;
}

void Progress::remove(const std::string& socket) {
  ::unlink(socket.c_str());
  ::rmdir(socket.substr(0, socket.rfind('/')).c_str());
}

Progress::~Progress() { remove(name_); }

bool Progress::told() const {
  bool out = false;
  char text[4096];
  for (int i = 0; i<at_a_time&& ::read(read_.get(), text, sizeof text)> 0; ++i) out = true;
  for (int i = 0; i < at_a_time && read_message(socket_.get(), out); ++i) {
  }
  return out;
}

ServiceManager::ServiceManager() : socket_(connected_to(taken("NOTIFY_SOCKET"))) {
  const auto limit = number<std::int64_t>(taken("WATCHDOG_USEC"));
  const auto pid = taken("WATCHDOG_PID");
  if (limit && *limit > 1 && (pid.empty() || pid == std::to_string(::getpid())))
    beat_ = std::chrono::microseconds(*limit / 2);
}

void ServiceManager::tell(std::string_view assignment) const {
  if (listens()) ::send(socket_.get(), assignment.data(), assignment.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ServiceManager::status(std::string_view text) {
  const auto line = "STATUS=" + printable(text, 1000);
  if (line == status_) return;
  tell(status_ = line);
}

}  // namespace tenure::tool
