// SPDX-License-Identifier: Apache-2.0
// Asks each member, and judges what it says.
#include "checkup.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/kit/text.hpp>

#include "connection.hpp"

namespace tenure::etcd {
namespace {

constexpr double nearly_full = 0.8;

std::string told(const Error& error) { return printable(error.message, 1000); }

// ---- versions ----

/// Releases that lose acknowledged writes if they are killed under load.
bool loses_writes(const std::string& version) { return version == "3.5.0" || version == "3.5.1" || version == "3.5.2"; }

/// Those that lose them also at other times, if their member is alone: it answers before its log is on disk.
bool loses_writes_alone(const std::string& version) {
  const bool of_34 = version.starts_with("3.4."), of_35 = version.starts_with("3.5.");
  if (!of_34 && !of_35) return false;
  return number<int>(version.substr(4)).value_or(0) <= (of_34 ? 20 : 4);
}

bool too_old(const std::string& version) {
  const auto dot = version.find('.');
  const auto major = number<int>(version.substr(0, dot));
  const auto minor =
      dot == version.npos ? std::nullopt : number<int>(version.substr(dot + 1, version.find('.', dot + 1) - dot - 1));
  return !major || !minor || std::pair(*major, *minor) < std::pair(3, 4);
}

Check of_versions(const std::vector<MemberSaid>& members, bool alone) {
  std::set<std::string> versions;
  for (const auto& member : members)
    if (member.status) versions.insert(printable(text_at(*member.status, "/version"), 40));
  if (versions.empty()) return Check::doubtful("no member tells its version", "see what is said of each member");
  std::string all;
  for (const auto& version : versions) all += (all.empty() ? "" : ", ") + version;
  if (std::any_of(versions.begin(), versions.end(), too_old))
    return Check::wrong("etcd " + all + " is too old", "upgrade the members to 3.4 or newer");
  if (alone && std::any_of(versions.begin(), versions.end(), loses_writes_alone))
    return Check::wrong("etcd " + all + " may lose who leads if its only member crashes",
                        "upgrade it to 3.4.21, 3.5.5 or newer, or run three members");
  if (std::any_of(versions.begin(), versions.end(), loses_writes))
    return Check::wrong("etcd " + all + " may lose who leads if a member is killed under load",
                        "upgrade the members to 3.5.3 or newer");
  if (versions.size() > 1)
    return Check::doubtful("the members are of several releases: etcd " + all, "finish the upgrade");
  return Check::fine("the server is etcd " + all);
}

// ---- members ----

std::size_t voters_of(const Json& list) {
  const auto members = objects_at(list, "/members");
  const auto learners = std::count_if(members.begin(), members.end(), [](const Json& member) {
    const auto learner = member.find("isLearner");
    return learner != member.end() && *learner == true;
  });
  return members.size() - static_cast<std::size_t>(learners);
}

Check of_cluster(const Result<Json>& list, const Options& options) {
  if (!list) return Check::doubtful("the cluster does not tell its members: " + told(list.error()), "ask as root");
  const auto voters = voters_of(*list);
  const auto may_fail = voters == 0 ? 0 : (voters - 1) / 2;
  const auto what = "the cluster has " + std::to_string(voters) + " member(s) that vote and a leader, so that " +
                    std::to_string(may_fail) + " may fail";
  if (may_fail == 0) return Check::doubtful(what, "run three members, so that one may fail");
  if (options.servers.size() == 1)
    return Check::doubtful(what + "; but the URL names one of them: without that one, this candidate cannot lead",
                           "name all in the URL, unless the name is that of a load balancer");
  return Check::fine(what);
}

/// Since 3.5.28 and 3.6.0 it may tell its state to nobody but root, and serve all the same.
void add_silent_members(Checks& out, const std::vector<MemberSaid>& members) {
  for (const auto& member : members) {
    if (member.status) continue;
    const auto why = told(member.status.error());
    out.push_back(
        member.status.error().fault == Fault::forbidden
            ? Check::doubtful(member.name + " does not tell its state: " + why, "ask as root")
            : Check::doubtful(member.name + " serves no candidate: " + why, "mend it, or leave it out of the URL"));
  }
}

void add_alarms(Checks& out, const Result<Json>& alarms) {
  if (!alarms) {
    out.push_back(
        Check::doubtful("the cluster does not tell its alarms: " + told(alarms.error()), "etcdctl alarm list"));
    return;
  }
  std::set<std::string> names;
  for (const auto& alarm : objects_at(*alarms, "/alarms")) names.insert(text_at(alarm, "/alarm"));
  for (const auto& name : names)
    out.push_back(name == "NOSPACE"
                      ? Check::wrong("the alarm NOSPACE is raised: the members refuse every write, so nobody can lead",
                                     "etcdctl compact, then etcdctl defrag, then etcdctl alarm disarm; and set "
                                     "--auto-compaction-retention")
                      : Check::wrong("the alarm " + printable(name, 40) + " is raised",
                                     "see etcdctl alarm list, and etcd's page on recovery"));
  if (names.empty()) out.push_back(Check::fine("no alarm is raised"));
}

// ---- space ----

/// etcd tells it in its status from 3.6 on.
std::optional<double> quota_of(const MemberSaid& member) {
  if (const auto quota = number<std::uint64_t>(text_at(*member.status, "/dbSizeQuota")); quota && *quota > 0)
    return static_cast<double>(*quota);
  constexpr std::string_view name = "\netcd_server_quota_backend_bytes ";
  if (!member.metrics) return std::nullopt;
  const auto at = member.metrics->find(name);
  double quota = 0;
  if (at == member.metrics->npos) return std::nullopt;
  const auto* const end = member.metrics->data() + member.metrics->size();
  const auto read = std::from_chars(member.metrics->data() + at + name.size(), end, quota);
  return read.ec == std::errc() && quota > 0 && quota < 1e18 ? std::optional(quota) : std::nullopt;
}

std::string mebibytes(double bytes) {
  return std::to_string(static_cast<std::uint64_t>(std::ceil(bytes / (1 << 20)))) + " MiB";
}

/// Judges the fullest member.
Check of_space(const std::vector<MemberSaid>& members) {
  std::optional<std::pair<double, std::string>> fullest;
  for (const auto& member : members) {
    if (!member.status) continue;
    const auto size = number<std::uint64_t>(text_at(*member.status, "/dbSize"));
    const auto quota = quota_of(member);
    if (!size || !quota) continue;
    const auto used = static_cast<double>(*size);
    fullest = std::max(fullest, std::optional(std::pair(used / *quota, member.name + " has filled " + mebibytes(used) +
                                                                           " of its quota of " + mebibytes(*quota))));
  }
  if (!fullest)
    return Check::doubtful("no member tells its quota, beyond which every write is refused",
                           "watch etcd_mvcc_db_total_size_in_bytes");
  if (fullest->first < nearly_full) return Check::fine(fullest->second);
  return Check::doubtful(fullest->second + ", beyond which every write is refused",
                         "etcdctl compact, then etcdctl defrag; set --auto-compaction-retention, or a greater "
                         "--quota-backend-bytes");
}

// ---- rights ----

Check of_authentication(const ClusterSaid& said, const Options& options) {
  if (said.logged_in)
    return Check::fine("authentication is on, and " +
                       (options.user.empty() ? "we are logged in" : "our user is " + printable(options.user)));
  if (!options.user.empty())
    return Check::doubtful("authentication is off, so that nobody looks at user and password",
                           "leave them out, or: etcdctl auth enable");
  if (!said.read) return Check::wrong("the user may not read: " + told(said.read.error()), "ask as a user of etcd");
  return Check::fine("authentication is off: whoever reaches the members may write the records");
}

Check of_rights(const ClusterSaid& said, const Options& options) {
  if (said.read && said.write) return Check::fine("we may read and write the keys below " + printable(options.prefix));
  const auto grant = "etcdctl role grant-permission ROLE --prefix=true readwrite " + printable(options.prefix);
  if (!said.read) return Check::wrong("we may not read the election's keys: " + told(said.read.error()), grant);
  if (said.write.error().fault == Fault::forbidden)
    return Check::wrong("we may read the election's keys, but not write them",
                        grant + "; one who only observes needs read alone");
  return Check::wrong("a write would be refused: " + told(said.write.error()), "mend what it says");
}

// ---- asking ----

/// Asks on a connection of its own, which ends with it.
template <class Ask>
auto on_connection(const Options& options, const Limit& limit, Ask ask) {
  const auto connection = std::make_shared<Connection>(options);
  return CallThread(connection)
      .ask([connection, ask = std::move(ask), until = Until(limit)](auto&) { return ask(*connection, until); }, limit);
}

MemberSaid ask_member(Options options, const Address& member, const Limit& limit) {
  options.servers = {member};
  struct Both {
    Result<Json> status;
    Result<std::string> metrics;
  };
  const auto both = on_connection(options, limit, [](Connection& at, const Until& until) -> Result<Both> {
    auto status = at.ask("/v3/maintenance/status", Json::object(), until);
    if (!status && status.error().fault != Fault::forbidden) return std::move(status).error();
    return Both{std::move(status), at.text("/metrics", until)};
  });
  MemberSaid out{.name = "the member " + to_string(member), .status = {}, .metrics = {}};
  if (both) {
    out.status = both->status;
    out.metrics = both->metrics;
  } else {
    out.status = both.error();
  }
  return out;
}

/// The answer of one member, from a thread of its own. Unlike std::async's, that takes none of the program's signals.
class AskedMember {
 public:
  AskedMember(const Options& options, const Address& member, const Limit& limit) {
    std::packaged_task<MemberSaid()> task([&] { return ask_member(options, member, limit); });
    answer_ = task.get_future();
    thread_ = start_thread("tenure-etcd", std::move(task));
  }
  ~AskedMember() { thread_.join(); }
  AskedMember(const AskedMember&) = delete;
  AskedMember& operator=(const AskedMember&) = delete;

