// SPDX-License-Identifier: Apache-2.0
// Any store by its URL, so that one string changes the store.
//
//   memory:name                                    this process alone; for tests             <tenure/memory.hpp>
//   file:///directory                              the processes of this host                <tenure/file.hpp>
//   kafka://host:port,host:port/topic              an Apache Kafka cluster                   <tenure/kafka.hpp>
//   postgres://..., postgresql://...               libpq's own URI, handed on untouched      <tenure/postgres.hpp>
//   redis://, rediss://, redis+unix://,            Redis or Valkey                           <tenure/redis.hpp>
//   redis+sentinel://
//   etcd://host:port,host:port, etcds://           etcd                                    <tenure/etcd.hpp>
//   s3://bucket/prefix?region=..., gs://..., az://...  a bucket of S3 or its like, of Google   <tenure/object.hpp>
//                                                  Cloud Storage, or of Azure
//
// The store's own header says what else a URL may have, and which properties there are.
#pragma once
#include <memory>
#include <string_view>

#include <tenure/check.hpp>
#include <tenure/election_list.hpp>
#include <tenure/open.hpp>
#include <tenure/stores_export.hpp>

namespace tenure {

/// Opens a backend of an election, and returns it with the timings that suit its store. Any thread may call it.
///
/// It connects to nothing yet: if the store is unreachable, the backend's verbs say so.
/// Throws std::invalid_argument if the scheme is unknown (the message names a similar one, and all), if the store was
/// left out of this build (it names the option that builds it), and if the store refuses the URL or a property. No
/// message has a user, a password or a property's value in it.
TENURE_STORES_EXPORT Opened open(const Opening& opening);

/// Does the same with these fields of an Opening, and without user or property.
TENURE_STORES_EXPORT Opened open(std::string_view url, std::string_view election, Candidate candidate = {},
                                 Log log = {});

/// Opens a group of many elections, for Elections. `election` is the group's name. Throws as open(), and if the store
/// keeps no groups, as files, etcd and buckets do not.
TENURE_STORES_EXPORT OpenedGroup open_many(const Opening& opening);
/// Does the same with these fields of an Opening.
TENURE_STORES_EXPORT OpenedGroup open_many(std::string_view url, std::string_view group, Log log = {});

/// The elections of the store that the URL names; `election` and `candidate` do not count. PostgreSQL lists its table,
/// Redis the keys of a server that is no cluster, etcd those below its prefix, and the file store a directory. Throws
/// as open(), and if the store cannot list: over Kafka each election is a consumer group of its own, and memory is
/// another one in each process. Buckets cannot, either.
TENURE_STORES_EXPORT ElectionList list_elections(const Opening& opening);

/// Examines what the server's settings and our rights mean for elections, over Kafka, PostgreSQL, Redis, etcd and a
/// bucket. For another store it returns nothing. Throws as open().
TENURE_STORES_EXPORT Result<Checks> check_up(const Opening& opening, const Limit& limit);

}  // namespace tenure
