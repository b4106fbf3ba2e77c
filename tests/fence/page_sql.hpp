// SPDX-License-Identifier: Apache-2.0
// The SQL of adapters/fence/README.md, as other clients run it.
#pragma once
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdio>
#include <optional>
#include <string>

#include "server.hpp"

namespace tenure::fence {

/// What page_sql.py says. `changes`: "single" or "group", and NAME=VALUE for names of the page, one after the other.
/// Nothing: the client is missing.
inline std::optional<std::string> by_client(const std::string& client, const std::string& work,
                                            const std::string& changes) {
  const auto command = std::string(TENURE_PYTHON) + " " TENURE_PAGE_SQL " \"" +
                       postgres::test::shared("TENURE_POSTGRES_URL") + "\" " + client + ' ' + work + ' ' + changes;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return "no pipe";
  std::string out;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)) return std::nullopt;
  EXPECT_EQ(status, 0) << command;
  return out;
}

/// Why this client cannot be had.
inline std::string needs(const std::string& client) {
  if (client == "jdbc") return "needs libpostgresql-jdbc-java and a JDK";
  return client == "go" ? "needs golang-github-lib-pq-dev and golang-go" : "needs python3-psycopg2";
}

/// For the name of a test.
inline std::string client_of(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace tenure::fence
