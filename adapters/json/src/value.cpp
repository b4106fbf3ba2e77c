// SPDX-License-Identifier: Apache-2.0
// Replaces ${VARIABLES}, reads files with secrets, and parses durations.
#include "value.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include <tenure/json.hpp>
#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

namespace tenure {
namespace {

Error refused(std::string message) { return {Fault::misconfigured, std::move(message)}; }

bool variable_name(std::string_view name) {
  const auto legal = [](unsigned char c) { return (std::isalnum(c) && c < 0x80) || c == '_'; };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), legal);
}

}  // namespace

Result<std::string> expanded(const std::string& text) {
  const auto at = text.find("${");
  if (at == text.npos) return text;
  if (at != 0 || !text.ends_with('}') || !variable_name(std::string_view(text).substr(2, text.size() - 3)))
    return refused(
        "has \"${\" in it, but only a whole text may be \"${NAME}\", with letters, digits and '_' in NAME (a password "
        "may stand beside the URL: \"store\": {\"url\": ..., \"password\": \"${NAME}\"})");
  const auto name = text.substr(2, text.size() - 3);
  const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody should set any by now
  if (!value || !*value)
    return refused("needs the environment variable " + printable(name, 80) + ", which is " +
                   (value ? "empty" : "not set"));
  return std::string(value);
}

Result<std::string> secret_at(const std::string& path) {
  if (!path.starts_with('/') || path.find('\0') != path.npos)
    return refused("must be an absolute path, for instance \"/run/secrets/redis\"");
  auto read = secret_of(path, max_document_bytes);
  if (!read) return refused("names the file " + printable(path) + ", which " + read.error().message);
  return *std::move(read);
}

Result<Clock::Duration> duration_of(const std::string& text) {
  constexpr std::pair<std::string_view, std::int64_t> units[] = {
      {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = std::find_if(std::begin(units), std::end(units),
                                 [&](const auto& u) { return u.first == std::string_view(text).substr(digits); });
  if (digits == 0 || unit == std::end(units))
    return refused("\"" + printable(text, 40) +
                   "\" is not a duration: write a whole number and ns, us, ms or s, for instance \"8s\" or "
                   "\"750ms\"");
  const std::int64_t most = Clock::Duration(max_term).count() / unit->second;
  const auto value = number<std::int64_t>(std::string_view(text).substr(0, digits));
  if (!value || *value > most)
    return refused("\"" + printable(text, 40) + "\" is more than an hour; write an hour at most");
  return Clock::Duration(*value * unit->second);
}

}  // namespace tenure
