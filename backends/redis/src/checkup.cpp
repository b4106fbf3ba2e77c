// SPDX-License-Identifier: Apache-2.0
// Asks a server for its settings, and judges them.
#include "checkup.hpp"

#include <memory>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "link.hpp"
#include "reply.hpp"
#include "wire.hpp"

namespace tenure::redis {

const Script info_script{R"(local out = ''
for _, section in ipairs({'server', 'memory', 'persistence', 'replication'}) do
  local told = redis.pcall('INFO', section)
  if type(told) ~= 'string' then return '' end
  out = out .. told .. '\r\n'
end
return out)",
                         "7e64f99fc26140575fcef454c8f49d0b34fdad50"};

namespace {

Check of_memory(const std::string& info) {
  const auto policy = printable(info_field(info, "maxmemory_policy"), 40);
  if (info_field(info, "maxmemory") == "0") return Check::fine("maxmemory is not set, so nothing is evicted");
  if (policy.starts_with("allkeys"))
    return Check::wrong("maxmemory-policy is " + policy + ": records may be evicted while their leaders lead",
                        "set it to noeviction, or to one of volatile-*");
  return Check::fine("maxmemory-policy is " + policy + ", which evicts no record");
}

Check of_disk(const std::string& info, const Options& options) {
  const bool at_once = options.first_claim == FirstClaim::at_once;
  if (info_field(info, "aof_enabled") == "1")
    return at_once ? Check::doubtful(
                         "appendonly is on, and first_claim is at_once: unless appendfsync is always, a crash "
                         "of the host may lose the record of its last second, and then two may lead",
                         "set appendfsync always, or leave out first_claim=at_once")
                   : Check::fine("appendonly is on: a restart keeps the records");
  if (at_once)
    return Check::wrong("appendonly is off, and first_claim is at_once: after a restart two may lead",
                        "set appendonly yes and appendfsync always, or leave out first_claim=at_once");
  return Check::doubtful("appendonly is off: after a restart the first leader begins a term later",
                         "set appendonly yes, if that is too long");
}

Check of_replicas(const std::string& info, const Options& options) {
  if (info_field(info, "role") != "master")
    return Check::wrong("the server is a replica, which takes no writes", "name the master, or its Sentinels");
  const auto there = number<int>(info_field(info, "connected_slaves")).value_or(0);
  const auto what = "the server is a master with " + std::to_string(there) + " replica(s)";
  if (there < options.replicas)
    return Check::wrong(
        what + ", and replicas=" + std::to_string(options.replicas) + " must acknowledge: nobody can lead",
        "start replicas, or ask for fewer");
  if (there > 0 && options.replicas == 0)
    return Check::doubtful(what + ", and a write waits for none: one that is promoted may lack the last token",
                           "set replicas=1 in the URL, or fence your writes by the token");
  return Check::fine(what);
}

}  // namespace

Checks checks_of(const std::string& info, const Options& options) {
  for (const auto* name : {"redis_version", "role", "maxmemory", "maxmemory_policy", "aof_enabled"})
    if (info_field(info, name).empty())
      return {
          Check::doubtful("the server does not say what it may lose: INFO is refused, or lacks " + std::string(name),
                          "permit INFO to the user (+info)")};
  return {Check::fine("the server is Redis or Valkey " + printable(info_field(info, "redis_version"), 40)),
          of_replicas(info, options), of_memory(info), of_disk(info, options)};
}

Result<Checks> check_up(const Options& options, const Limit& limit) {
  const auto name = client_name("(doctor)", {});
  const auto sentinels = sentinels_of(options, name);
  Checks out;
  if (sentinels) {
    if (const auto named = sentinels->master(boot_clock().now(), limit); !named)  // as before a claim
      out.push_back(Check::wrong("nobody can be elected: " + named.error().message,
                                 "name all Sentinels in the URL, and see that more than half of them answer"));
    while (const auto warning = sentinels->take_warning())
      out.push_back(Check::doubtful(*warning,
                                    "give the Sentinels' user the rights that <tenure/redis.hpp> lists, if "
                                    "that is why"));
  }
  Link link(
      {options, Connection::Use::commands, name}, sentinels, [](const std::string&) {}, Link::Made::now);
  const auto answer = link.run({&info_script, {}, {}}, {}, limit);
  if (!answer) return answer.error();
  for (auto& check : checks_of(answer->text, options)) out.push_back(std::move(check));
  return out;
}

}  // namespace tenure::redis
