// SPDX-License-Identifier: Apache-2.0
// What every fuzzer is made of: a target, and what must hold of it.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/kit/text.hpp>

namespace tenure::fuzz {

/// A parser, and what must hold for any text.
struct Target {
  const char* name;
  void (*check)(const std::string& text);
};

/// Each ROOM_fuzz.cpp defines those of its room.
extern const std::vector<Target> targets;

/// Ends the process, which is how a fuzzer learns of a mistake.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "this does not hold: %s\n", what);
  std::abort();
}

/// Whether the text is fit for a log line.
inline bool printable_text(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return true;
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// A secret that no text has by chance. It is no scheme: those are in lower case.
inline constexpr std::string_view canary = "S3CR3T";

/// Takes a text apart where a parser is handed more than one: by lines. The rest may have further ones.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::string next() {
    const auto end = rest_.find('\n');
    const std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    return out;
  }
  template <class Number>
  Number number() {
    return tenure::number<Number>(next()).value_or(0);
  }
  std::string rest() const { return std::string(rest_); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace tenure::fuzz
