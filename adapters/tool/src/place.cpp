// SPDX-License-Identifier: Apache-2.0
// Opens the election that a command is about.
#include "place.hpp"

#include <sys/stat.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

#include <tenure/json.hpp>
#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/stores.hpp>

#include "durations.hpp"
#include "exit_code.hpp"
#include "secrets.hpp"

namespace tenure::tool {
namespace {

/// What the document of -c opens: from_json() takes a plain function.
struct Noted {
  std::string witness;
  bool asks{};
  Opening opening;
};
thread_local Noted noted;

/// Each part of the query whose name is this, however it is written.
void cut(std::string& url, const std::string& key) {
  for (auto at = url.find('?'); at < url.size();) {
    const auto end = std::min(url.find('&', at + 1), url.size());
    const auto name = url.substr(at + 1, std::min(url.find('=', at), end) - at - 1);
    if (percent_decoded(name, url.size()) != key) {
      at = end;
      continue;
    }
    url.erase(at, end - at);
    if (at < url.size() && url.find('?') == url.npos) url[at] = '?';
  }
}

tenure::Opened open_with(Opening& opening, const std::string& witness, bool asks) {
  opening.candidate = checked(opening.candidate);
  if (asks) only_ask(opening);
  auto with = opening;
  if (!witness.empty() && scheme_of(opening.url) == "file") with.properties.emplace("witness", witness);
  return tenure::open(with);
}

tenure::Opened open_and_note(const Opening& opening) {
  noted.opening = opening;
  return open_with(noted.opening, noted.witness, noted.asks);
}

/// The document says these.
void refuse_beside_document(const Place& place) {
  refuse_given(place, {"--store", "--password-file", "-e", "--timing", "--term", "--id", "--address"},
               "does not go with -c: the document says it");
}

std::string read_secret(const std::string& name, const std::string& path) {
  auto secret = secret_of(path, max_document_bytes);
  if (!secret)
    throw Failed(misconfigured, name + " names " + printable(path) + ", which " + secret.error().message +
                                    "; name a regular file that our user may read, with the secret in it");
  return *std::move(secret);
}

/// A byte more than a document may have, so that one that is too long is refused as such.
std::string standard_input() {
  std::string text(max_document_bytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  return text;
}

Opened by_document(const Place& place, Log log) {
  refuse_beside_document(place);
  noted.witness = place.witness;
  noted.asks = place.asks;
  const auto configured = place.file == "-" ? from_json(standard_input(), open_and_note, std::move(log))
                                            : from_json_file(place.file, open_and_note, std::move(log));
  return {configured.backend, configured.timing, noted.opening, shown(noted.opening.url)};
}

Opened by_url(const Place& place, Log log) {
  auto opening = opening_of(place);
  opening.election = place.election;
  opening.candidate = {.name = place.id, .address = place.address};
  opening.log = std::move(log);
  const auto opened = open_with(opening, place.witness, place.asks);
  const auto timing = timing_of(place, opened.presets);
  timing.validate();
  return {opened.backend, timing, opening, shown(place.store)};
}

}  // namespace

void refuse_given(const Place& place, const std::vector<std::string_view>& options, const std::string& why) {
  const char* url = std::getenv("TENURE_URL");  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
  const std::pair<std::string_view, bool> given[] = {{"--store", !place.store.empty() && (!url || place.store != url)},
                                                     {"--password-file", !place.password_file.empty()},
                                                     {"-e", !place.election.empty()},
                                                     {"-c", !place.file.empty()},
                                                     {"--timing", !place.preset.empty()},
                                                     {"--term", !place.term.empty()},
                                                     {"--id", !place.id.empty()},
                                                     {"--address", !place.address.empty()}};
  for (const auto& [option, is_given] : given)
    if (is_given && std::find(options.begin(), options.end(), option) != options.end())
      throw Failed(usage, std::string(option) + " " + why);
}

std::string secret_in(const std::string& name, const std::string& path) {
  auto secret = read_secret(name, path);
  struct stat now {};
  if (::stat(path.c_str(), &now) == 0 && (now.st_mode & S_IROTH) != 0)
    write_to_stderr("tenure: everybody may read " + printable(path) + ", which has a secret: chmod o-r it\n");
  return secret;
}

void add_store(CLI::App& command, Place& place) {
  command.add_option("--store", place.store, "The store, for instance file:///run/elections or redis://host")
      ->envname("TENURE_URL")
      ->type_name("URL");
  command.add_option("--password-file", place.password_file, "A file with the store's password")->type_name("FILE");
}

void add_election(CLI::App& command, Place& place) {
  add_store(command, place);
  command.add_option("-e,--election", place.election, "The election's name")->type_name("NAME");
  command.add_option("-c,--config", place.file, "A JSON document in place of --store and -e; - reads it from stdin")
      ->type_name("FILE");
  command.add_option("--timing", place.preset, "fast, balanced or steady: timings that suit the store")
      ->check(CLI::IsMember({"fast", "balanced", "steady"}).description(""))
      ->type_name("fast|balanced|steady");
  command.add_option("--term", place.term, "How long a lease lasts, in place of --timing")->type_name("DUR");
}

Clock::Duration option(const std::string& name, const std::string& text) try {
  return duration(text);
} catch (const std::invalid_argument& e) {
  throw Failed(usage, name + ": " + e.what());
}

Timing timing_of(const Place& place, const Presets& presets) {
  if (!place.term.empty() && !place.preset.empty()) throw Failed(usage, "--term does not go with --timing: give one");
  if (!place.term.empty()) {
    auto timing = Timing::of(option("--term", place.term));
    const auto renewals = presets.balanced.term / presets.balanced.renew;  // Kafka wants more of them in a term.
    timing.renew = std::min(timing.renew, timing.term / renewals);
    timing.call =
        std::max(timing.call, std::min(presets.fast.call, timing.term / 5));  // A bucket needs more than most.
    return timing;
  }
  if (place.preset == "fast") return presets.fast;
  return place.preset == "steady" ? presets.steady : presets.balanced;
}

void only_ask(Opening& opening) {
  for (const std::string key : {"create_topic", "create_table"}) {
    opening.properties.erase(key);
    cut(opening.url, key);
  }
}

Opening opening_of(const Place& place) {
  if (place.store.empty()) throw Failed(usage, "name the store by --store URL, for instance file:///run/elections");
  Opening opening{.url = place.store};
  if (place.password_file.empty()) return opening;
  opening.password = secret_in("--password-file", place.password_file);
  opening.credentials = [file = place.password_file] {  // the password may change while we run
    return Credentials{.user = {}, .password = read_secret("--password-file", file)};
  };
  return opening;
}

Opened open_place(const Place& place, Log log) try {
  if (!place.file.empty()) return by_document(place, std::move(log));
  if (place.election.empty()) throw Failed(usage, "name the election by -e NAME, or give a document by -c FILE");
  return by_url(place, std::move(log));
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

void fail(const Error& error, int unreachable) {
  throw Failed(error.fault == Fault::misconfigured ? misconfigured : unreachable,
               std::string(to_string(error.fault)) + ": " + error.message);
}

}  // namespace tenure::tool
