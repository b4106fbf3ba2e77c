// SPDX-License-Identifier: Apache-2.0
// Writes and reads the one text in which a candidate tells others of itself.
#include <tenure/kit/who.hpp>

#include <algorithm>

#include <tenure/kit/text.hpp>
#include <tenure/version.hpp>

namespace tenure {
namespace {

/// Only candidates write these fields, in this order. A new one goes to the end.
struct WhoField {
  std::string_view key;
  std::string Incumbent::*text;
  std::size_t most;
};
constexpr WhoField who_fields[] = {
    {"name=", &Incumbent::name, max_candidate_bytes},
    {"address=", &Incumbent::address, max_candidate_bytes},
    {"incarnation=", &Incumbent::incarnation, 64},
    {"version=", &Incumbent::version, 32},
};

bool visible(char c) { return c > ' ' && c <= '~'; }

}  // namespace

std::string who_text(const Candidate& self, std::string_view incarnation) {
  return who_text(Incumbent{
      .name = self.name, .incarnation = std::string(incarnation), .address = self.address, .version = version()});
}

std::string who_text(const Incumbent& holder) {
  std::string out;
  for (const auto& field : who_fields)
    out.append(out.empty() ? "" : ";").append(field.key).append(percent_encoded(holder.*field.text));
  return out;
}

std::optional<Incumbent> read_who(std::string_view who) {
  if (who.size() > max_who_bytes || !std::ranges::all_of(who, visible)) return std::nullopt;
  Incumbent out;
  for (const auto& field : who_fields) {
    if (who.empty()) break;
    const auto end = std::min(who.find(';'), who.size());
    if (!who.starts_with(field.key) || end < field.key.size()) return std::nullopt;
    auto text = percent_decoded(who.substr(field.key.size(), end - field.key.size()), field.most);
    if (!text || text->find('\0') != text->npos) return std::nullopt;
    out.*field.text = *std::move(text);
    who.remove_prefix(std::min(end + 1, who.size()));
  }
  return out;
}

Incumbent incumbent_of(std::string_view who, Token token, Clock::Duration remaining) {
  auto out = read_who(who).value_or(Incumbent{});
  out.token = token;
  out.remaining = remaining;
  return out;
}

}  // namespace tenure
