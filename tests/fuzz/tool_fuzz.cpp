// SPDX-License-Identifier: Apache-2.0
// What the program reads of its command line and of the processes that it runs, and what it shows of that.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include <tenure/kit/url.hpp>

#include "durations.hpp"
#include "fuzz.hpp"
#include "notify.hpp"
#include "secrets.hpp"
#include "supervisor_protocol.hpp"

namespace tenure::fuzz {
namespace {

void duration(const std::string& text) {
  try {
    const auto read = tool::duration(text);
    require(read > Clock::Duration::zero() && read <= std::chrono::hours(365 * 24), "a duration is within its bounds");
    const auto ms = read / std::chrono::milliseconds(1);
    if (ms <= UINT32_MAX) require(tool::duration(std::to_string(ms) + "ms") == read, "it is read again");
  } catch (const std::invalid_argument& e) {
    require(printable_text(e.what()), "a refusal is printable");
  }
  tool::seconds(Clock::Duration(Lines(text).number<std::int64_t>()));
}

/// The canary at a place that the input chooses, after the scheme and before the last '@'.
void url(const std::string& text) {
  require(printable_text(tool::shown(text)), "what is shown is printable");
  const auto from = text.find("://"), to = text.rfind('@');
  if (contains(text, canary) || from == text.npos || from != text.find(':') || to == text.npos || to < from + 3) return;
  auto secret = text;
  secret.insert(from + 3 + static_cast<unsigned char>(text.back()) % (to - from - 2), canary);
  require(!contains(tool::shown(secret), canary), "what is shown has no user and no password");
  if (contains(text, std::string_view("\0", 1))) return;  // no argument has one
  const char* const words[] = {"tenure", secret.c_str()};
  require(!contains(tool::without_secrets("it says " + secret, 2, words), canary), "a message has none either");
  auto option = "--store=" + secret;
  char* arguments[] = {secret.data(), option.data()};
  tool::hide_from_ps(2, arguments);
  require(!scheme_of(secret) || !contains(option, canary), "ps shows none");
}

/// What a command sends as sd_notify(3) does.
void notice(const std::string& text) {
  static const tool::Progress progress;
  static const int sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
  const auto& name = progress.socket();
  name.copy(to.sun_path, sizeof to.sun_path - 1);
  if (name.front() == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  require(::sendto(sender, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&to), size) ==
              static_cast<ssize_t>(text.size()),
          "it is sent");
  bool tells = false;
  for (Lines lines(std::string_view(text).substr(0, 4095)); !lines.empty();)
    if (lines.next() == "WATCHDOG=1") tells = true;
  require(progress.told() == tells, "it tells of progress by one line");
}

struct Ends {
  explicit Ends(int type) {
    int both[2] = {-1, -1};
    require(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, both) == 0, "there are sockets");
    sender = both[0], receiver = both[1];
    const int on = 1;
    require(::setsockopt(receiver, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0, "the sender is told");
  }
  int sender{}, receiver{};
};

/// A packet with up to 19 descriptors, of which 16 are taken.
void packet(const std::string& text) {
  static const Ends ends(SOCK_DGRAM);
  constexpr std::size_t most = 16;
  const std::vector<int> given(text.size() % 20, ends.sender);
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 20)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!given.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * given.size());
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * given.size());
    std::memcpy(CMSG_DATA(header), given.data(), sizeof(int) * given.size());
  }
  require(::sendmsg(ends.sender, &message, 0) == static_cast<ssize_t>(text.size()), "it is sent");
  const auto got = tool::receive_packet(ends.receiver);
  require(got && got->text == text.substr(0, 4095), "its text is taken, without what is too much");
  require(got->sender == ::getuid(), "its sender is known");
  require(got->descriptors.size() == std::min(given.size(), most), "each descriptor is told, up to the most");
  for (const int descriptor : got->descriptors) {
    require((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0, "it is one, and no command gets it");
    ::close(descriptor);
  }
  require(!tool::receive_packet(ends.receiver), "that was all");
}

/// What the tool and its supervisor say to each other is of one size, and nothing else is taken for it.
template <class Message>
void whole(const std::string& text, std::optional<Message> receive(int, bool&)) {
  static const Ends ends(SOCK_SEQPACKET);
  bool gone = false;
  require(::send(ends.sender, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()), "it is sent");
  require(receive(ends.receiver, gone).has_value() == (text.size() == sizeof(Message)), "it is taken if it is whole");
  require(!gone && !receive(ends.receiver, gone) && !gone, "the other one is still there");
}
void message(const std::string& text) {
  if (text.empty()) return;  // It says that the other one has gone.
  whole(text, tool::receive_order);
  whole(text, tool::receive_ended);
}

}  // namespace

const std::vector<Target> targets{{"tool_duration", duration},
                                  {"tool_url", url},
                                  {"tool_notice", notice},
                                  {"tool_packet", packet},
                                  {"tool_message", message}};

}  // namespace tenure::fuzz
