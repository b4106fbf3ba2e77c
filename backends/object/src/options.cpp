// SPDX-License-Identifier: Apache-2.0
// Reads options from a URL, checks them, and names servers and objects.
#include "options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::object {
namespace {

constexpr std::size_t most_prefix_bytes = 200;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("object: " + what); }

bool plain(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool only(std::string_view text, std::string_view besides = {}) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return plain(c) || besides.find(c) != besides.npos; });
}

/// A part that is empty, or begins or ends with a dot, would be another object at some servers, and none at others.
bool good_prefix(std::string_view prefix) {
  if (!only(prefix, "~/")) return false;
  for (;; prefix.remove_prefix(prefix.find('/') + 1)) {
    if (prefix.empty() || prefix.starts_with('/') || prefix.starts_with('.')) return false;
    if (prefix.ends_with('.') || prefix.substr(0, prefix.find('/')).ends_with('.')) return false;
    if (prefix.find('/') == prefix.npos) return true;
  }
}

bool good_account(std::string_view account) {
  return account.size() >= 3 && account.size() <= 24 && std::all_of(account.begin(), account.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

bool has_own_bucket_host(const Options& options) {
  return options.endpoint.empty() && options.bucket.find('.') == options.bucket.npos;  // No certificate has two levels.
}

}  // namespace

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody should set any by now
  return value == nullptr ? std::string() : value;
}

Options from(Url url) {
  const std::array services{std::pair("s3", Service::s3), std::pair("gs", Service::gcs),
                            std::pair("az", Service::azure)};
  const auto* const known =
      std::find_if(services.begin(), services.end(), [&](const auto& each) { return each.first == url.scheme; });
  if (known == services.end()) refuse("the scheme \"" + printable(url.scheme, 40) + "\" is unknown: use s3, gs or az");
  Options out{.service = known->second};
  const bool azure = out.service == Service::azure;
  if (url.hosts.size() != 1 || url.hosts[0].port)
    refuse("write " + url.scheme + (azure ? "://ACCOUNT/CONTAINER/PREFIX" : "://BUCKET/PREFIX") +
           "; the host of a server of your own is ?endpoint=https://host:port");
  auto& first = azure ? out.account : out.bucket;
  first = url.hosts[0].name;
  auto path = url.path.substr(std::min<std::size_t>(1, url.path.size()));
  if (azure) {
    const auto end = std::min(path.find('/'), path.size());
    out.bucket = path.substr(0, end);
    path.erase(0, end + 1);
  }
  if (!path.empty()) out.prefix = path;
  out.user = url.user;
  out.password = url.password;
  url.take("endpoint", out.endpoint);
  if (out.service == Service::s3) {
    url.take("region", out.region);
    url.take("profile", out.profile);
  }
  url.take("ca_file", out.ca_file);
  url.expect_no_more();
  return out;
}

Options checked(Options options) {
  const auto& bucket = options.bucket;
  if (options.service == Service::azure && !good_account(options.account))
    refuse("account must have 3 to 24 small letters and digits; write az://ACCOUNT/CONTAINER/PREFIX");
  if (bucket.size() < 3 || bucket.size() > 63 || !only(bucket) || bucket.starts_with('.') || lower(bucket) != bucket)
    refuse(std::string(options.service == Service::azure ? "container" : "bucket") +
           " must have 3 to 63 small letters, digits, '-' and '.'");
  if (!good_prefix(options.prefix) || options.prefix.size() > most_prefix_bytes)
    refuse("prefix must have 1 to " + std::to_string(most_prefix_bytes) +
           " letters, digits, and -_.~ in parts between '/' that do not begin with '.'");
  if (options.user.empty() != options.password.empty())
    refuse("a key's name and its secret belong together; set user and password, or neither");
  if (options.credentials && !options.user.empty()) refuse("credentials and user are both set; set one of them");
  if (const auto server = server_of(options); !options.ca_file.empty() && !server.tls)
    refuse("ca_file is set without TLS; write ?endpoint=https://host:port");
  if (options.service == Service::gcs && !options.user.empty())
    refuse("Google's tokens expire; set credentials, or GOOGLE_APPLICATION_CREDENTIALS");
  if (options.service == Service::azure && !options.user.empty() && options.user != options.account)
    refuse("the user must be the account, and the password its key");
  if (options.service != Service::s3) return options;
  if (options.region.empty()) options.region = variable("AWS_REGION");
  if (options.region.empty()) options.region = variable("AWS_DEFAULT_REGION");
  if (options.region.empty() && !options.endpoint.empty()) options.region = "us-east-1";
  if (options.region.empty()) refuse("the region is missing; write for instance ?region=eu-west-1, or set AWS_REGION");
  if (options.region.size() > 40 || !only(options.region)) refuse("region must be a name such as eu-west-1");
  return options;
}

/// Every other byte is '~' and two digits: an escape that no server, proxy or signature takes for its own. So is a dot
/// at an end: Azure drops those behind a name.
std::string object_of(const Options& options, const std::string& election) {
  check_election(election);
  auto out = options.prefix + "/";
  for (const char& byte : election) {
    const bool at_an_end = out.ends_with('/') || &byte == &election.back();
    if (plain(byte) && (byte != '.' || !at_an_end))
      out += byte;
    else
      out += "~" + hex(std::string_view(&byte, 1));
  }
  return out;
}

Server server_at(const std::string& url, const std::string& what) {
  const auto parsed = parse_url(url);
  if ((parsed.scheme != "http" && parsed.scheme != "https") || parsed.hosts.size() != 1 || parsed.path.size() > 1 ||
      !parsed.query.empty() || !parsed.user.empty() || !parsed.password.empty())
    refuse(what + " must be http:// or https://, a host and perhaps a port, and nothing else");
  const auto& host = parsed.hosts[0];
  Server out{.tls = parsed.scheme == "https", .host = host.name, .name = host.name};
  if (out.host.find(':') != out.host.npos) out.host = "[" + out.host + "]";
  if (host.port) out.host += ":" + std::to_string(*host.port);
  return out;
}

Server server_of(const Options& options) {
  if (!options.endpoint.empty()) {
    auto out = server_at(options.endpoint, "endpoint");
    const bool named = options.service != Service::azure || out.host.starts_with(options.account + ".");
    out.folder = (named ? "/" : "/" + options.account + "/") + options.bucket + "/";
    return out;
  }
  if (options.service == Service::azure)
    return {.tls = true, .host = options.account + ".blob.core.windows.net", .folder = "/" + options.bucket + "/"};
  if (options.service == Service::gcs) return {.tls = true, .host = "storage.googleapis.com", .folder = {}};
  const auto service = "s3." + options.region + ".amazonaws.com" + (options.region.starts_with("cn-") ? ".cn" : "");
  if (!has_own_bucket_host(options)) return {.tls = true, .host = service, .folder = "/" + options.bucket + "/"};
  return {.tls = true, .host = options.bucket + "." + service, .folder = "/"};
}

}  // namespace tenure::object
