// SPDX-License-Identifier: Apache-2.0
#include "checkup.hpp"

#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "handshake.hpp"
#include "link.hpp"
#include "reply.hpp"

namespace tenure::redis {

const Script info_script{R"(local out = ''
for _, section in ipairs({'server', 'memory', 'persistence', 'replication'}) do
  out = out .. redis.call('INFO', section) .. '\r\n'
end
return out)",
                         "d2558aff467693fdfb1d86db9cf6c8a69275e2bd"};

namespace {

Check fine(std::string what) { return {Check::Is::fine, std::move(what), {}}; }
Check wrong(std::string what, std::string remedy) { return {Check::Is::wrong, std::move(what), std::move(remedy)}; }

Check of_memory(const std::string& info) {
  const auto policy = printable(info_field(info, "maxmemory_policy"), 40);
  if (info_field(info, "maxmemory") == "0") return fine("maxmemory is not set, so nothing is evicted");
  if (policy.starts_with("allkeys"))
    return wrong("maxmemory-policy is " + policy + ": records may be evicted while their leaders lead",
                 "set it to noeviction, or to one of volatile-*");
  return fine("maxmemory-policy is " + policy + ", which evicts no record");
}

Check of_disk(const std::string& info, const Options& options) {
  if (info_field(info, "aof_enabled") == "1") return fine("appendonly is on: a restart keeps the records");
  if (options.first_claim == FirstClaim::at_once)
    return wrong("appendonly is off, and first_claim is at_once: after a restart two may lead",
                 "set appendonly yes and appendfsync always, or leave out first_claim=at_once");
  return {Check::Is::doubtful, "appendonly is off: after a restart the first leader begins a term later",
          "set appendonly yes, if that is too long"};
}

Check of_replicas(const std::string& info, const Options& options) {
  if (info_field(info, "role") != "master")
    return wrong("the server is a replica, which takes no writes", "name the master, or its Sentinels");
  const auto there = number<int>(info_field(info, "connected_slaves")).value_or(0);
  const auto what = "the server is a master with " + std::to_string(there) + " replica(s)";
  if (there < options.replicas)
    return wrong(what + ", and replicas=" + std::to_string(options.replicas) + " must acknowledge: nobody can lead",
                 "start replicas, or ask for fewer");
  if (there > 0 && options.replicas == 0)
    return {Check::Is::doubtful, what + ", and a write waits for none: one that is promoted may lack the last token",
            "set replicas=1 in the URL, or fence your writes by the token"};
  return fine(what);
}

}  // namespace

Checks checks_of(const std::string& info, const Options& options) {
  return {fine("the server is Redis or Valkey " + printable(info_field(info, "redis_version"), 40)),
          of_replicas(info, options), of_memory(info), of_disk(info, options)};
}

Result<Checks> check_up(const Options& options, const Limit& limit) {
  const auto name = client_name("(doctor)", {});
  Link link(
      {options, Connection::Use::commands, name},
      options.master.empty() ? nullptr : std::make_shared<Sentinels>(options, name), [](const std::string&) {},
      Link::Made::now);
  const auto answer = link.run({&info_script, {}, {}}, {}, limit);
  if (!answer) return answer.error();
  return checks_of(answer->text, options);
}

}  // namespace tenure::redis
