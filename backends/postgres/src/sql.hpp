// SPDX-License-Identifier: Apache-2.0
// What all statements share: how they are written, and how values travel. Bytes do so in hexadecimal, which no setting
// of a session changes and no encoding refuses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>

namespace tenure::postgres {

/// How many an answer has.
struct Rows {
  std::size_t least{}, most{1 << 20};
  static const Rows any, one, at_most_one;
};
inline constexpr Rows Rows::any{}, Rows::one{1, 1}, Rows::at_most_one{0, 1};

/// What was answered is no answer to what was asked.
struct NoAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Its text calls tables @0@ and @1@, in the order of Schema, and @notify@ what notifies: a connection fills these in.
struct Statement {
  std::string text;
  std::vector<std::string> values{};
  int columns{};  ///< The answer has as many, or more.
  Rows rows{};
};

/// What stands in {braces} in a statement, and its text.
using Parts = std::vector<std::pair<std::string_view, std::string>>;

/// The statement with every part filled in, in the order given: a part may name later ones.
std::string filled(std::string_view statement, const Parts& parts);

/// The same of SQL, with {=} and the like for PostgreSQL's own operators. Whoever may create in a schema of the search
/// path could make a nearer one, which then runs as whoever asks. So every function and every type is named with its
/// schema too.
std::string filled_sql(std::string_view statement, const Parts& parts);

/// SQL: bytes in hexadecimal, or null if they are more than any of ours has.
std::string hex_of(std::string_view column);
/// SQL: the same of a text, whatever bytes it has in whatever encoding.
std::string hex_of_text(std::string_view column);

/// {settings}: settings for one statement, made inside it. That costs no second round trip and leaves nothing in a
/// pooled session. Needs {lock_wait} and {may_be_lost}.
extern const std::string_view with_settings;

/// {settings_hold}: names both in a condition, so that they are made before a row is locked.
extern const std::string_view settings_hold;

/// Half of what is left of a call, as lock_timeout: the server then ends the wait for a lock before we end the
/// connection. `until` is boot_clock()'s.
std::string lock_wait(Clock::Time until);

/// SQL: whether a unique index of the table that is called c in pg_class has this column. An update that changes such
/// a column waits for the rows' FOR KEY SHARE locks, and no other one does.
std::string in_a_key(std::string_view column);

std::string bigint(std::uint64_t value);
std::string bytea(std::string_view bytes);
std::string bigints(const std::vector<std::uint64_t>& values);

/// What encode(..., 'hex') answers.
std::string bytes_of(std::string_view hex);
std::uint64_t unsigned_of(const pqxx::field& field);

}  // namespace tenure::postgres
