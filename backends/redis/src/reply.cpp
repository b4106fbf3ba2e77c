// SPDX-License-Identifier: Apache-2.0
// The table of errors that a server gives, with their faults and remedies.
#include "reply.hpp"

#include <algorithm>
#include <iterator>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/log.hpp>

namespace tenure::redis {
namespace {

struct Meaning {
  std::string_view code;
  Fault fault;
  std::string_view words;
};

/// Nothing was written in any of these cases, but a script may have been stopped between its commands.
constexpr Meaning meanings[] = {
    {"READONLY", Fault::forbidden, "it is a replica, which takes no writes; name the master, or its Sentinels"},
    {"LOADING", Fault::unreachable, "it is loading its data, and serves when that is done"},
    {"MASTERDOWN", Fault::unreachable, "it is a replica without a connection to its master"},
    {"BUSY", Fault::unreachable, "a client's script or function keeps it busy; SCRIPT KILL or FUNCTION KILL ends that"},
    {"OOM", Fault::misconfigured, "it has no memory left; raise maxmemory or remove data"},
    {"NOAUTH", Fault::forbidden,
     "it requires a password; set password (and user), or for a Sentinel sentinel_password (and sentinel_user)"},
    {"WRONGPASS", Fault::forbidden, "the user or the password is wrong; set them as the server's ACL has them"},
    {"DENIED", Fault::forbidden, "it is in protected mode, open to loopback only; give it a password"},
    {"CLUSTERDOWN", Fault::unreachable, "its cluster is down, or does not serve all slots"},
    {"TRYAGAIN", Fault::unreachable, "its cluster is moving the slot"},
    {"MISCONF", Fault::misconfigured, "it cannot save to its disk and takes no writes; its log says why"},
    {"NOREPLICAS", Fault::unreachable, "it has fewer replicas than its min-replicas-to-write"},
    {"WRONGTYPE", Fault::misconfigured,
     "a key that it needs holds something that tenure did not write; choose another prefix"},
    {"FORMAT", Fault::corrupt,  // as our own scripts say
     "another release of tenure wrote the group, in a format that this one does not know; use the release that wrote "
     "it"},
    {"PARTIAL", Fault::misconfigured,  // as our own script says
     "it is a node of a cluster, and each node has a part of the elections; ask for each election by its name"},
    {"NOSCRIPT", Fault::unreachable, "it forgot a script between two commands"},
    {"MOVED", Fault::unreachable, "its cluster redirected the call too often"},
    {"ASK", Fault::unreachable, "its cluster redirected the call too often"},
    {"NOGOODSLAVE", Fault::unreachable, "the Sentinel knows no replica to promote"},
};

const Meaning* find(std::string_view code) {
  const auto* const found = std::find_if(std::begin(meanings), std::end(meanings),
                                         [code](const Meaning& meaning) { return meaning.code == code; });
  return found == std::end(meanings) ? nullptr : found;
}

bool of_code(char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }

std::string_view word_at(std::string_view text, std::size_t at) {
  auto end = at;
  while (end < text.size() && of_code(text[end])) ++end;
  return end == text.size() || text[end] == ' ' ? text.substr(at, end - at) : std::string_view();
}

/// The command that was refused. A script has several, so that the server's own word for it counts: the one in quotes
/// behind these.
std::string refused_command(std::string_view error, bool quote, std::string_view sent) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ|";
  for (const std::string_view words : {"to run the ", "unknown command ", "number of arguments for "}) {
    const auto at = error.find(words);
    if (!quote || at == error.npos || at + words.size() == error.size()) continue;
    const auto quoted = error.substr(at + words.size() + 1);
    const auto end = quoted.find_first_not_of(letters);
    if (end != quoted.npos && end > 0 && (quoted[end] == '\'' || quoted[end] == '`'))
      return printable(quoted.substr(0, end), 40);
  }
  const bool by_script = error.find("The user executing the script can't") != error.npos;
  return by_script ? "a command of our script" : sent.empty() ? "a command" : std::string(sent);
}

/// An ACL has commands, keys and channels.
Error no_permission(std::string_view error, const std::string& where, const std::string& command) {
  const auto says = [error](std::string_view words) { return error.find(words) != error.npos; };
  const auto lacks = says("a key") || says("the keys") ? "may not use these keys; permit ~ and the prefix, as ~tenure:*"
                     : says("a channel") || says("the channels")
                         ? "may not use this channel; permit & and the prefix, as &tenure:*"
                         : "may not run " + command + "; permit it";
  return {Fault::forbidden, where + " says NOPERM: the user " + lacks + " (<tenure/redis.hpp> lists the whole ACL)"};
}

}  // namespace

