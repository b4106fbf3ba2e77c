// SPDX-License-Identifier: Apache-2.0
// What a server or libpq said, as an Error: the fault, its own words, and the remedy.
#pragma once
#include <exception>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "settings.hpp"

namespace tenure::postgres {

/// The five characters by which PostgreSQL names an error.
std::string sqlstate_of(const std::exception& thrown);
/// Whether libpq could not connect because a server said something, so that it tried no further one.
bool a_server_answered(const std::exception& thrown);

/// True if the statement was certainly rolled back because another transaction was faster.
bool lost_a_race(std::string_view sqlstate);

/// `where`: which server, for the message.
Error explained(std::string_view sqlstate, std::string_view text, const Settings& settings, const std::string& where);

}  // namespace tenure::postgres
