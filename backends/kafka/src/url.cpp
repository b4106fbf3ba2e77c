// SPDX-License-Identifier: Apache-2.0
// A URL turned into Options.
#include <tenure/kit/url.hpp>

#include <algorithm>
#include <climits>
#include <iterator>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "checkup.hpp"
#include "settings.hpp"
#include "unit.hpp"

namespace tenure::kafka {
namespace {

/// They load or run a program, or send a file's text or this host's identity away: for an application to decide, and
/// not for whoever writes its configuration.
constexpr std::string_view application_only[] = {"plugin.library.paths",
                                                 "sasl.kerberos.kinit.cmd",
                                                 "sasl.oauthbearer.assertion.file",
                                                 "sasl.oauthbearer.assertion.jwt.template.file",
                                                 "sasl.oauthbearer.assertion.private.key.file",
                                                 "sasl.oauthbearer.metadata.authentication.type",
                                                 "ssl.engine.id",
                                                 "ssl.engine.location",
                                                 "ssl.providers"};

void check_runs_nothing(const std::string& name, const std::string& value) {
  const auto known = lower(name);
  if (std::find(std::begin(application_only), std::end(application_only), known) != std::end(application_only))
    refuse(
        "the property " + known +
        " can run code, or send what others must not have, so no URL and no document may set it. An application may: "
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

}  // namespace

Asked asked_by(const Opening& opening, bool group) {
  auto url = parse_url(opening);
  if (url.scheme != "kafka" || url.hosts.empty()) refuse("a URL is \"kafka://host:port,host:port/topic?group=...\"");
  Asked asked;
  auto& out = asked.options;
  out.brokers = brokers_of(url);
  out.topic = url.path.substr(url.path.starts_with('/') ? 1 : 0);
  out.group = url.take("group").value_or(opening.election);
  if (url.take_second("create_topic", "false", "true")) out.create_topic.emplace();
  if (url.take_second("first_claim", "at_once", "wait")) out.first_claim = FirstClaim::wait;
  auto least_ms = static_cast<int>(out.min_session / std::chrono::milliseconds(1));
  url.take("min_session_ms", least_ms, 1, INT_MAX);
  out.min_session = std::chrono::milliseconds(least_ms);
  out.remote_step_down = url.take_second("remote_step_down", "false", "true");
  if (group && url.take_second("exclusive", "yes", "no")) asked.exclusive = Exclusive::no;
  if (group) url.take("units", asked.units, 1, max_units);
  for (const auto& [name, value] : url.query) {
    if (const auto meant = url.meant(name); name.find('.') == name.npos && !meant.empty())
      refuse("there is no setting \"" + printable(name, 80) + "\"" + meant);
    check_runs_nothing(name, value);
    out.properties.emplace(name, value);
  }
  out.credentials = credentials_of(opening, url);
  if (!out.credentials) sign_in(url, out.properties);
  out.candidate = opening.candidate;
  out.log = opening.log;
  asked.presets = asked.exclusive == Exclusive::no ? group_presets(Exclusive::no)
                  : least_ms <= 100                ? own_broker_presets()
                                                   : presets();
  return asked;
}

Opened open_url(const Opening& opening) {
  auto [options, presets, units, exclusive] = asked_by(opening);
  return {.backend = open(std::move(options)), .presets = presets};
}

OpenedGroup open_group_url(const Opening& opening) {
  auto [options, presets, units, exclusive] = asked_by(opening, true);
  return {.store = open_group(std::move(options), units, exclusive), .presets = presets};
}

Result<Checks> check_url(const Opening& opening, const Limit& limit) {
  return check_up(completed(asked_by(opening).options), limit);
}

}  // namespace tenure::kafka
