// SPDX-License-Identifier: Apache-2.0
// What a JSON document says, and what follows from it.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>

#include <tenure/kit/logging.hpp>

#include "commands.hpp"
#include "durations.hpp"
#include "exit_code.hpp"
#include "place.hpp"

namespace tenure::tool {

namespace {

void line(std::string_view name, const std::string& value) {
  std::cout << std::left << std::setw(22) << name << value << "\n";
}

void show(const Opened& opened) {
  const auto& timing = opened.timing;
  line("store", opened.store);
  line("election", printable(opened.opening.election));
  line("candidate", printable(opened.opening.candidate.name));
  if (!opened.opening.candidate.address.empty()) line("address", printable(opened.opening.candidate.address));
  line("timing", to_string(timing));
  // A crash just after a renewal; the successor's claim may take a whole call, after one that came too early.
  line("worst fail-over", seconds(timing.term + timing.retry + timing.call));
  line("outage ridden out", seconds(timing.rides_out()));
  line("time to stop", seconds(timing.margin - timing.clock_allowance()));
  std::ostringstream rate;
  rate << std::setprecision(3) << 1 / std::chrono::duration<double>(timing.renew).count();
  line("leader's requests/s", rate.str());
  std::cout.flush();
}

int check(const std::string& file) {
  const auto opened = open_place({.file = file, .asks = true}, no_log);
  if (const auto refused = opened.backend->accepts(opened.timing)) fail(*refused, misconfigured);
  return ok;
}

}  // namespace

void add_config(CLI::App& tool, Run& run) {
  auto& config = *tool.add_subcommand("config", "Check a JSON document, or show what follows from it");
  config.require_subcommand(1);
  const auto file = std::make_shared<std::string>();
  auto& checks = *config.add_subcommand("check", "Exit with 0 if the document can work, else with 78 and all findings");
  checks.add_option("FILE", *file, "The document")->required()->type_name("FILE");
  checks.callback([file, &run] { run = [file] { return check(*file); }; });
  auto& shows = *config.add_subcommand("show", "Print the effective values, and what they promise");
  shows.add_option("FILE", *file, "The document")->required()->type_name("FILE");
  shows.callback(
      [file, &run] { run = [file] { return show(open_place({.file = *file, .asks = true}, no_log)), ok; }; });
  auto& schema = *config.add_subcommand("schema", "Print the JSON schema of documents");
  schema.callback([&run] { run = [] { return std::cout << schema_text << std::flush, ok; }; });
}

}  // namespace tenure::tool
