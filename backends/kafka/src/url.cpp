// SPDX-License-Identifier: Apache-2.0
// A URL turned into Options.
#include <tenure/kit/url.hpp>

#include <algorithm>
#include <iterator>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/kit/text.hpp>

#include "checkup.hpp"
#include "settings.hpp"

namespace tenure::kafka {
namespace {

constexpr std::string_view own_settings[] = {"group", "create_topic", "first_claim", "remote_step_down",
                                             "min_session_ms"};

/// The setting, if it is given.
std::optional<int> whole(Url& url, const char* setting) {
  const auto given = url.take(setting);
  if (!given) return std::nullopt;
  const auto read = number<int>(*given);
  if (!read) refuse(std::string(setting) + " must be a whole number, not \"" + printable(*given, 40) + "\"");
  return read;
}

/// True for the second of two words, false for the first or none.
bool second_of(Url& url, const char* setting, std::string_view first, std::string_view second) {
  const auto value = url.take(setting).value_or(std::string(first));
  if (value != first && value != second)
    refuse(std::string(setting) + " must be " + std::string(first) + " or " + std::string(second) + ", not \"" +
           printable(value, 40) + "\"");
  return value == second;
}

/// They load or run a program, or send a file's text away: for an application to decide, and not for whoever writes its
/// configuration.
constexpr std::string_view application_only[] = {"plugin.library.paths",
                                                 "sasl.kerberos.kinit.cmd",
                                                 "sasl.oauthbearer.assertion.file",
                                                 "sasl.oauthbearer.assertion.jwt.template.file",
                                                 "ssl.engine.id",
                                                 "ssl.engine.location",
                                                 "ssl.providers"};

void check_runs_nothing(const std::string& name, const std::string& value) {
  const auto known = lower(name);
  if (std::find(std::begin(application_only), std::end(application_only), known) != std::end(application_only))
    refuse("the property " + known +
           " can run code or read files for others, so no URL and no document may set it. An application may: "
           "Options::properties");
  // librdkafka writes these into a command of the shell.
  constexpr auto harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/@._-:";
  if (known.starts_with("sasl.kerberos.") && value.find_first_not_of(harmless) != value.npos)
    refuse("the property " + known +
           " may have a-z A-Z 0-9 / @ . _ - : in a URL or a document, because librdkafka writes it into a command");
}

std::string brokers_of(const Url& url) {
  std::string out;
  for (const auto& [name, port] : url.hosts) {
    out += (out.empty() ? "" : ",") + (name.find(':') == name.npos ? name : "[" + name + "]");
    if (port) out += ":" + std::to_string(*port);
  }
  return out;
}

/// A user that librdkafka would not send is a mistake that nobody would notice. Credentials are told of by completed().
void sign_in(const Url& url, std::map<std::string, std::string>& properties) {
  if (url.user.empty() && url.password.empty()) return;
  const auto protocol = properties.find("security.protocol");
  if (protocol == properties.end() || (protocol->second != "sasl_ssl" && protocol->second != "sasl_plaintext"))
    refuse(
        "the URL has a user or a password, so it needs security.protocol=sasl_ssl (or sasl_plaintext) and "
        "sasl.mechanism");
  const std::pair<const char*, const std::string&> both[] = {{"sasl.username", url.user},
                                                             {"sasl.password", url.password}};
  for (const auto& [name, value] : both)
    if (!value.empty() && !properties.emplace(name, value).second)
      refuse(std::string("the property ") + name + " and the URL's user or password are both given; give one of them");
}

Options from(Url url, const Opening& opening) {
  if (url.scheme != "kafka" || url.hosts.empty()) refuse("a URL is \"kafka://host:port,host:port/topic?group=...\"");
  Options out;
  out.brokers = brokers_of(url);
  out.topic = url.path.substr(url.path.starts_with('/') ? 1 : 0);
  out.group = url.take("group").value_or(opening.election);
  if (second_of(url, "create_topic", "false", "true")) out.create_topic.emplace();
  if (second_of(url, "first_claim", "at_once", "wait")) out.first_claim = FirstClaim::wait;
  if (const auto ms = whole(url, "min_session_ms")) out.min_session = std::chrono::milliseconds(*ms);
  out.remote_step_down = second_of(url, "remote_step_down", "false", "true");
  check_count(url.query.size());
  for (const auto& [name, value] : url.query) {
    if (const auto meant = did_you_mean(name, own_settings); name.find('.') == name.npos && !meant.empty())
      refuse("there is no setting \"" + printable(name, 80) + "\"" + meant);
    check_runs_nothing(name, value);
    out.properties.emplace(name, value);
  }
  out.credentials = credentials_of(opening, url);
  if (!out.credentials) sign_in(url, out.properties);
  out.candidate = opening.candidate;
  out.log = opening.log;
  return out;
}

}  // namespace

Presets presets_for(const Options& options) {
  return options.min_session <= std::chrono::milliseconds(100) ? own_broker_presets() : presets();
}

Options options_of(const Opening& opening) { return from(parse_url(opening), opening); }

Options group_options_of(const Opening& opening, int& units, Exclusive& exclusive) {
  auto url = parse_url(opening);
  if (second_of(url, "exclusive", "yes", "no")) exclusive = Exclusive::no;
  units = whole(url, "units").value_or(units);
  return from(std::move(url), opening);
}

Opened open_url(const Opening& opening) {
  auto options = options_of(opening);
  const auto suitable = presets_for(options);
  return {.backend = open(std::move(options)), .presets = suitable};
}

Result<Checks> check_url(const Opening& opening, const Limit& limit) {
  return check_up(completed(options_of(opening)), limit);
}

}  // namespace tenure::kafka
