// SPDX-License-Identifier: Apache-2.0
// Elections through Redis (6 and newer) or Valkey: one server, one with replicas or Sentinels, or a cluster.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/check.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/credentials.hpp>
#include <tenure/election_list.hpp>
#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>
#include <tenure/redis_export.hpp>

namespace tenure::redis {

/// Where a server listens.
struct Address {
  std::string host{};
  int port{6379};
  friend bool operator==(const Address&, const Address&) = default;
};

/// When the first leader may begin where an election has no record.
enum class FirstClaim {
  /// It begins a term later, because the record may have been lost while its leader leads on. REQUIRES: all candidates
  /// have the same term. A newcomer cannot know the term of a record that was lost.
  wait,
  /// It begins at once. REQUIRES: no record is ever lost or deleted, as by FLUSHALL, by eviction, or by a restart or a
  /// fail-over without its data. If one is, a candidate that never saw it leads beside its leader, until that leader's
  /// next renewal.
  at_once,
};

/// Where the servers are and how to talk to them. REQUIRES: every candidate of an election reaches the same data.
struct Options {
  std::vector<Address> servers{};  ///< These are one server, nodes of one cluster, or all Sentinels (port 26379).
  std::string socket{};            ///< A Unix socket's path, in place of `servers`.
  std::string master{};  ///< What the Sentinels in `servers` call the master. If empty, they are no Sentinels.
  std::string user{}, password{};  ///< AUTH sends them, if there is a password. No user is Redis' "default".
  AskCredentials credentials{};    ///< It replaces these two, and is called before each connection is made.
  std::string sentinel_user{}, sentinel_password{};  ///< The same two for the Sentinels.
  AskCredentials sentinel_credentials{};             ///< It replaces these two, in the same way.
  int db{};                                          ///< The database's number. A cluster has only 0.
  bool tls{};             ///< Uses TLS, and verifies chain and host name. Needs hiredis 1.0 or newer with its TLS part.
  std::string ca_file{};  ///< The authorities to trust, read for each connection. If empty, they are the system's.
  int replicas{};         ///< How many replicas must have acknowledged a write before it counts (WAIT).
  FirstClaim first_claim{FirstClaim::wait};
  std::string prefix{"tenure:"};  ///< An election's key and channel are prefix + "{" + election + "}".
};

/// Reads Options from a URL of one of these forms:
///   redis://[user[:password]@]host[:port][,host...][/db]   rediss:// (TLS)   redis+unix:///path/to.sock[?db=0]
///   redis+sentinel://[user[:password]@]host[:port][,host...]/master[/db]
/// A query may follow: ?replicas=1&first_claim=at_once&prefix=p&ca_file=f&sentinel_user=u&sentinel_password=p. Each
/// name means the field of Options. sentinel_password_file=f names a file that is read at each login to a Sentinel.
/// %XX may stand anywhere. Throws std::invalid_argument, which tells what is wrong, what would be right, and no secret.
TENURE_REDIS_EXPORT Options from_url(const std::string& url);

/// Returns a backend of the election of that name, for one LeaderManager or one Observer. The election is one hash,
/// which is never deleted and never expires. A script replaces it on condition.
///
/// Lost writes: Redis replicates asynchronously, so a fail-over can lose an acknowledged write, even with `replicas`.
/// Candidates that saw the lost record wait for its lease. A candidate that did not may lead at once. Then two lead
/// until the first leader's next renewal, for a term at most. Tokens rise if a candidate lives that saw the last one,
/// or if the new server's clock is past it. So fence your writes.
///
/// No record: a missing record may be a lost one. So the first leader of an election begins a term late. So does the
/// first leader after a FLUSHALL; a warning says so. See FirstClaim. Set `maxmemory-policy` to noeviction or to one of
/// volatile-*. A warning names any other.
///
/// Sentinels: a candidate leaves a master once one of them announces another. Before a claim it asks them: half of all
/// that they know must name that master, and the majority of those that answer. One danger remains: a leader that is
/// cut off with its master from every Sentinel that knows better leads on until it hears of the new master. So set
/// `replicas` to 1 and run two replicas or more. A master that is cut off without them acknowledges nothing, and its
/// leader ends with its lease. With one replica in all, a new master has none until the old one becomes it, some 10 s.
///
/// What it costs: it has one connection for commands, and as a follower a second one for SUBSCRIBE. With Sentinels it
/// has two more to each of them, and a thread for each. CLIENT LIST shows them as "tenure:ELECTION:CANDIDATE".
///
/// Rights for the default `prefix`. Who may not SUBSCRIBE notices a release at a lease's end, a new master 1 s late.
///   ACL SETUSER u on >secret ~tenure:* &tenure:* +evalsha +eval +hgetall +hmget +hset +hdel +del +exists +time
///     +publish +subscribe +info [+client|setname] [+select] [+wait with replicas] [+role with Sentinels]
///     [+asking in a cluster]; on the Sentinels &+switch-master +subscribe +sentinel|master
///     +sentinel|get-master-addr-by-name
///
/// Throws std::invalid_argument for what can never work. The verbs return as an Error what is wrong at the servers.
TENURE_REDIS_EXPORT std::shared_ptr<Backend> open(const Options& options, const std::string& election,
                                                  Candidate candidate = {}, Log log = {});

/// Returns the store on which such a backend is built, for backends of your own. Throws as open() does.
TENURE_REDIS_EXPORT std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election,
                                                            Log log = {});

/// Opens a group: many elections at the price of one. It has three keys in one slot, PREFIX{GROUP}:s (sessions), :e
/// (leads) and :log (what changed; its key is the channel too). Each verb is one script; to read all leads
/// takes many short ones. What open() says of losses, replicas, Sentinels and `maxmemory-policy` holds here.
///
/// A group that is lost, or one of its hashes, is founded anew: every session is refused then, and the elections have
/// leaders a term later. While the Sentinels do not answer, a session goes on and claims nothing. 500 000 elections are
/// the most that can be read. While a cluster moves the slot, calls may fail.
///
/// Two connections, one for SUBSCRIBE; with Sentinels each has its own, and threads. Throws as open(). To that ACL
/// add +hget +hexists +hscan +xadd +xrange +xrevrange +xlen. A GroupObserver needs no +hset +hdel +del +exists +xadd.
TENURE_REDIS_EXPORT std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group,
                                                           Log log = {});

/// By URL; `properties` are its query's names. They throw as from_url() and open(). A list needs +scan and +type.
TENURE_REDIS_EXPORT Opened open_url(const Opening& opening);
TENURE_REDIS_EXPORT OpenedGroup open_group_url(const Opening& opening);                    ///< For open_group().
TENURE_REDIS_EXPORT ElectionList list_url(const Opening& opening);                         ///< For list_elections().
TENURE_REDIS_EXPORT Result<Checks> check_url(const Opening& opening, const Limit& limit);  ///< For check_up().

/// The terms are 3, 10 and 30 s: see lock_table_presets().
TENURE_REDIS_EXPORT Presets presets();

}  // namespace tenure::redis
