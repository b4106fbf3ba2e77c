// SPDX-License-Identifier: Apache-2.0
// Kafka's protocol spoken by hand, for what tests do behind a candidate's back: put a member out of its group, find
// coordinator and controller. In request versions that brokers 3.9 and 4.1 both know.
#pragma once
#include <string>
#include <vector>

namespace tenure::test {

/// A connection to one broker; one thread. Every verb throws std::runtime_error if there is no answer within 5 s, or an
/// error as the answer.
class KafkaWire {
 public:
  /// "host:port", on loopback.
  explicit KafkaWire(const std::string& broker);
  ~KafkaWire();
  KafkaWire(const KafkaWire&) = delete;
  KafkaWire& operator=(const KafkaWire&) = delete;

  struct Member {
    std::string id, client_id;
    std::vector<int> partitions;  ///< assigned to it
  };

  /// Of the broker that coordinates the group.
  int coordinator_of(const std::string& group);
  /// REQUIRES: this broker coordinates the group.
  std::vector<Member> members_of(const std::string& group);
  /// REQUIRES: this broker coordinates the group. Nobody asks whose connection this is.
  void leave(const std::string& group, const std::string& member);
  /// A consumer of group.protocol=consumer joins, and is a member for a session. Returns false if the broker knows no
  /// such protocol. REQUIRES: this broker coordinates the group. Names are shorter than 127 bytes.
  bool join_by_new_protocol(const std::string& group, const std::string& topic);

  /// Of the active controller.
  int controller();
  /// How many partitions of the topic have fewer than `replicas` in sync.
  int lagging(const std::string& topic, std::size_t replicas);

 private:
  std::string ask(int api, int version, const std::string& body);

  int fd_{-1}, correlation_{};
};

}  // namespace tenure::test