std::string_view code_of(std::string_view error) {
  const auto first = word_at(error, 0);
  if (!first.empty() && first != "ERR") return first;
  // Redis 6: "ERR Error running script (call to f_...): @user_script:7: -READONLY You can't..."
  constexpr std::string_view script = "@user_script:";
  for (auto at = error.find(script); at != error.npos && at < error.size(); ++at)
    if (error[at] == ' ' || error[at] == '-')
      if (const auto word = word_at(error, at + 1); find(word) != nullptr) return word;
  return first;
}

Error explained(std::string_view error, const std::string& where, bool quote, std::string_view sent) {
  const auto code = code_of(error);
  const auto command = refused_command(error, quote, sent);
  if (const auto* known = find(code))
    return {known->fault, where + " says " + std::string(code) + ": " + std::string(known->words)};
  const auto says = [error](std::string_view words) { return error.find(words) != error.npos; };
  if (code == "NOPERM" || says("ACL failure in script") || says("The user executing the script can't"))
    return no_permission(error, where, command);
  if (says("without any password") || says("no password is set"))
    return {Fault::misconfigured, where + " is configured without a password; leave `password` empty"};
  if (says("max number of clients"))
    return {Fault::unreachable, where + " has as many clients as its maxclients allows"};
  if (says("DB index") || says("SELECT is not allowed"))
    return {Fault::misconfigured, where + " has no such database; a cluster has only database 0"};
  if (says("unknown command") || says("wrong number of arguments") || says("unknown subcommand"))
    return {Fault::misconfigured,
            where + " does not support " + command +
                ", which is required; use Redis 6 or newer, with no command renamed, and no proxy that lacks it"};
  return {Fault::unreachable, where + " refuses " + command + (quote ? ": " + printable(error) : std::string())};
}

std::string_view info_field(std::string_view info, std::string_view name) {
  const auto line = "\n" + std::string(name) + ":";
  const auto at = info.find(line);
  if (at == info.npos) return {};
  const auto begin = at + line.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

Error no_answer(const std::string& key) {
  return {Fault::corrupt, "an unexpected answer of the script for " + printable(key) +
                              "; look whether a proxy or another server stands in between"};
}

std::optional<int> port_of(std::string_view text) {
  const auto port = number<int>(text);
  return port && *port >= 1 && *port <= 65'535 ? port : std::nullopt;
}

std::optional<Redirection> redirection(const Reply& reply, const std::string& from) {
  const std::string_view text = reply.text;  // "MOVED 3999 127.0.0.1:6381"
  const bool ask = text.starts_with("ASK ");
  if (!reply.is_error() || (!ask && !text.starts_with("MOVED "))) return std::nullopt;
  const auto blank = text.rfind(' ');
  const auto colon = text.rfind(':');
  if (colon == text.npos || colon < blank) return std::nullopt;
  const auto port = port_of(text.substr(colon + 1));
  if (!port) return std::nullopt;
  const auto host = std::string(text.substr(blank + 1, colon - blank - 1));
  return Redirection{{host.empty() || host == "?" ? from : host, *port}, ask};
}

}  // namespace tenure::redis
