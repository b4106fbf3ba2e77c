// SPDX-License-Identifier: Apache-2.0
// The broker under test, used from outside the library: topics, rights, who is in a group, and how to expel a member.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tenure::kafka::test {

/// TENURE_KAFKA_BROKERS; empty if there is none.
std::string real_brokers();

/// Of "host:port".
int port_of(const std::string& brokers);

/// A name that no other test and no other run uses.
std::string unique_name(const std::string& stem);

/// Throws std::runtime_error.
void create_topic(const std::string& brokers, const std::string& topic, int partitions);
void grow_topic(const std::string& brokers, const std::string& topic, int partitions);  ///< To so many.

enum class Resource { topic, group };
enum class Right { read, create };

/// A right of a principal ("User:name") at a broker that has an authorizer. Throws std::runtime_error.
void create_acl(const std::string& brokers, const std::string& principal, Resource resource, const std::string& name,
                Right right);

/// How many partitions it has; 0 if there is no such topic.
int partitions(const std::string& brokers, const std::string& topic);

struct Member {
  std::string id, client_id;
};
std::vector<Member> members(const std::string& brokers, const std::string& group);

/// Writes what a reset of the offsets writes. REQUIRES: the group has no members. Throws std::runtime_error.
void write_offset(const std::string& brokers, const std::string& group, const std::string& topic, int partition,
                  std::int64_t offset);

/// Does what `kafka-consumer-groups --delete-offsets` does. REQUIRES: the group has no members.
/// Throws std::runtime_error.
void delete_offset(const std::string& brokers, const std::string& group, const std::string& topic, int partition);

/// Deletes a group. REQUIRES: it has no members. Throws std::runtime_error.
void delete_group(const std::string& brokers, const std::string& group);

/// A consumer that does not belong in the group. It uses range, as most clients do by default, and a name of its own.
class Stranger {
 public:
  Stranger(const std::string& brokers, const std::string& group, const std::string& topic,
           const std::string& client_id);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  bool assigned() const;
  bool owns(int partition) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

/// LeaveGroup in the name of a member, as a broker takes it from anybody. Returns the broker's error code.
int expel(const std::string& brokers, const std::string& group, const std::string& member_id);

}  // namespace tenure::kafka::test
