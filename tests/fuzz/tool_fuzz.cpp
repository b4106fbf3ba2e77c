// SPDX-License-Identifier: Apache-2.0
// What the program reads of its command line and of the processes that it runs, and what it shows of that.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include <tenure/kit/url.hpp>

#include "durations.hpp"
#include "fuzz.hpp"
#include "notify.hpp"
#include "secrets.hpp"

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

}  // namespace

const std::vector<Target> targets{{"tool_duration", duration}, {"tool_url", url}, {"tool_notice", notice}};

}  // namespace tenure::fuzz
