// SPDX-License-Identifier: Apache-2.0
// What the dialects have in common, and which one it is.
#include "dialect.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>

#include "options.hpp"
#include "web/http.hpp"
#include "web/record.hpp"

namespace tenure::object {

std::vector<std::string> secrets_of(const Login& login) {
  std::vector<std::string> out{login.secret, login.token};
  constexpr std::string_view name = "sig=";  // of a shared access signature
  if (const auto at = login.secret.find(name); at != login.secret.npos) {
    const auto from = at + name.size();
    out.push_back(login.secret.substr(from, login.secret.find('&', from) - from));
    int size = 0;
    const auto decoded =
        owned<curl_free>(curl_easy_unescape(nullptr, out.back().data(), static_cast<int>(out.back().size()), &size));
    if (decoded) out.emplace_back(decoded.get(), static_cast<std::size_t>(size));
  }
  return out;
}

std::unique_ptr<Dialect> dialect_of(const Options& options) {
  if (options.service == Service::gcs) return gcs(options);
  if (options.service == Service::azure) return azure(options);
  return s3(options);
}

web::Site Dialect::site() const {
  const auto server = server_of(options_);
  const bool azure = options_.service == Service::azure;
  const std::string kind = azure ? "azure " : options_.service == Service::gcs ? "gcs " : "s3 ";
  return {.base = (server.tls ? "https://" : "http://") + server.host,
          .name = kind + server.host + (azure ? ", container " : ", bucket ") + options_.bucket,
          .tls = server.tls,
          .ca_file = options_.ca_file,
          .without_tls = "?endpoint=http://",
          .with_tls = "?endpoint=https://"};
}

std::string header_of(const web::Answer& answer, std::string_view name) {
  std::string_view head = answer.head;
  while (!head.empty()) {
    const auto end = std::min(head.find('\n'), head.size());
    const auto line = head.substr(0, end), value = line.substr(std::min(name.size() + 1, line.size()));
    head.remove_prefix(std::min(end + 1, head.size()));
    if (line.size() <= name.size() || line[name.size()] != ':' || lower(line.substr(0, name.size())) != lower(name))
      continue;
    const auto first = value.find_first_not_of(" \t\r"), last = value.find_last_not_of(" \t\r");
    return first == value.npos ? std::string() : std::string(value.substr(first, last - first + 1));
  }
  return {};
}

std::optional<std::string> etag_of(const web::Answer& answer) {
  auto out = header_of(answer, "ETag");
  const bool fit = out.size() <= 1024 && !out.starts_with("W/") &&
                   std::all_of(out.begin(), out.end(), [](char c) { return c > ' ' && c <= '~'; });
  return out.empty() || out == "*" || !fit ? std::nullopt : std::optional(std::move(out));
}

Error error_told(const std::string& name, const std::string& provider, const std::string& code,
                 const web::Answer& answer, const Redactor& redacted, std::span<const Meaning> meanings) {
  const auto status = name + ": HTTP status " + std::to_string(answer.status);
  if (code.empty())
    return {Fault::unreachable,
            status + ", and no answer of " + provider + ": " + printable(redacted(answer.body), 200)};
  const auto said =
      status + ", " + printable(redacted(code), 80) + ": " + printable(redacted(element(answer.body, "Message")), 300);
  for (const auto& meaning : meanings)
    if (meaning.code == code) return {meaning.fault, said + " (" + std::string(meaning.remedy) + ")"};
  return {answer.status == 403 ? Fault::forbidden : Fault::unreachable, said};
}

// ---- for logins ----

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
                          const web::Until& until) {
  if (until.over()) return Error{Fault::timed_out, who + ": the limit passed before it was asked"};
  const auto left =
      std::clamp<Clock::Duration>(until.by - boot_clock().now(), std::chrono::milliseconds(1), std::chrono::seconds(1));
  web::Http http({.base = (server.tls ? "https://" : "http://") + server.host, .name = who, .tls = server.tls});
  auto answer = http.connect(request, left, [](int) { return true; });
  if (!answer) return std::move(answer).error();
  if (answer->status != 200)
    return no_credentials(who + " answered with HTTP status " + std::to_string(answer->status));
  return std::move(answer->body);
}

Result<Login> token_of(const Server& server, const web::Request& request, const std::string& who,
                       const web::Until& until) {
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

std::int64_t moment_of(std::string_view text) {
  const auto part = [&](std::size_t at, std::size_t digits) {
    const auto found = at + digits <= text.size() ? number<unsigned>(text.substr(at, digits)) : std::nullopt;
    return found ? static_cast<int>(*found) : -1;
  };
  const int year = part(0, 4), month = part(5, 2), day = part(8, 2), hour = part(11, 2), minute = part(14, 2),
            second = part(17, 2);
  const auto date = std::chrono::year(year) / month / day;
  if (!text.ends_with('Z') || std::min({hour, minute, second}) < 0 || !date.ok()) return 0;
  const auto at = std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                  std::chrono::seconds(second);
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
