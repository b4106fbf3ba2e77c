// SPDX-License-Identifier: Apache-2.0
// Elections through Redis (6 and newer) or Valkey: alone, replicated, watched by Sentinel, or in a cluster.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>
#include <tenure/redis_export.hpp>

namespace tenure::redis {

struct Address {
  std::string host{};
  int port{6379};
  friend bool operator==(const Address&, const Address&) = default;
};

/// When may the first leader of an election begin, one whose record is not there?
enum class FirstClaim {
  wait,     ///< A term later: the record may have been lost, and its leader lead on. REQUIRES: all candidates have the
            ///< same term, since a newcomer cannot know that of a record that was lost.
  at_once,  ///< REQUIRES: no record is ever lost or deleted (FLUSHALL, eviction, a restart or a fail-over without its
            ///< data). If one is, a candidate that never saw it leads beside its leader until that one's next renewal.
};

/// Where the servers are and how to talk to them. Every candidate of an election must reach the same data.
struct Options {
  std::vector<Address> servers{};  ///< One; several if they are nodes of one cluster, or Sentinels (26379).
  std::string socket{};            ///< A Unix socket's path, instead of `servers`.
  std::string master{};            ///< What the Sentinels in `servers` call the master; empty: no Sentinels.
  std::string user{}, password{};  ///< AUTH; an empty user is Redis' "default", an empty password: no AUTH.
  std::string sentinel_user{}, sentinel_password{};  ///< The same for the Sentinels.
  int db{};                                          ///< SELECT; a cluster has 0 only.
  bool tls{};             ///< Chain and host name are verified. Needs hiredis 1.0 or newer with its TLS part.
  std::string ca_file{};  ///< The authorities to trust; empty: the system's.
  int replicas{};         ///< A write counts only once so many replicas have acknowledged it (WAIT).
  FirstClaim first_claim{FirstClaim::wait};
  std::string prefix{"tenure:"};  ///< An election's key and channel are prefix + "{" + election + "}".
};

/// redis://[user[:password]@]host[:port][,host...][/db]   rediss:// (TLS)   redis+unix:///path/to.sock[?db=0]
/// redis+sentinel://[user[:password]@]host[:port][,host...]/master[/db]
/// with ?replicas=1&first_claim=at_once&prefix=p&ca_file=f&sentinel_user=u&sentinel_password=p, each as the field; %XX
/// anywhere.
/// Throws std::invalid_argument saying what is wrong and what would be right; never with a password in it.
TENURE_REDIS_EXPORT Options from_url(const std::string& url);

/// A backend of the election of that name: one hash, never deleted, never expiring, replaced by a script on condition.
///
/// Redis replicates asynchronously: a fail-over can lose an acknowledged write, also with `replicas`. Candidates that
/// saw the lost record wait for its lease; one that did not may lead at once, and two lead until the first one's next
/// renewal, a term at most. Tokens rise as long as one that saw the last lives, or the new server's clock is past it.
/// So fence your writes. A missing record may be a lost one too: the first leader of an election, and one after a
/// FLUSHALL, leads a term later (see FirstClaim), and a warning says so. Keep `maxmemory-policy` at noeviction, or at
/// one of volatile-*; another is warned of.
///
/// With Sentinels: a master is left once one of them announces another, and before a claim they are asked; the majority
/// counts, of those that answer. What remains: a leader cut off with its master and from every Sentinel that knows
/// better goes on until it hears of the new one, however long that is. So set `replicas` to 1 and run two replicas or
/// more: a master that was cut off then acknowledges nothing, its leader ends with its lease, and after a fail-over the
/// new master still has a replica. (With one replica in all, it has none until the old master serves as one: 10 s.)
///
/// Two connections: one for commands, one for SUBSCRIBE while standing by; two to each Sentinel, and a thread for them.
/// CLIENT LIST names them "tenure:ELECTION:CANDIDATE". Where SUBSCRIBE is refused, a release is noticed at the end of
/// its lease only, and another master a second late. Least privilege (`prefix` left as it is):
///   ACL SETUSER u on >secret ~tenure:* &tenure:* +evalsha +eval +hgetall +hmget +hset +hdel +del +exists +time
///     +publish +subscribe +info [+client|setname] [+select] [+wait with replicas] [+role with Sentinels]
///     [+asking in a cluster]; on the Sentinels &+switch-master +subscribe +sentinel|get-master-addr-by-name
///
/// Throws std::invalid_argument for what can never work. What servers do comes as an Error from the verbs.
TENURE_REDIS_EXPORT std::shared_ptr<Backend> open(const Options& options, const std::string& election,
                                                  Candidate candidate = {}, Log log = {});

/// The store below it, to build upon. Throws as open() does.
TENURE_REDIS_EXPORT std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election,
                                                            Log log = {});

/// Many elections at the price of one: a group of them, kept in three keys of one slot, PREFIX{GROUP}:s (sessions), :e
/// (leads) and :log (what changed; its key is the channel too). Each verb is one script. All that open() says of
/// losses, replicas, Sentinels and `maxmemory-policy` holds here.
///
/// A group that is lost, or one of its hashes, is founded anew: every session is refused then, and the elections have
/// leaders a term later. While the Sentinels do not answer, a session goes on and claims nothing. 500 000 elections are
/// the most that can be read. While a cluster moves the slot, calls may fail.
///
/// Two connections, one of them for SUBSCRIBE. With Sentinels, each has those of its own. To the ACL above add
///   +hget +hexists +hvals +xadd +xrange +xrevrange +xlen
/// Throws as open() does.
TENURE_REDIS_EXPORT std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group,
                                                           Log log = {});

/// By URL; `properties` are its query's names. Throws as from_url() and open().
TENURE_REDIS_EXPORT Opened open_url(const Opening& opening);

/// Terms of 3, 10 and 30 s: lock_table_presets().
TENURE_REDIS_EXPORT Presets presets();

}  // namespace tenure::redis
