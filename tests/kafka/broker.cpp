// SPDX-License-Identifier: Apache-2.0
// Administration of a broker by librdkafka, and by requests written by hand.
#include "broker.hpp"

#include <arpa/inet.h>
#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <tenure/clock.hpp>

#include "eventually.hpp"

namespace tenure::kafka::test {
namespace {

using Handle = std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)>;

Handle handle(const std::string& brokers, const std::string& group = {}, const std::string& client_id = "test") {
  char why[512] = "";
  auto* conf = rd_kafka_conf_new();
  const auto set = [&](const char* name, const std::string& value) {
    if (rd_kafka_conf_set(conf, name, value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(why);
  };
  set("bootstrap.servers", brokers);
  set("client.id", client_id);
  if (!group.empty()) {
    set("group.id", group);
    set("partition.assignment.strategy", "range");
    set("session.timeout.ms", "6000");
  }
  auto* rk = rd_kafka_new(group.empty() ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, why, sizeof why);
  if (!rk) throw std::runtime_error(why);
  return {rk, &rd_kafka_destroy};
}

void check(rd_kafka_resp_err_t code, const char* what) {
  if (code) throw std::runtime_error(std::string(what) + ": " + rd_kafka_err2str(code));
}

/// The answer to one question to the cluster's administration.
class Answer {
 public:
  explicit Answer(rd_kafka_t* rk) : queue_(rd_kafka_queue_new(rk)) {}
  ~Answer() {
    if (event_) rd_kafka_event_destroy(event_);
    rd_kafka_queue_destroy(queue_);
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  rd_kafka_queue_t* queue() const { return queue_; }
  /// Waits for it. Throws std::runtime_error.
  rd_kafka_event_t* event() const {
    if (!event_) event_ = rd_kafka_queue_poll(queue_, 20'000);
    if (!event_) throw std::runtime_error("the broker does not answer");
    return event_;
  }

 private:
  rd_kafka_queue_t* const queue_;
  mutable rd_kafka_event_t* event_{};
};

void put16(std::string& out, int value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value);
}

void put_string(std::string& out, const std::string& text) {
  put16(out, static_cast<int>(text.size()));
  out += text;
}

int connect_to(const std::string& brokers) {
  const auto first = brokers.substr(0, brokers.find(','));
  const auto colon = first.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(first.substr(colon + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    ::close(fd);
    throw std::runtime_error("cannot connect to " + first);
  }
  return fd;
}

/// The controller has them; a broker tells of them as soon as it has heard of them.
void await_partitions(const std::string& brokers, const std::string& topic, int wanted) {
  const auto told = [&] { return partitions(brokers, topic) == wanted; };
  if (!tenure::test::eventually(told, std::chrono::seconds(20)))
    throw std::runtime_error("the broker never heard of the topic's partitions");
}

/// Whether the broker that is asked has heard of it.
bool stands(rd_kafka_t* rk, const rd_kafka_AclBinding_t* acl) {
  char why[512] = "";
  const auto text = [](const char* s) { return s ? s : ""; };
  auto* filter = rd_kafka_AclBindingFilter_new(rd_kafka_AclBinding_restype(acl), text(rd_kafka_AclBinding_name(acl)),
                                               rd_kafka_AclBinding_resource_pattern_type(acl),
                                               text(rd_kafka_AclBinding_principal(acl)),
                                               text(rd_kafka_AclBinding_host(acl)), rd_kafka_AclBinding_operation(acl),
                                               rd_kafka_AclBinding_permission_type(acl), why, sizeof why);
  if (!filter) throw std::runtime_error(why);
  const Answer answer(rk);
  rd_kafka_DescribeAcls(rk, filter, nullptr, answer.queue());
  rd_kafka_AclBinding_destroy(filter);
  std::size_t count = 0;
  const auto* result = rd_kafka_event_DescribeAcls_result(answer.event());
  if (result) rd_kafka_DescribeAcls_result_acls(result, &count);
  return count == 1;
}

}  // namespace

std::string real_brokers() {
  const char* brokers = std::getenv("TENURE_KAFKA_BROKERS");
  return brokers ? brokers : "";
}

int port_of(const std::string& brokers) { return std::stoi(brokers.substr(brokers.rfind(':') + 1)); }

std::string unique_name(const std::string& stem) {
  static int count = 0;
  return stem + "." + std::to_string(boot_clock().unix_ms()) + "." + std::to_string(::getpid()) + "." +
         std::to_string(++count);
}

void create_topic(const std::string& brokers, const std::string& topic, int partitions) {
  const auto rk = handle(brokers);
  char why[512] = "";
  auto* wanted = rd_kafka_NewTopic_new(topic.c_str(), partitions, -1, why, sizeof why);
  const Answer answer(rk.get());
  rd_kafka_CreateTopics(rk.get(), &wanted, 1, nullptr, answer.queue());
  rd_kafka_NewTopic_destroy(wanted);
  std::size_t count = 0;
  const auto* result = rd_kafka_event_CreateTopics_result(answer.event());
  const auto** topics = result ? rd_kafka_CreateTopics_result_topics(result, &count) : nullptr;
  check(count == 1 ? rd_kafka_topic_result_error(topics[0]) : RD_KAFKA_RESP_ERR__TIMED_OUT, "CreateTopics");
  await_partitions(brokers, topic, partitions);
}

void grow_topic(const std::string& brokers, const std::string& topic, int partitions) {
  const auto rk = handle(brokers);
  char why[512] = "";
  auto* wanted = rd_kafka_NewPartitions_new(topic.c_str(), static_cast<std::size_t>(partitions), why, sizeof why);
  const Answer answer(rk.get());
  rd_kafka_CreatePartitions(rk.get(), &wanted, 1, nullptr, answer.queue());
  rd_kafka_NewPartitions_destroy(wanted);
  std::size_t count = 0;
  const auto* result = rd_kafka_event_CreatePartitions_result(answer.event());
  const auto** topics = result ? rd_kafka_CreatePartitions_result_topics(result, &count) : nullptr;
  check(count == 1 ? rd_kafka_topic_result_error(topics[0]) : RD_KAFKA_RESP_ERR__TIMED_OUT, "CreatePartitions");
  await_partitions(brokers, topic, partitions);
}

void create_acl(const std::string& brokers, const std::string& principal, Resource resource, const std::string& name,
                Right right) {
  const auto rk = handle(brokers);
  char why[512] = "";
  const std::unique_ptr<rd_kafka_AclBinding_t, void (*)(rd_kafka_AclBinding_t*)> wanted(
      rd_kafka_AclBinding_new(resource == Resource::topic ? RD_KAFKA_RESOURCE_TOPIC : RD_KAFKA_RESOURCE_GROUP,
                              name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, principal.c_str(), "*",
                              right == Right::read ? RD_KAFKA_ACL_OPERATION_READ : RD_KAFKA_ACL_OPERATION_CREATE,
                              RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, why, sizeof why),
      rd_kafka_AclBinding_destroy);
  if (!wanted) throw std::runtime_error(why);
  const Answer answer(rk.get());
  auto* one = wanted.get();
  rd_kafka_CreateAcls(rk.get(), &one, 1, nullptr, answer.queue());
  std::size_t count = 0;
  const auto* result = rd_kafka_event_CreateAcls_result(answer.event());
  const auto** made = result ? rd_kafka_CreateAcls_result_acls(result, &count) : nullptr;
  const auto* refused = count == 1 ? rd_kafka_acl_result_error(made[0]) : nullptr;
  if (refused) throw std::runtime_error(rd_kafka_error_string(refused));
  check(count == 1 ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__TIMED_OUT, "CreateAcls");
  // The controller has it; the brokers judge by it as soon as they have heard of it.
  if (!tenure::test::eventually([&] { return stands(rk.get(), wanted.get()); }, std::chrono::seconds(20)))
    throw std::runtime_error("CreateAcls: the broker never heard of it");
}

int partitions(const std::string& brokers, const std::string& topic) {
  const auto rk = handle(brokers);
  auto* asked = rd_kafka_topic_new(rk.get(), topic.c_str(), nullptr);
  const rd_kafka_metadata_t* found = nullptr;
  const auto code = rd_kafka_metadata(rk.get(), 0, asked, &found, 20'000);
  rd_kafka_topic_destroy(asked);
  check(code, "Metadata");
  const int out = found->topic_cnt == 1 ? found->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(found);
  return out;
}

std::vector<Member> members(const std::string& brokers, const std::string& group) {
  const auto rk = handle(brokers);
  const rd_kafka_group_list* list = nullptr;
  check(rd_kafka_list_groups(rk.get(), group.c_str(), &list, 20'000), "ListGroups");
  std::vector<Member> out;
  for (int g = 0; g < list->group_cnt; ++g)
    for (int m = 0; m < list->groups[g].member_cnt; ++m)
      out.push_back({list->groups[g].members[m].member_id, list->groups[g].members[m].client_id});
  rd_kafka_group_list_destroy(list);
  return out;
}

void write_offset(const std::string& brokers, const std::string& group, const std::string& topic, int partition,
                  std::int64_t offset) {
  const auto rk = handle(brokers, group);
  auto* list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = offset;
  const auto code = rd_kafka_commit(rk.get(), list, 0);
  rd_kafka_topic_partition_list_destroy(list);
  check(code, "OffsetCommit");
}

void delete_offset(const std::string& brokers, const std::string& group, const std::string& topic, int partition) {
  const auto rk = handle(brokers);
  auto* list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, topic.c_str(), partition);
  auto* wanted = rd_kafka_DeleteConsumerGroupOffsets_new(group.c_str(), list);
  const Answer answer(rk.get());
  rd_kafka_DeleteConsumerGroupOffsets(rk.get(), &wanted, 1, nullptr, answer.queue());
  rd_kafka_DeleteConsumerGroupOffsets_destroy(wanted);
  rd_kafka_topic_partition_list_destroy(list);
  check(rd_kafka_event_error(answer.event()), "OffsetDelete");
}

void delete_group(const std::string& brokers, const std::string& group) {
  const auto rk = handle(brokers);
  auto* wanted = rd_kafka_DeleteGroup_new(group.c_str());
  const Answer answer(rk.get());
  rd_kafka_DeleteGroups(rk.get(), &wanted, 1, nullptr, answer.queue());
  rd_kafka_DeleteGroup_destroy(wanted);
  std::size_t count = 0;
  const auto** groups = rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(answer.event()), &count);
  const auto* refused = count == 1 ? rd_kafka_group_result_error(groups[0]) : nullptr;
  if (refused) throw std::runtime_error(rd_kafka_error_string(refused));
}

struct Stranger::Impl {
  Handle rk;
  std::string topic;
  mutable std::mutex mutex;
  bool assigned{};
  std::vector<int> owned;
  std::jthread thread;

  Impl(const std::string& brokers, const std::string& group, std::string of, const std::string& client_id)
      : rk(handle(brokers, group, client_id)), topic(std::move(of)) {
    rd_kafka_poll_set_consumer(rk.get());
    auto* topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, topic.c_str(), RD_KAFKA_PARTITION_UA);
    check(rd_kafka_subscribe(rk.get(), topics), "subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
    thread = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (auto* message = rd_kafka_consumer_poll(rk.get(), 50)) rd_kafka_message_destroy(message);
        look();
      }
      rd_kafka_consumer_close(rk.get());
    });
  }
  /// librdkafka assigns by itself.
  void look() {
    rd_kafka_topic_partition_list_t* list = nullptr;
    if (rd_kafka_assignment(rk.get(), &list)) return;
    const std::lock_guard lock(mutex);
    owned.clear();
    for (int i = 0; i < list->cnt; ++i) owned.push_back(list->elems[i].partition);
    assigned = assigned || !owned.empty();
    rd_kafka_topic_partition_list_destroy(list);
  }
};

Stranger::Stranger(const std::string& brokers, const std::string& group, const std::string& topic,
                   const std::string& client_id)
    : impl_(std::make_unique<Impl>(brokers, group, topic, client_id)) {}

Stranger::~Stranger() = default;

bool Stranger::assigned() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->assigned;
}

bool Stranger::owns(int partition) const {
  const std::lock_guard lock(impl_->mutex);
  return std::find(impl_->owned.begin(), impl_->owned.end(), partition) != impl_->owned.end();
}

int expel(const std::string& brokers, const std::string& group, const std::string& member_id) {
  // LeaveGroup v1: api key 13; the answer is a length, a correlation id, a throttle time and an error.
  std::string request;
  put16(request, 13);
  put16(request, 1);
  request += std::string("\0\0\0\1", 4);
  put_string(request, "test");
  put_string(request, group);
  put_string(request, member_id);
  const auto size = htonl(static_cast<std::uint32_t>(request.size()));
  request.insert(0, reinterpret_cast<const char*>(&size), sizeof size);

  const int fd = connect_to(brokers);
  unsigned char answer[14] = {};
  const bool sent = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
  const bool answered = sent && ::recv(fd, answer, sizeof answer, MSG_WAITALL) == sizeof answer;
  ::close(fd);
  if (!answered) throw std::runtime_error("LeaveGroup: no answer");
  return static_cast<std::int16_t>(answer[12] << 8 | answer[13]);
}

}  // namespace tenure::kafka::test
