// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

namespace tenure::tool {
namespace {

int for_progress(int result) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), "no descriptor for the command's progress");
  return result;
}

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

/// The next message to this socket; nothing if there is none. That of another user is empty.
std::pair<bool, std::string_view> next_message(int socket, char (&text)[4096]) {
  iovec part{text, sizeof text};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int) * 16)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return {};
  bool known = false;
  for (auto* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
      known = sender.uid == ::getuid() || sender.uid == 0;
    } else if (header->cmsg_type == SCM_RIGHTS) {  // sd_notify may send descriptors, which nobody asked for
      for (auto at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
        int descriptor = -1;
        std::memcpy(&descriptor, reinterpret_cast<const char*>(header) + at, sizeof descriptor);
        ::close(descriptor);
      }
    }
  }
  return {true, known ? std::string_view(text, static_cast<std::size_t>(got)) : std::string_view()};
}

}  // namespace

Progress::Progress() {
  int both[2];
  for_progress(::pipe2(both, O_CLOEXEC));
  read_ = both[0];
  write_ = both[1];
  for_progress(::fcntl(read_, F_SETFL, O_NONBLOCK));
  socket_ = for_progress(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  for_progress(::setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  for_progress(::bind(socket_, any, sizeof address.sun_family));  // the kernel chooses a name that is no file's
  socklen_t size = sizeof address;
  for_progress(::getsockname(socket_, any, &size));
  name_.assign(address.sun_path, size - offsetof(sockaddr_un, sun_path));
  name_[0] = '@';
}

Progress::~Progress() {
  for (const int descriptor : {read_, write_, socket_})
    if (descriptor >= 0) ::close(descriptor);
}

void Progress::handed_on() { ::close(std::exchange(write_, -1)); }

bool Progress::told() const {
  bool out = false;
  char text[4096];
  for (int i = 0; i<at_a_time&& ::read(read_, text, sizeof text)> 0; ++i) out = true;
  for (int i = 0; i < at_a_time; ++i) {
    const auto [came, message] = next_message(socket_, text);
    if (!came) break;
    out = out || rests(message);
  }
  return out;
}

}  // namespace tenure::tool