  MemberSaid get() { return answer_.get(); }

 private:
  std::future<MemberSaid> answer_;
  std::thread thread_;
};

/// No key has a version below 0, so that the write is examined and refused, but never done.
Json futile_write(const Keys& keys) {
  const Json never{{"target", "VERSION"}, {"result", "LESS"}, {"key", base64(keys.record)}, {"version", "0"}};
  return transaction({never}, {put(keys.record, ""), put(keys.news, ""), put(keys.step_down, "")}, {});
}

Result<ClusterSaid> ask_cluster(const Options& options, const Keys& keys, const Limit& limit) {
  return on_connection(options, limit, [keys](Connection& at, const Until& until) -> Result<ClusterSaid> {
    ClusterSaid out;
    const auto look = transaction({}, {range(keys.record), range(keys.step_down), range(keys.news)}, {});
    out.read = at.ask("/v3/kv/txn", look, until);
    if (!out.read && out.read.error().fault == Fault::unreachable) return out.read.error();
    out.logged_in = at.logged_in();
    out.write = at.ask("/v3/kv/txn", futile_write(keys), until);
    out.list = at.ask("/v3/cluster/member/list", Json::object(), until);
    out.alarms = at.ask("/v3/maintenance/alarm", {{"action", "GET"}}, until);
    return out;
  });
}

}  // namespace

Checks checks_of(const ClusterSaid& said, const Options& options) {
  const bool alone = said.list && voters_of(*said.list) == 1;
  Checks out{of_versions(said.members, alone), of_cluster(said.list, options)};
  add_silent_members(out, said.members);
  add_alarms(out, said.alarms);
  out.push_back(of_space(said.members));
  out.push_back(of_authentication(said, options));
  out.push_back(of_rights(said, options));
  return out;
}

/// All are asked at once, so that a member that hangs costs the others nothing.
Result<Checks> check_up(const Options& options, const std::string& election, const Limit& limit) {
  const auto keys = keys_of(checked(options), election);
  std::list<AskedMember> asked;
  for (const auto& member : options.servers) asked.emplace_back(options, member, limit);
  auto said = ask_cluster(options, keys, limit);
  for (auto& member : asked) {
    auto answer = member.get();
    if (said) said->members.push_back(std::move(answer));
  }
  if (!said) return std::move(said).error();
  return checks_of(*said, options);
}

}  // namespace tenure::etcd
