// SPDX-License-Identifier: Apache-2.0
// Reads options from a URL, checks them, and names the keys of an election.
#include "options.hpp"

#include <stdexcept>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>

namespace tenure::etcd {
namespace {

constexpr int usual_port = 2379;
constexpr std::size_t most_prefix_bytes = 100;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("etcd: " + what); }

}  // namespace

Options from(Url url) {
  if (url.scheme != "etcd" && url.scheme != "etcds")
    refuse("the scheme \"" + printable(url.scheme, 40) + "\" is unknown: use etcd, or etcds for TLS");
  Options out;
  out.tls = url.scheme == "etcds";
  out.user = url.user;
  out.password = url.password;
  for (const auto& host : url.hosts) out.servers.push_back({host.name, host.port ? int{*host.port} : usual_port});
  if (out.servers.empty())
    refuse("the URL names no host; write " + url.scheme + "://host:" + std::to_string(usual_port));
  if (url.path.size() > 1) refuse("the URL has a path, which means nothing here; a prefix of the keys is ?prefix=");
  url.take("prefix", out.prefix);
  url.take("ca_file", out.ca_file);
  url.take("cert_file", out.cert_file);
  url.take("key_file", out.key_file);
  url.expect_no_more();
  return out;
}

const Options& checked(const Options& options) {
  if (options.servers.empty()) refuse("servers is empty; name the members of a cluster");
  for (const auto& [host, port] : options.servers)
    if (host.empty() || port < 1 || port > 65'535) refuse("each of servers needs a host, and a port from 1 to 65535");
  if (options.user.empty() != options.password.empty())
    refuse(options.user.empty() ? "password is set without a user; set both"
                                : "user is set without a password; set both");
  if (options.credentials && !options.user.empty()) refuse("credentials and user are both set; set one of them");
  if (options.prefix.size() > most_prefix_bytes)
    refuse("prefix must have at most " + std::to_string(most_prefix_bytes) + " bytes");
  if (options.cert_file.empty() != options.key_file.empty())
    refuse("cert_file and key_file belong together; set both, or neither");
  if (!options.tls && !(options.ca_file.empty() && options.cert_file.empty()))
    refuse("ca_file or cert_file is set without TLS; set Options::tls, or write etcds://");
  return options;
}

Keys keys_of(const Options& options, const std::string& election) {
  check_election(election);
  return {records_of(options) + election, options.prefix + "news/" + election,
          options.prefix + "step_down/" + election};
}

std::string records_of(const Options& options) { return options.prefix + "record/"; }

std::optional<std::string> election_of(const Options& options, const std::string& key) {
  const auto prefix = records_of(options);
  if (!key.starts_with(prefix)) return std::nullopt;
  auto name = key.substr(prefix.size());
  if (name.empty() || name.size() > max_election_bytes || name.find('\0') != name.npos) return std::nullopt;
  return name;
}

std::string to_string(const Address& address) {
  const bool ipv6 = address.host.find(':') != address.host.npos;
  return (ipv6 ? "[" + address.host + "]" : printable(address.host)) + ":" + std::to_string(address.port);
}

}  // namespace tenure::etcd
