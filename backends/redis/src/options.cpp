// SPDX-License-Identifier: Apache-2.0
// Reads options from a URL, checks them, and names the keys of an election.
#include "options.hpp"

#include <sys/un.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/log.hpp>

namespace tenure::redis {
namespace {

constexpr int redis_port = 6379, sentinel_port = 26379;
constexpr int most_replicas = 100;
constexpr int most_dbs = 1'000'000;
constexpr std::size_t most_prefix_bytes = 100;
constexpr std::size_t most_secret_bytes = 1 << 20;

using Setting = decltype(Url::query)::value_type;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("redis: " + what); }

/// The parts between the slashes of a path, without empty ones at its end.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (path.size() > 1) {
    const auto end = std::min(path.find('/', 1), path.size());
    parts.emplace_back(path.substr(1, end - 1));
    path.remove_prefix(end);
  }
  return parts;
}

void take_servers(const Url& url, int port, Options& out) {
  for (const auto& host : url.hosts) out.servers.push_back({host.name, host.port ? int{*host.port} : port});
  if (out.servers.empty()) refuse("the URL names no host; write " + url.scheme + "://host:" + std::to_string(port));
}

/// Its content at each call.
AskCredentials secret_in(const std::string& file, const std::string& user) {
  return [file, user] {
    auto secret = secret_of(file, most_secret_bytes);
    if (!secret)
      throw std::runtime_error("sentinel_password_file names " + printable(file) + ", which " + secret.error().message);
    return Credentials{user, *std::move(secret)};
  };
}

}  // namespace

Options from(Url url) {
  Options out;
  out.user = url.user;
  out.password = url.password;
  auto parts = parts_of(url.path);
  if (url.scheme == "redis" || url.scheme == "rediss") {
    out.tls = url.scheme == "rediss";
    take_servers(url, redis_port, out);
  } else if (url.scheme == "redis+sentinel") {
    take_servers(url, sentinel_port, out);
    if (parts.empty() || parts.front().empty())
      refuse("the URL names no master; write redis+sentinel://host:26379/master-name");
    out.master = parts.front();
    parts.erase(parts.begin());
  } else if (url.scheme == "redis+unix") {
    if (!url.hosts.empty()) refuse("a Unix socket has no host; write redis+unix:///path/to.sock, with three slashes");
    out.socket = url.path;
    if (out.socket.size() < 2) refuse("the URL names no socket; write redis+unix:///path/to.sock");
    parts.clear();
  } else {
    refuse("the scheme \"" + printable(url.scheme, 40) +
           "\" is unknown: use redis, rediss, redis+unix or redis+sentinel");
  }
  if (parts.size() > 1 || (parts.size() == 1 && std::ranges::count(url.query, "db", &Setting::first) > 0))
    refuse("the URL's path may hold one number, the database, and only if db is not set");
  if (parts.size() == 1 && !parts.front().empty()) url.query.emplace_back("db", parts.front());
  url.take("db", out.db, 0, most_dbs);
  url.take("replicas", out.replicas, 0, most_replicas);
  if (url.take_second("first_claim", "wait", "at_once")) out.first_claim = FirstClaim::at_once;
  url.take("prefix", out.prefix);
  url.take("ca_file", out.ca_file);
  url.take("sentinel_user", out.sentinel_user);
  url.take("sentinel_password", out.sentinel_password);
  if (const auto file = url.take("sentinel_password_file"))
    out.sentinel_credentials = secret_in(*file, std::exchange(out.sentinel_user, {}));
  url.expect_no_more();
  return out;
}

const Options& checked(const Options& options) {
  if (options.servers.empty() == options.socket.empty())
    refuse(options.socket.empty() ? "neither servers nor a socket is set; set one of them"
                                  : "both servers and a socket are set; set only one of them");
  if (options.socket.size() >= sizeof sockaddr_un{}.sun_path)
    refuse("socket has " + std::to_string(options.socket.size()) + " bytes; a Unix socket's path has at most " +
           std::to_string(sizeof sockaddr_un{}.sun_path - 1));
  for (const auto& [host, port] : options.servers)
    if (host.empty() || port < 1 || port > 65'535) refuse("each of servers needs a host, and a port from 1 to 65535");
  if (!options.master.empty() && options.servers.empty()) refuse("master is set, but servers names no Sentinel");
  if (!options.user.empty() && options.password.empty()) refuse("user is set without a password; set both");
  if (options.credentials && !options.password.empty())
    refuse("credentials and password are both set; set one of them");
  if (!options.sentinel_user.empty() && options.sentinel_password.empty())
    refuse("sentinel_user is set without sentinel_password; set both");
  if (options.sentinel_credentials && !options.sentinel_password.empty())
    refuse("sentinel_password is set, and sentinel_credentials or sentinel_password_file too; set one of them");
  if (options.master.empty() && (options.sentinel_credentials || !options.sentinel_password.empty()))
    refuse("a password or credentials of Sentinels are set without master; set both");
  if (options.db < 0 || options.db > most_dbs) refuse("db must be a number from 0 to " + std::to_string(most_dbs));
  if (options.replicas < 0 || options.replicas > most_replicas)
    refuse("replicas must be a number from 0 to " + std::to_string(most_replicas));
  if (options.prefix.size() > most_prefix_bytes || options.prefix.find_first_of("{}") != options.prefix.npos)
    refuse("prefix must have at most " + std::to_string(most_prefix_bytes) + " bytes and no braces");
  if (!options.tls && !options.ca_file.empty()) refuse("ca_file is set without TLS; write rediss://");
#ifndef TENURE_REDIS_TLS
  if (options.tls)
    refuse(
        "this build has no TLS: its hiredis is older than 1.0 or was built without its TLS part. Build against one "
        "that has it (libhiredis_ssl), or let a local TLS proxy such as stunnel carry a connection to redis://");
#endif
  return options;
}

std::string key_of(const Options& options, const std::string& election) {
  check_election(election);
  return options.prefix + "{" + election + "}";
}

/// Braces with nothing between them would not count, and the keys have different slots. No name has a NUL.
std::string group_key_of(const Options& options, const std::string& group) {
  check_election(group);
  return options.prefix + (group.starts_with('}') ? std::string("{\0", 2) : "{") + group + "}";
}

std::string to_string(const Address& address) {
  const auto host = printable(address.host);  // a Sentinel or a cluster may have named it
  const bool ipv6 = host.find(':') != host.npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(address.port);
}

std::string to_string(const Address& named, const Address& resolved) {
  return to_string(named) + (named == resolved ? "" : " (" + printable(resolved.host) + ")");
}

}  // namespace tenure::redis
