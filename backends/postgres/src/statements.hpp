// SPDX-License-Identifier: Apache-2.0
// The SQL statements of one election's row, and how it is read.
#pragma once
#include <cstddef>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>

#include <tenure/conditional_store.hpp>

#include "sql.hpp"

namespace tenure::postgres {

/// The values that go with every write.
struct Writing {
  const std::string& election;  ///< A bytea literal.
  const std::string& channel;
  std::string lock_wait;  ///< How long it may wait for the row, see lock_wait().
};

/// Answers one row.
Statement reading(const std::string& election);

/// Answers at most so many rows, of the elections that come after this one, in the order of their names.
Statement listing(const std::string& after, std::size_t most);

/// It answers one row if it was applied, and no row otherwise.
Statement replacing(const Writing& writing, const std::optional<Expected>& expected, const Record& next);

/// Returns the version that a release left behind, from what replacing() notifies of it. Returns nothing for any other
/// text: there may be other news, or somebody else said something.
std::optional<Version> released_by(std::string_view notice);

/// Answers nothing.
Statement requesting_step_down(const Writing& writing, const StepDown& request);

Read read_of(const pqxx::row& row);
bool only_reads(const pqxx::row& row);          ///< The session. REQUIRES: it is one of reading().
std::string election_of(const pqxx::row& row);  ///< REQUIRES: it is one of listing().

/// Whether a bigint has a greater token, and this one is not below zero.
bool may_be_followed(Token token);

}  // namespace tenure::postgres
