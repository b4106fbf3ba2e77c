// SPDX-License-Identifier: Apache-2.0
// The environment, a web identity, files, the container and the instance: one after the other.
#include "credentials.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>

#include "options.hpp"
#include "web/http.hpp"
#include "web/record.hpp"

namespace tenure::object {
namespace {

using std::chrono::seconds;
using web::Until;

/// Nothing: this source is not set up here, so that the next one is asked.
using Found = std::optional<Result<Login>>;

constexpr std::size_t most_bytes_of_file = 256 << 10;

Result<Login> whole(Login login) {
  if (login.key.empty() || login.secret.empty())
    return no_credentials(login.source + " has no access key's id, or no secret");
  if (!fit_for_header(login.key) || !fit_for_header(login.secret) || !fit_for_header(login.token))
    return no_credentials(login.source + " has a key with a blank or a byte that no header can have");
  return login;
}

// ---- what is at hand ----

Found of_options(const Options& options) {
  if (options.credentials) {
    const auto found = credentials_by(options.credentials, Redactor({}));
    return whole({.key = found.user, .secret = found.password, .source = "what credentials() returned"});
  }
  if (options.user.empty()) return std::nullopt;
  return whole({.key = options.user, .secret = options.password, .source = "the URL's user and password"});
}

Found of_environment() {
  Login out{.key = variable("AWS_ACCESS_KEY_ID"), .secret = variable("AWS_SECRET_ACCESS_KEY")};
  if (out.key.empty() && out.secret.empty()) return std::nullopt;
  out.token = variable("AWS_SESSION_TOKEN");
  out.source = "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)";
  return whole(std::move(out));
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

Login of_profile(std::string_view text, const std::string& profile) {
  Login out;
  bool inside = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) inside = line == "[" + profile + "]";
    const auto equals = line.find('=');
    if (!inside || line.starts_with('#') || equals == line.npos) continue;
    const auto name = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
    if (name == "aws_access_key_id") out.key = value;
    if (name == "aws_secret_access_key") out.secret = value;
    if (name == "aws_session_token") out.token = value;
  }
  return out;
}

Found of_file(const Options& options) {
  auto path = variable("AWS_SHARED_CREDENTIALS_FILE");
  const auto home = variable("HOME");
  if (path.empty() && !home.empty()) path = home + "/.aws/credentials";
  auto profile = options.profile.empty() ? variable("AWS_PROFILE") : options.profile;
  const bool named = !profile.empty();
  if (!named) profile = "default";
  const auto text = path.empty() ? Result<std::string>() : content_of(path, most_bytes_of_file);
  const auto where = "the profile " + printable(profile, 80) + " in " + printable(path);
  if (!text && named) return no_credentials("the file " + printable(path) + " " + text.error().message);
  if (!text) return std::nullopt;
  auto out = of_profile(*text, profile);
  if (out.key.empty() && out.secret.empty() && !named) return std::nullopt;
  out.source = where;
  return whole(std::move(out));
}

// ---- what is asked by HTTP ----

/// What container and instance answer.
Result<Login> of_json(const Result<std::string>& text, const std::string& source) {
  if (!text) return text.error();
  const auto json = web::parsed(*text);
  return whole({.key = member(json, "AccessKeyId"),
                .secret = member(json, "SecretAccessKey"),
                .token = member(json, "Token"),
                .source = source,
                .expires_ms = moment_of(member(json, "Expiration"))});
}

Found of_web_identity(const Options& options, const Until& until) {
  const auto file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), role = variable("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return std::nullopt;
  const auto token = secret_of(file, most_bytes_of_file);
  if (!token) return no_credentials("the file of AWS_WEB_IDENTITY_TOKEN_FILE " + token.error().message);
  const auto given = variable("AWS_ENDPOINT_URL_STS"), session = variable("AWS_ROLE_SESSION_NAME");
  const auto server =
      confidant_at(given.empty() ? "https://sts." + options.region + ".amazonaws.com" : given, "AWS_ENDPOINT_URL_STS");
  if (!server) return server.error();
  const auto who = "the token service " + server->host;
  const auto xml = fetch(*server,
                         {.method = "POST",
                          .path = "/",
                          .body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + form_encoded(role) +
                                  "&RoleSessionName=" + form_encoded(session.empty() ? "tenure" : session) +
                                  "&WebIdentityToken=" + form_encoded(*token)},
                         who, until);
  if (!xml) return xml.error();
  return whole({.key = element(*xml, "AccessKeyId"),
                .secret = element(*xml, "SecretAccessKey"),
                .token = element(*xml, "SessionToken"),
                .source = who,
                .expires_ms = moment_of(element(*xml, "Expiration"))});
}

Found of_container(const Until& until) {
  auto url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const auto relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !relative.empty())
    url = "http://169.254.170.2" + relative;
  if (url.empty()) return std::nullopt;
  const auto [base, path] = split_url(url);
  const auto server = confidant_at(base, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!server) return server.error();
  web::Request request{.method = "GET", .path = path};
  auto token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const auto file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    const auto read = secret_of(file, most_bytes_of_file);
    if (!read) return no_credentials("the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE " + read.error().message);
    token = *read;
  }
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain || !fit_for_header(path))
    return no_credentials("the container's URI or authorization token has a byte that no header can have");
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  const auto who = "the container's credentials at " + server->host;
  return of_json(fetch(*server, request, who, until), who);
}

