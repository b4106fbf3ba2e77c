// SPDX-License-Identifier: Apache-2.0
// The library's lines go to the program's function, or to stderr.
#include <tenure/kit/logging.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace tenure {
namespace {

constexpr std::size_t message_cap = 2000, field_cap = 256;

/// U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: by them a name shows other text than it is.
constexpr std::string_view order_of_text[] = {"\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa",
                                              "\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae",
                                              "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9"};

/// Whether a line of at most PIPE_BUF bytes can be written without waiting: a reader that sleeps must not hold up a
/// leader's clock, and one that has gone must not raise SIGPIPE. poll() calls a file ready even if its disk stalls.
bool takes_a_line(int fd) {
  pollfd asked{fd, POLLOUT, 0};
  return ::poll(&asked, 1, 0) == 1 && asked.revents == POLLOUT;
}

/// How many bytes of the text may stay if `cap` may, so that no character of UTF-8 is cut. Of what is none, all `cap`.
std::size_t whole_characters(std::string_view text, std::size_t cap) {
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  auto end = std::min(cap, text.size());
  if (end == text.size()) return end;
  for (int back = 0; back < 3 && end > 0 && continues(end); ++back) --end;
  return continues(end) ? cap : end;
}

}  // namespace

void write_to_stderr(std::string_view line) noexcept {
  const auto before = errno;
  std::array<char, PIPE_BUF> cut{};
  if (line.size() > cut.size()) {
    std::copy_n(line.begin(), cut.size(), cut.begin());
    cut.back() = '\n';
    line = {cut.data(), cut.size()};
  }
  if (takes_a_line(STDERR_FILENO)) [[maybe_unused]]
    const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  errno = before;
}

std::string one_line(const LogLine& line) {
  auto text = line.message;
  for (const auto& [name, value] : line.fields) text.append(" ").append(name).append("=").append(value);
  return text;
}

Log stderr_log(Level least) {
  return [least](const LogLine& line) {
    if (line.level >= least)
      write_to_stderr("tenure: " + std::string(to_string(line.level)) + ": " + one_line(line) + "\n");
  };
}

void tell(const Log& log, Level level, std::string_view message,
          std::initializer_list<std::pair<std::string_view, std::string_view>> fields) noexcept {
  try {
    LogLine line{level, printable(message, message_cap), {}};
    for (const auto& [name, value] : fields) line.fields.emplace_back(name, printable(value, field_cap));
    if (log)
      log(line);
    else
      stderr_log(Level::warning)(line);
  } catch (...) {  // a log's trouble is not the election's
  }
}

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "?";
}

std::string printable(std::string_view untrusted, std::size_t cap) {
  std::string out(untrusted.substr(0, whole_characters(untrusted, cap)));
  unsigned char before = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<unsigned char>(out[i]);
    if (byte < 0x20 || byte == 0x7f) out[i] = '?';
    // U+0080 to U+009F in UTF-8. Some terminals obey them as they obey ESC.
    if (before == 0xc2 && byte >= 0x80 && byte < 0xa0) out[i - 1] = out[i] = '?';
    before = byte;
  }
  for (const auto character : order_of_text)
    for (auto at = out.find(character); at != out.npos; at = out.find(character, at))
      out.replace(at, character.size(), "?");
  if (untrusted.size() > cap) out += "...";
  return out;
}

}  // namespace tenure
