// SPDX-License-Identifier: Apache-2.0
// What a look told is the same when it is written again. Anybody may notify: any notice is news. A connection string is
// accepted or refused, and no message has the password.
#include <stdexcept>

#include "fuzz.hpp"
#include "group_statements.hpp"
#include "settings.hpp"
#include "statements.hpp"

namespace tenure::fuzz {
namespace {

void cursor(const std::string& text) {
  Lines lines(text);
  const auto told = postgres::cursor_of(lines.next());
  const auto written = postgres::text_of(told);
  require(postgres::text_of(postgres::cursor_of(written)) == written, "it is the same cursor");
  postgres::told_by(told, lines.rest());
}

void notice(const std::string& text) {
  postgres::released_by(text);
  if (const auto release = postgres::release_of(text))
    require(release->token.value <= INT64_MAX, "a token is a bigint");
  require(postgres::bytes_of(postgres::bytea(text).substr(2)) == text, "what is written is read");
  postgres::bytes_of(text);
}

void conninfo(const std::string& text) {
  if (contains(text, canary)) return;
  try {
    const auto settings = postgres::settings_of({.conninfo = text, .password = std::string(canary)});
    require(!contains(settings.target, canary), "what is shown has no password");
    require(!contains(settings.redacted(settings.conninfo), canary), "a redacted text has no password");
    require(printable_text(settings.redacted(text)), "a redacted text is fit for a log");
  } catch (const std::invalid_argument& e) {
    require(printable_text(e.what()), "a refusal is printable");
    require(!contains(e.what(), canary), "a refusal has no password");
  }
}

}  // namespace

const std::vector<Target> targets{
    {"postgres_cursor", cursor}, {"postgres_notice", notice}, {"postgres_conninfo", conninfo}};

}  // namespace tenure::fuzz
