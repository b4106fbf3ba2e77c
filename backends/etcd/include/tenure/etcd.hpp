// SPDX-License-Identifier: Apache-2.0
// Elections through etcd 3.4 and newer, by its JSON gateway, which every member serves beside gRPC.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/check.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/credentials.hpp>
#include <tenure/election_list.hpp>
#include <tenure/etcd_export.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>

namespace tenure::etcd {

/// Where one member serves its clients.
struct Address {
  std::string host{};
  int port{2379};
  friend bool operator==(const Address&, const Address&) = default;
};

/// Where the members are and how to talk to them. REQUIRES: every candidate of an election reaches the same cluster.
struct Options {
  std::vector<Address> servers{};  ///< Members of one cluster. Name all, so that one can fail.
  std::string user{};              ///< The user of etcd's own authentication. If empty, nobody logs in.
  std::string password{};
  AskCredentials credentials{};   ///< It replaces these two, and is called before each login.
  bool tls{};                     ///< Uses TLS 1.2 or newer, and verifies chain and host name.
  std::string ca_file{};          ///< The authorities to trust, in PEM. If empty, they are the system's.
  std::string cert_file{};        ///< Our own certificate, where the members demand one (--client-cert-auth). PEM.
  std::string key_file{};         ///< Its key, without a passphrase. These files are read for each connection.
  std::string prefix{"tenure/"};  ///< All keys begin with it.
};

/// Reads Options from a URL:
///   etcd://[user:password@]host[:port][,host...]   etcds:// (TLS)
/// A query may follow: ?prefix=p&ca_file=f&cert_file=f&key_file=f. Each name means the field of Options. %XX may stand
/// anywhere. Throws std::invalid_argument, which says what is wrong and what would be right. No password is in it.
TENURE_ETCD_EXPORT Options from_url(const std::string& url);

/// Returns a backend of the election of that name, for one LeaderManager or one Observer.
///
/// The election has a key PREFIX + "record/" + ELECTION, which is never deleted and has no lease of etcd. Its value is
/// JSON that begins with {"token":N, so that your own transactions can compare it (tenure/fence/etcd.hpp). One
/// transaction replaces it, if it still has the very value that was read. All reads are linearizable. So a member that
/// is cut off from its cluster elects nobody, and no clock of a member counts.
///
/// Followers watch PREFIX + "news/" + ELECTION, which is written with a claim and a release. PREFIX + "step_down/" +
/// ELECTION has the last request to step down.
///
/// Members: one of them is asked, the first that answers. Another one is tried if it is out of reach, has no leader or
/// is a learner, or has not answered two calls in a row. What was under way at a broken connection may have happened.
/// It is not repeated. No HTTP proxy is used.
///
/// Lost data: etcd loses no acknowledged write, so the first leader of an election begins at once. Deleting the key, or
/// restoring a snapshot, loses the record all the same. Candidates that saw it wait for its lease. A candidate that did
/// not may lead at once, beside the old leader, until the old leader's next renewal. So stop the candidates before you
/// restore.
/// Tokens rise if a candidate lives that saw the last one, or if the clock of the next leader's host is past it.
///
/// Authentication: etcd's tokens expire. Then we log in again, once per call. The gateway does not take a certificate's
/// CN for a user. Rights, where authentication is on:
///   etcdctl role grant-permission elector --prefix=true readwrite tenure/
/// An observer needs `read`.
///
/// What it costs: one connection, and as a follower a second one for the watch. A renewal is one transaction. It adds a
/// revision, so let etcd compact by itself: --auto-compaction-retention.
///
/// Throws std::invalid_argument for what can never work. The verbs return as an Error what is wrong at the members.
TENURE_ETCD_EXPORT std::shared_ptr<Backend> open(const Options& options, const std::string& election,
                                                 Candidate candidate = {}, Log log = {});

/// Returns the store on which such a backend is built, for backends of your own. Throws as open() does.
TENURE_ETCD_EXPORT std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election,
                                                           Log log = {});

/// Opens a backend by URL; `properties` are its query's names. Throws as from_url() and open().
TENURE_ETCD_EXPORT Opened open_url(const Opening& opening);
/// The elections, in the order of their names, for list_elections(). It needs the right to read all of PREFIX +
/// "record/".
TENURE_ETCD_EXPORT ElectionList list_url(const Opening& opening);
TENURE_ETCD_EXPORT Result<Checks> check_url(const Opening& opening, const Limit& limit);  ///< For check_up().

/// The terms are 3, 10 and 30 s: see lock_table_presets().
TENURE_ETCD_EXPORT Presets presets();

}  // namespace tenure::etcd
