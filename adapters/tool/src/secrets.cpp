// SPDX-License-Identifier: Apache-2.0
// Finds the secrets in a URL.
#include "secrets.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/url.hpp>

namespace tenure::tool {
namespace {

constexpr std::array<std::string_view, 10> harmless{"group",   "topic",    "create_topic", "create_table",
                                                    "sslmode", "replicas", "first_claim",  "remote_step_down",
                                                    "prefix",  "db"};

/// For each byte whether it is, or may be, of a secret.
std::vector<bool> secret_bytes(std::string_view url) {
  std::vector<bool> secret(url.size());
  const auto hide = [&](std::size_t from, std::size_t to) {
    for (auto i = from; i < to; ++i) secret[i] = true;
  };
  for (auto start = url.find('?'); start != url.npos; start = url.find('&', start + 1)) {
    const auto end = std::min(url.find('&', start + 1), url.size());
    const auto equal = std::min(url.find('=', start), end);
    const auto key = url.substr(start + 1, equal - start - 1);
    if (std::find(harmless.begin(), harmless.end(), key) == harmless.end()) hide(std::min(equal + 1, end), end);
  }
  if (const auto scheme = url.find(':'), at = url.rfind('@'); at != url.npos && scheme < at)
    hide(url.compare(scheme, 3, "://") == 0 ? scheme + 3 : scheme + 1, at);
  return secret;
}

}  // namespace

std::string shown(std::string_view url) {
  const auto secret = secret_bytes(url);
  std::string out;
  for (std::size_t i = 0; i < url.size(); ++i)
    if (!secret[i])
      out += url[i];
    else if (i == 0 || !secret[i - 1])
      out += "***";
  return printable(out, max_url_bytes);
}

std::string without_secrets(std::string message, int argc, const char* const* argv) {
  const auto show = [&message](const std::string& word) {
    const auto safe = shown(word);
    if (safe == word) return;
    for (auto at = message.find(word); at != message.npos; at = message.find(word, at + safe.size()))
      message.replace(at, word.size(), safe);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    show(word);
    if (const auto equal = word.find('='); equal != word.npos) show(word.substr(equal + 1));  // an option's value
  }
  return message;
}

void hide_from_ps(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    char* text = argv[i];
    const std::string_view option = "--store=";
    if (std::string_view(text).starts_with(option)) text += option.size();
    if (!scheme_of(text)) continue;
    const auto secret = secret_bytes(text);
    for (std::size_t at = 0; at < secret.size(); ++at)
      if (secret[at]) text[at] = '*';
  }
}

}  // namespace tenure::tool