Result<Login> of_instance(const Until& until) {
  const std::string folder = "/latest/meta-data/iam/security-credentials/", who = "the EC2 instance's metadata";
  auto at = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (at.empty()) at = "http://169.254.169.254";
  while (at.ends_with('/')) at.pop_back();
  const auto server = server_at(at, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const auto pass =
      fetch(server,
            {.method = "PUT", .path = "/latest/api/token", .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"}},
            who, until);
  if (!pass) return pass.error();
  if (!fit_for_header(*pass)) return no_credentials(who + " gave a token that no header can have");
  const auto ask = [&](const std::string& path) {
    return fetch(server, {.method = "GET", .path = path, .headers = {"X-aws-ec2-metadata-token: " + *pass}}, who,
                 until);
  };
  const auto roles = ask(folder);
  if (!roles) return roles.error();
  const auto role = trimmed(roles->substr(0, roles->find('\n')));
  if (role.empty() || !fit_for_header(role)) return no_credentials(who + " names no role of this instance");
  return of_json(ask(folder + role), who);
}

}  // namespace

Error no_credentials(const std::string& why) { return {Fault::forbidden, "no credentials: " + why}; }

Result<Server> confidant_at(const std::string& url, const std::string& what) {
  auto out = server_at(url, what);
  const bool of_this_link =
      out.name.starts_with("169.254.") && out.name.find_first_not_of("0123456789.") == out.name.npos;
  const bool of_amazons_link = out.name.starts_with("fd00:ec2::");
  if (!out.tls && !loopback(out.name) && !of_this_link && !of_amazons_link)
    return no_credentials(what + " names " + printable(out.host, 200) + " without TLS; write https://");
  return out;
}

bool fit_for_header(std::string_view text) {
  return text.size() <= 16 << 10 && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string form_encoded(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'
               ? std::string(1, c)
               : percent(c);
  return out;
}

std::string member(const web::Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::pair<std::string, std::string> split_url(const std::string& url) {
  const auto host = url.find("://");
  const auto path = host == url.npos ? url.npos : url.find('/', host + 3);
  return path == url.npos ? std::pair(url, std::string("/")) : std::pair(url.substr(0, path), url.substr(path));
}

Result<std::string> fetch(const Server& server, const web::Request& request, const std::string& who,
                          const Until& until) {
  if (until.over()) return Error{Fault::timed_out, who + ": the limit passed before it was asked"};
  const auto left =
      std::clamp<Clock::Duration>(until.by - boot_clock().now(), std::chrono::milliseconds(1), seconds(1));
  web::Http http({.base = (server.tls ? "https://" : "http://") + server.host, .name = who, .tls = server.tls});
  auto answer = http.connect(request, left, [](int) { return true; });
  if (!answer) return std::move(answer).error();
  if (answer->status != 200)
    return no_credentials(who + " answered with HTTP status " + std::to_string(answer->status));
  return std::move(answer->body);
}

Result<Login> token_of(const Server& server, const web::Request& request, const std::string& who, const Until& until) {
  constexpr std::uint64_t most_seconds = 1'000'000;
  const auto text = fetch(server, request, who, until);
  if (!text) return text.error();
  const auto json = web::parsed(*text);
  Login out{.token = member(json, "access_token"), .source = who};
  const auto lasts = [&](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    if (found == json.end()) return std::optional<std::uint64_t>();
    return found->is_number_unsigned() ? found->get<std::uint64_t>() : number<std::uint64_t>(member(json, name));
  };
  const auto now_s = static_cast<std::uint64_t>(boot_clock().unix_ms() / 1000);
  auto seconds = lasts("expires_in");
  if (const auto at = lasts("expires_on"); !seconds && at) seconds = *at > now_s ? *at - now_s : 0;
  if (seconds && *seconds < most_seconds) out.expires_ms = static_cast<std::int64_t>(1000 * (now_s + *seconds));
  if (out.token.empty() || !fit_for_header(out.token))
    return no_credentials(who + " gave no token that a header can have");
  return out;
}

Result<Login> find_login(const Options& options, const Until& until) {
  if (auto found = of_options(options)) return *std::move(found);
  if (options.profile.empty())
    if (auto found = of_environment()) return *std::move(found);
  if (auto found = of_web_identity(options, until)) return *std::move(found);
  if (auto found = of_file(options)) return *std::move(found);
  if (auto found = of_container(until)) return *std::move(found);
  const std::string all =
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile into ~/.aws/credentials, or give this "
      "machine a role";
  if (lower(variable("AWS_EC2_METADATA_DISABLED")) == "true") return no_credentials(all);
  auto found = of_instance(until);
  if (!found && found.error().fault != Fault::timed_out)
    return Error{found.error().fault, "no credentials: " + all + " (" + found.error().message + ")"};
  return found;
}

std::int64_t moment_of(std::string_view text) {
  const auto part = [&](std::size_t at, std::size_t digits) {
    const auto found = at + digits <= text.size() ? number<unsigned>(text.substr(at, digits)) : std::nullopt;
    return found ? static_cast<int>(*found) : -1;
  };
  const int year = part(0, 4), month = part(5, 2), day = part(8, 2), hour = part(11, 2), minute = part(14, 2),
            second = part(17, 2);
  const auto date = std::chrono::year(year) / month / day;
  if (!text.ends_with('Z') || std::min({hour, minute, second}) < 0 || !date.ok()) return 0;
  const auto at =
      std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) + seconds(second);
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

std::string element(std::string_view xml, std::string_view name) {
  const auto open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const auto first = xml.find(open);
  if (first == xml.npos) return {};
  const auto begin = first + open.size(), end = xml.find(close, begin);
  return end == xml.npos ? std::string() : std::string(xml.substr(begin, end - begin));
}

}  // namespace tenure::object
