// SPDX-License-Identifier: Apache-2.0
#include "value.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <tenure/json.hpp>
#include <tenure/kit/logging.hpp>

namespace tenure {
namespace {

bool variable_name(std::string_view name) {
  const auto legal = [](unsigned char c) { return (std::isalnum(c) && c < 0x80) || c == '_'; };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), legal);
}

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

Refusal system_refusal(const std::string& what) { return {what + ": " + std::generic_category().message(errno)}; }

}  // namespace

Valued<std::string> expanded(const std::string& text) {
  const auto at = text.find("${");
  if (at == text.npos) return text;
  if (at != 0 || !text.ends_with('}') || !variable_name(std::string_view(text).substr(2, text.size() - 3)))
    return Refusal{
        "has \"${\" in it, but only a whole text may be \"${NAME}\", with letters, digits and '_' in NAME (a password "
        "may stand beside the URL: \"store\": {\"url\": ..., \"password\": \"${NAME}\"})"};
  const auto name = text.substr(2, text.size() - 3);
  const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody should set any by now
  if (!value || !*value)
    return Refusal{"needs the environment variable " + printable(name, 80) + ", which is " +
                   (value ? "empty" : "not set")};
  return value;
}

Valued<std::string> content_of(const std::filesystem::path& path) {
  struct stat status {};
  // Before it is opened: to open a device can do something.
  if (::stat(path.c_str(), &status) != 0) return system_refusal("cannot be found");
  if (!S_ISREG(status.st_mode)) return Refusal{"is not a regular file"};
  const File file(path);
  if (file.descriptor() < 0) return system_refusal("cannot be opened");
  std::string out(max_document_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < out.size()) {
    const auto got = ::read(file.descriptor(), out.data() + size, out.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_refusal("cannot be read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > max_document_bytes)
    return Refusal{"is too large: at most " + std::to_string(max_document_bytes) + " bytes are allowed"};
  out.resize(size);
  return out;
}

Valued<std::string> secret_of(const std::string& path) {
  if (!path.starts_with('/') || path.find('\0') != path.npos)
    return Refusal{"must be an absolute path, for instance \"/run/secrets/redis\""};
  auto read = content_of(path);
  const auto refused = [&](const std::string& why) {
    return Refusal{"names the file " + printable(path) + ", which " + why};
  };
  if (const auto* why = std::get_if<Refusal>(&read)) return refused(why->message);
  auto& text = std::get<std::string>(read);
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) return refused("is empty");
  if (text.find('\0') != text.npos) return refused("has a NUL byte in it");
  return read;
}

Valued<Clock::Duration> duration_of(const std::string& text) {
  constexpr std::pair<std::string_view, std::int64_t> units[] = {
      {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = std::find_if(std::begin(units), std::end(units),
                                 [&](const auto& u) { return u.first == std::string_view(text).substr(digits); });
  if (digits == 0 || unit == std::end(units))
    return Refusal{"\"" + printable(text, 40) +
                   "\" is not a duration: write a whole number and ns, us, ms or s, for instance \"8s\" or "
                   "\"750ms\""};
  const std::int64_t most = Clock::Duration(max_term).count() / unit->second;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < digits && value <= most; ++i) value = value * 10 + (text[i] - '0');
  if (value > most) return Refusal{"\"" + printable(text, 40) + "\" is more than an hour; write an hour at most"};
  return Clock::Duration(value * unit->second);
}

}  // namespace tenure
