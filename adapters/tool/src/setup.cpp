// SPDX-License-Identifier: Apache-2.0
// Makes what a store needs once, by somebody who may.
#include <sys/stat.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <iostream>
#include <memory>
#include <system_error>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/url.hpp>
#ifdef TENURE_WITH_POSTGRES
#include <tenure/postgres.hpp>
#endif

#include "commands.hpp"
#include "exit_code.hpp"
#include "place.hpp"
#include "secrets.hpp"

namespace tenure::tool {
namespace {

Limit soon() { return {boot_clock(), boot_clock().now() + std::chrono::seconds(10), {}}; }

std::string make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return "made the directory " + printable(path) + ", for its owner alone";
  const auto error = errno;
  struct stat now {};
  if (error == EEXIST && ::stat(path.c_str(), &now) == 0 && S_ISDIR(now.st_mode))
    return "the directory " + printable(path) + " was there already";
  throw Failed(misconfigured,
               "cannot make the directory " + printable(path) + ": " + std::generic_category().message(error));
}

#ifdef TENURE_WITH_POSTGRES
std::string make_tables(const Opening& opening, bool groups) {
  const postgres::Options options{.conninfo = opening.url, .user = {}, .password = opening.password};
  if (const auto error = postgres::create_schema(options, soon())) fail(*error, unreachable);
  if (!groups) return "the table tenure_elections is there; candidates need SELECT, INSERT and UPDATE on it";
  if (const auto error = postgres::create_group_schema(options, soon())) fail(*error, unreachable);
  return "the tables tenure_elections, tenure_sessions and tenure_leads are there";
}
#endif

int setup(const Place& place, bool groups) try {
  auto opening = opening_of(place);
  only_ask(opening);  // It makes the table whatever the URL says of that.
  const auto scheme = scheme_of(opening.url).value_or("");
  if (groups && !scheme.starts_with("postgres"))
    throw Failed(usage, "--groups is for PostgreSQL: no other store needs tables for its groups");
  std::string done;
  if (scheme == "file") done = make_directory(parse_url(opening.url).path);
#ifdef TENURE_WITH_POSTGRES
  if (scheme == "postgres" || scheme == "postgresql") done = make_tables(opening, groups);
#endif
  if (scheme.starts_with("redis")) done = "Redis needs nothing";
  if (scheme == "etcd" || scheme == "etcds") done = "etcd needs nothing but, where authentication is on, a role";
  if (scheme == "s3" || scheme == "gs" || scheme == "az")
    done = "a bucket needs nothing but the rights of its candidates";
  if (scheme == "kafka")
    throw Failed(misconfigured,
                 "a candidate makes its topic itself if its URL has create_topic=true; "
                 "or make one with two partitions by kafka-topics");
  if (done.empty()) throw Failed(misconfigured, "there is nothing to set up for " + shown(opening.url));
  std::cout << done << std::endl;
  return ok;
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

}  // namespace

void add_setup(CLI::App& tool, Run& run) {
  const auto place = std::make_shared<Place>();
  const auto groups = std::make_shared<bool>(false);
  auto& command = *tool.add_subcommand("setup", "Make what the store needs once: a directory, or tables");
  add_store(command, *place);
  command.add_flag("--groups", *groups, "What groups of many elections need, too (PostgreSQL)");
  command.callback([place, groups, &run] { run = [place, groups] { return setup(*place, *groups); }; });
}

}  // namespace tenure::tool
