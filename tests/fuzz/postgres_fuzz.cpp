// SPDX-License-Identifier: Apache-2.0
// What a look told is the same when it is written again. Anybody may notify: any notice is news. A connection string is
// accepted or refused, and no message has the password. Rows of any content are read, or refused.
#include <libpq-fe.h>

#include <algorithm>
#include <pqxx/pqxx>
#include <stdexcept>
#include <vector>

#include "fuzz.hpp"
#include "group_statements.hpp"
#include "settings.hpp"
#include "statements.hpp"

#if PQXX_VERSION_MAJOR < 7
#include <pqxx/internal/gates/result-creation.hxx>
#endif

namespace tenure::fuzz {
namespace {

#if PQXX_VERSION_MAJOR < 7
/// libpqxx makes results of answers alone, and only for itself. An explicit instantiation may name what is private.
pqxx::result result_of(PGresult* rows);
template <auto create>
struct Maker {
  friend pqxx::result result_of(PGresult* rows) { return create(rows, "", pqxx::internal::encoding_group::MONOBYTE); }
};
template struct Maker<&pqxx::internal::gate::result_creation::create>;
#endif

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

#if PQXX_VERSION_MAJOR < 7
constexpr int width = 15;  // as wide as an answer gets

/// A line is a row, a tab stands between two fields, and a field that is missing is null.
PGresult* rows_of(const std::string& text) {
  auto* out = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  std::vector<PGresAttDesc> columns(width);
  char name[] = "c";
  for (auto& column : columns) column.name = name;
  PQsetResultAttrs(out, width, columns.data());
  Lines lines(text);
  for (int row = 0; row == 0 || !lines.empty(); ++row) {
    auto line = lines.next();
    for (int column = 0; column < width; ++column) {
      const auto end = std::min(line.find('\t'), line.size());
      auto field = line.substr(0, end);
      line.erase(0, end + 1);
      const int size = field.empty() ? -1 : static_cast<int>(field.size());
      PQsetvalue(out, row, column, field.data(), size);
    }
  }
  return out;
}

template <class Read>
void reads(Read read) {
  try {
    read();
  } catch (const std::exception&) {
  }
}

void rows(const std::string& text) {
  using namespace postgres;
  const auto found = result_of(rows_of(text));
  const auto first = found[0];
  reads([&] {
    const auto answer = answer_of(found, 7, [](const auto&, const auto& wrong) {
      return Error{Fault::corrupt, wrong};
    });
    for (const auto& [election, lead] : answer.look.leads)
      require(!answer.look.unreadable.contains(election), "a lead can be read, or not");
  });
  reads([&] {
    const auto read = read_of(first);
    require(!read.record || read.unreadable || read.record->term.count() > 0, "a term is none of what cannot be");
  });
  reads([&] { only_reads(first); });
  reads([&] { election_of(first); });
  reads([&] { past_in(found); });
  reads([&] { released_in(found); });
  reads([&] { retired_in(found); });
}
#endif

}  // namespace

const std::vector<Target> targets {
#if PQXX_VERSION_MAJOR < 7
  {"postgres_rows", rows},
#endif
      {"postgres_cursor", cursor}, {"postgres_notice", notice}, {
    "postgres_conninfo", conninfo
  }
};

}  // namespace tenure::fuzz
