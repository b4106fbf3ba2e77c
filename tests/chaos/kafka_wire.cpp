// SPDX-License-Identifier: Apache-2.0
// Encodes requests and decodes answers of Kafka's protocol.
#include "kafka_wire.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <system_error>

#include "relay.hpp"

namespace tenure::test {
namespace {

constexpr int metadata = 3, find_coordinator = 10, describe_groups = 15, describe_quorum = 55,
              consumer_group_heartbeat = 68;

std::string number(std::int64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string text(const std::string& value) { return number(static_cast<std::int64_t>(value.size()), 2) + value; }

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  std::int64_t number(std::size_t bytes) {
    std::int64_t out = static_cast<signed char>(take(1)[0]);
    for (std::size_t i = 1; i < bytes; ++i) out = out << 8 | static_cast<unsigned char>(take(1)[0]);
    return out;
  }
  int int16() { return static_cast<int>(number(2)); }
  int int32() { return static_cast<int>(number(4)); }
  std::string text() { return sized(int16()); }
  std::string blob() { return sized(int32()); }
  /// Of an array or a string in the newer encoding.
  std::size_t compact_size() {
    const auto size = number(1);
    if (size < 1) throw std::runtime_error("kafka: a size that is not understood");
    return static_cast<std::size_t>(size - 1);
  }
  std::string take(std::size_t size) {
    if (bytes_.size() - at_ < size) throw std::runtime_error("kafka: an answer that is too short");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  void no_error(const char* of) {
    if (const auto code = int16())
      throw std::runtime_error(std::string("kafka: ") + of + ": error " + std::to_string(code));
  }

 private:
  std::string sized(int size) { return size < 0 ? std::string() : take(static_cast<std::size_t>(size)); }

  std::string bytes_;
  std::size_t at_{};
};

std::vector<int> assigned_in(const std::string& assignment) {
  std::vector<int> out;
  if (assignment.empty()) return out;
  Reader in(assignment);
  in.int16();
  for (auto topics = in.int32(); topics > 0; --topics) {
    in.text();
    for (auto n = in.int32(); n > 0; --n) out.push_back(in.int32());
  }
  return out;
}

}  // namespace

KafkaWire::KafkaWire(const std::string& broker) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval patience{5, 0};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) ::setsockopt(fd_, SOL_SOCKET, option, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(broker.substr(broker.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
  const auto why = errno;
  ::close(fd_);
  throw std::system_error(why, std::generic_category(), "kafka at " + broker);
}

KafkaWire::~KafkaWire() { ::close(fd_); }

std::string KafkaWire::ask(int api, int version, const std::string& body) {
  const auto request = number(api, 2) + number(version, 2) + number(++correlation_, 4) + text("tenure.test") + body;
  const auto framed = number(static_cast<std::int64_t>(request.size()), 4) + request;
  if (::send(fd_, framed.data(), framed.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(framed.size()))
    throw std::runtime_error("kafka: the broker takes no request");
  const auto receive = [&](std::size_t size) {
    std::string out(size, '\0');
    if (::recv(fd_, out.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size))
      throw std::runtime_error("kafka: no answer to api " + std::to_string(api));
    return out;
  };
  auto answer = receive(static_cast<std::size_t>(Reader(receive(4)).int32()));
  if (Reader(answer).int32() != correlation_) throw std::runtime_error("kafka: the answer to another question");
  return answer.substr(4);
}

int KafkaWire::coordinator_of(const std::string& group) {
  Reader in(ask(find_coordinator, 0, text(group)));
  in.no_error("FindCoordinator");
  return in.int32();
}

std::vector<KafkaWire::Member> KafkaWire::members_of(const std::string& group) {
  Reader in(ask(describe_groups, 0, number(1, 4) + text(group)));
  in.int32();
  in.no_error("DescribeGroups");
  for (int i = 0; i < 4; ++i) in.text();  // group, state, protocol type, protocol
  std::vector<Member> out;
  for (auto n = in.int32(); n > 0; --n) {
    auto& member = out.emplace_back();
    member.id = in.text();
    member.client_id = in.text();
    in.text();  // host
    in.blob();  // subscription
    member.partitions = assigned_in(in.blob());
  }
  return out;
}

void KafkaWire::leave(const std::string& group, const std::string& member) {
  Reader(ask(leave_group, 0, text(group) + text(member))).no_error("LeaveGroup");
}

bool KafkaWire::join_by_new_protocol(const std::string& group, const std::string& topic) {
  static const std::string tags(1, '\0'), null(1, '\0'), none(1, '\1'), one(1, '\2');
  const auto name = [](const std::string& value) {
    return number(static_cast<std::int64_t>(value.size()) + 1, 1) + value;
  };
  const auto epoch = number(0, 4), rebalance_ms = number(6000, 4);
  Reader in(
      ask(consumer_group_heartbeat, 0,
          tags + name(group) + name("") + epoch + null + null + rebalance_ms + one + name(topic) + null + none + tags));
  in.take(tags.size());
  in.int32();  // the throttle time
  constexpr int unsupported_version = 35;
  const auto error = in.int16();
  if (error && error != unsupported_version)
    throw std::runtime_error("kafka: ConsumerGroupHeartbeat: error " + std::to_string(error));
  return !error;
}

int KafkaWire::controller() {
  // Has only the newer encoding: sizes are one greater, everything ends with a count of tagged fields.
  static const std::string topic = "__cluster_metadata", tags(1, '\0'), one(1, '\2');
  const auto name = number(static_cast<std::int64_t>(topic.size()) + 1, 1) + topic;
  Reader in(ask(describe_quorum, 0, tags + one + name + one + number(0, 4) + tags + tags + tags));
  in.take(1);  // tags of the header
  in.no_error("DescribeQuorum");
  in.compact_size();
  in.take(in.compact_size());  // topic
  in.compact_size();
  in.int32();  // partition
  in.no_error("DescribeQuorum");
  return in.int32();
}

int KafkaWire::lagging(const std::string& topic, std::size_t replicas) {
  Reader in(ask(metadata, 1, number(1, 4) + text(topic)));
  for (auto brokers = in.int32(); brokers > 0; --brokers) {
    in.int32();
    in.text();
    in.int32();
    in.text();  // rack
  }
  in.int32();  // controller: with KRaft it is any broker
  in.int32();
  in.no_error("Metadata");
  in.text();
  in.take(1);  // internal?
  int out = 0;
  for (auto partitions = in.int32(); partitions > 0; --partitions) {
    in.take(2 + 4 + 4);  // error, partition, leader
    for (auto n = in.int32(); n > 0; --n) in.int32();
    const auto in_sync = in.int32();
    in.take(4 * static_cast<std::size_t>(in_sync));
    if (static_cast<std::size_t>(in_sync) < replicas) ++out;
  }
  return out;
}

}  // namespace tenure::test
