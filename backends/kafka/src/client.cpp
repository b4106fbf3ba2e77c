// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <tenure/kit/logging.hpp>

namespace tenure::kafka {
namespace {

struct FreeList {
  void operator()(rd_kafka_topic_partition_list_t* p) const { rd_kafka_topic_partition_list_destroy(p); }
};
struct FreeEvent {
  void operator()(rd_kafka_event_t* p) const { rd_kafka_event_destroy(p); }
};
struct FreeGroupMetadata {
  void operator()(rd_kafka_consumer_group_metadata_t* p) const { rd_kafka_consumer_group_metadata_destroy(p); }
};
struct FreeMetadata {
  void operator()(const rd_kafka_metadata_t* p) const { rd_kafka_metadata_destroy(p); }
};
struct FreeGroupList {
  void operator()(const rd_kafka_group_list* p) const { rd_kafka_group_list_destroy(p); }
};
struct FreeTopic {
  void operator()(rd_kafka_topic_t* p) const { rd_kafka_topic_destroy(p); }
};
struct FreeError {
  void operator()(rd_kafka_error_t* p) const { rd_kafka_error_destroy(p); }
};
struct FreeQueue {
  void operator()(rd_kafka_queue_t* p) const { rd_kafka_queue_destroy(p); }
};
struct FreeClient {
  void operator()(rd_kafka_t* p) const { rd_kafka_destroy(p); }
};
struct FreeNewTopic {
  void operator()(rd_kafka_NewTopic_t* p) const { rd_kafka_NewTopic_destroy(p); }
};
using List = std::unique_ptr<rd_kafka_topic_partition_list_t, FreeList>;

/// Which handle of the seat: their names begin with their client ids.
std::string role_of(const rd_kafka_t* rk) {
  const std::string_view name(rd_kafka_name(rk));
  return name.starts_with(observer_client_id) ? "reader" : "member";
}

void log_line(const rd_kafka_t* rk, int level, const char* facility, const char* text) {
  if (auto* journal = static_cast<Journal*>(rd_kafka_opaque(rk)))
    journal->write(level <= 3   ? Level::error
                   : level == 4 ? Level::warning
                   : level <= 6 ? Level::info
                                : Level::debug,
                   "librdkafka (" + role_of(rk) + "): " + facility + ": " + without_guess(text));
}

std::unique_ptr<rd_kafka_conf_t, FreeConf> make_conf(const Properties& properties, Journal& journal) {
  std::unique_ptr<rd_kafka_conf_t, FreeConf> conf(rd_kafka_conf_new());
  for (const auto& [name, value] : properties) {
    char why[512] = "";
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(secret(name) ? name + ": value refused (not shown)" : journal.redacted()(why));
  }
  rd_kafka_conf_set_opaque(conf.get(), &journal);
  rd_kafka_conf_set_log_cb(conf.get(), log_line);
  return conf;
}

rd_kafka_t* make_handle(rd_kafka_type_t type, std::unique_ptr<rd_kafka_conf_t, FreeConf> conf, const Journal& journal) {
  char why[512] = "";
  auto* rk = rd_kafka_new(type, conf.get(), why, sizeof why);
  if (!rk) throw std::runtime_error("librdkafka: " + printable(journal.redacted()(why)));
  static_cast<void>(conf.release());  // now the handle's
  return rk;
}

/// A big-endian number at the front of `bytes`, which it takes away; -1 if they are too few.
int take_number(std::string_view& bytes, std::size_t size) {
  if (bytes.size() < size) {
    bytes = {};
    return -1;
  }
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < size; ++i) out = out << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(size);
  return static_cast<int>(out);
}

std::string create_command(const Place& place) {
  return "kafka-topics --bootstrap-server " + place.brokers + " --create --topic " + place.topic + " --partitions 2";
}

}  // namespace

// ---- log ----

Journal::Journal(Log log, Redactor redacted, const std::string& election)
    : log_(std::move(log)), redacted_(std::move(redacted)), election_(election) {}

void Journal::write(Level level, std::string_view message) noexcept {
  ++writing_;
  if (!closed_) try {
      tell(log_, level, redacted_(message), {{"election", election_}, {"store", "kafka"}});
    } catch (...) {  // redacting takes memory
    }
  if (--writing_ == 0) writing_.notify_all();
}

void Journal::close() noexcept {
  closed_ = true;
  for (auto busy = writing_.load(); busy > 0; busy = writing_.load()) writing_.wait(busy);
}

// ---- errors ----

bool needs_the_user(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
    case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED:
    case RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL: return true;
    default: return false;
  }
}

std::string without_guess(std::string text) {
  constexpr std::string_view guess = "probably due to broker version < 0.10";
  if (const auto at = text.find(guess); at != text.npos)
    text.replace(at, guess.size(), "the broker took the connection and says nothing: it may hang");
  return text;
}

Error explain(rd_kafka_resp_err_t code, const std::string& context, const Place& place, const Redactor& redacted) {
  auto message = std::string(rd_kafka_err2name(code));
  if (!context.empty()) message += ": " + printable(redacted(without_guess(context)), 300);
  const auto with = [&](Fault fault, const std::string& remedy) { return Error{fault, message + ". " + remedy}; };
  switch (code) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: return {Fault::deposed, message};
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
      return with(Fault::misconfigured,
                  "The broker wants the session between its group.min.session.timeout.ms (6 s by default) and "
                  "group.max.session.timeout.ms: choose a longer term or Options::session, or change that property");
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
      return with(Fault::misconfigured, "Consumers of another kind are in group \"" + place.group +
                                            "\": give the election a group of its own, Options::group");
    case RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED:
      return with(Fault::misconfigured, "The broker's group.max.size allows no more candidates");
    case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
      return with(Fault::misconfigured, "The broker refuses the name of group \"" + place.group + "\"");
    case RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
      return with(Fault::misconfigured, "The broker's offset.metadata.max.bytes must be at least 512");
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return with(Fault::misconfigured, "Topic \"" + place.topic + "\" is missing. Create it: " +
                                            create_command(place) + " (or set Options::create_topic)");
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      return with(Fault::forbidden, "This principal needs READ on group \"" + place.group + "\"");
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return with(Fault::forbidden, "This principal needs READ on topic \"" + place.topic + "\"");
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return with(Fault::forbidden, "This principal needs CREATE on topic \"" + place.topic + "\" or the cluster");
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
      return with(Fault::forbidden, "Check security.protocol, sasl.* and ssl.* in Options::properties");
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT: return {Fault::timed_out, message};
    default: return {Fault::unreachable, message};
  }
}

// ---- answers ----

Outcome outcome_of(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return Outcome::accepted;
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: return Outcome::deposed;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: return Outcome::unknown_topic;
    default: return Outcome::failed;
  }
}

std::string reading_failed(rd_kafka_resp_err_t code) {
  std::string what = "reading the record";
  switch (code) {
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
      return what +
             ": no answer from a coordinator of the group. A new cluster has none until as many brokers run as " +
             "offsets.topic.replication.factor says (3 by default)";
    default: return what;
  }
}

rd_kafka_resp_err_t error_of(rd_kafka_resp_err_t code, const rd_kafka_topic_partition_list_t* list) {
  for (int i = 0; list && i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) code = list->elems[i].err;
  return code;
}

bool has_owner_partition(const rd_kafka_topic_partition_list_t* list, const std::string& topic) {
  return list &&
         rd_kafka_topic_partition_list_find(const_cast<rd_kafka_topic_partition_list_t*>(list), topic.c_str(), 0);
}

bool assigns_owner_partition(std::string_view assignment, std::string_view topic) {
  take_number(assignment, 2);
  for (auto topics = take_number(assignment, 4); topics > 0 && !assignment.empty(); --topics) {
    const auto told = static_cast<std::size_t>(std::max(take_number(assignment, 2), 0));
    const auto size = std::min(told, assignment.size());
    const bool ours = assignment.substr(0, size) == topic;
    assignment.remove_prefix(size);
    for (auto partitions = take_number(assignment, 4); partitions > 0 && !assignment.empty(); --partitions)
      if (take_number(assignment, 4) == 0 && ours) return true;
  }
  return false;
}

// ---- the handle ----

Client::Client(const Properties& properties, Place place, std::shared_ptr<Journal> journal)
    : journal_(std::move(journal)), place_(std::move(place)) {
  auto conf = make_conf(properties, *journal_);
  rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_ERROR);
  rk_ = make_handle(RD_KAFKA_CONSUMER, std::move(conf), *journal_);
  rd_kafka_poll_set_consumer(rk_);
  queue_.reset(rd_kafka_queue_get_consumer(rk_));
}

Client::~Client() {
  on_events(nullptr);
  queue_.reset();
  rd_kafka_destroy_flags(rk_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

void Client::on_events(std::shared_ptr<Waker> waker) {
  if (waker)
    rd_kafka_queue_cb_event_enable(
        queue_.get(), [](rd_kafka_t*, void* opaque) { static_cast<Waker*>(opaque)->wake(); }, waker.get());
  else
    rd_kafka_queue_cb_event_enable(queue_.get(), nullptr, nullptr);
  waker_ = std::move(waker);
}

std::optional<Client::Event> Client::next_event() {
  for (;;) {
    const std::unique_ptr<rd_kafka_event_t, FreeEvent> event(rd_kafka_queue_poll(queue_.get(), 0));
    if (!event) return std::nullopt;
    Event out{};
    out.code = rd_kafka_event_error(event.get());
    switch (rd_kafka_event_type(event.get())) {
      case RD_KAFKA_EVENT_REBALANCE:
        out.kind = out.code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? Event::Kind::assigned : Event::Kind::revoked;
        out.owner = has_owner_partition(rd_kafka_event_topic_partition_list(event.get()), place_.topic);
        out.lost = rd_kafka_assignment_lost(rk_) != 0;
        return out;
      case RD_KAFKA_EVENT_OFFSET_COMMIT: {
        out.kind = Event::Kind::committed;
        out.id = reinterpret_cast<std::uintptr_t>(rd_kafka_event_opaque(event.get()));
        out.code = error_of(out.code, rd_kafka_event_topic_partition_list(event.get()));
        return out;
      }
      case RD_KAFKA_EVENT_ERROR:
        out.kind = Event::Kind::trouble;
        out.text = rd_kafka_event_error_string(event.get());
        if (rd_kafka_event_error_is_fatal(event.get()) || out.code == RD_KAFKA_RESP_ERR__FATAL)
          out.kind = Event::Kind::fatal;
        return out;
      default: continue;
    }
  }
}

std::optional<Error> Client::take_trouble(const Error* error) {
  bool needed = false;
  while (const auto event = next_event()) {
    // That all brokers are down is said after, and says less than, why.
    if (event->kind != Event::Kind::trouble || event->code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) continue;
    const bool needs = needs_the_user(event->code);
    if (needed && !needs) continue;  // as that the connection ended, after its password was refused
    needed = needs;
    trouble_ = event;
  }
  if (!error && !needed) trouble_.reset();
  const bool knows_less = error && (error->fault == Fault::unreachable || error->fault == Fault::timed_out);
  if (trouble_ && (needed || knows_less)) return explained(trouble_->code, trouble_->text);
  return error ? std::optional(*error) : std::nullopt;
}

std::optional<Error> Client::subscribe() {
  const List topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), place_.topic.c_str(), RD_KAFKA_PARTITION_UA);
  if (const auto code = rd_kafka_subscribe(rk_, topics.get())) return explained(code, "subscribe");
  return std::nullopt;
}

void Client::assign_nothing() {
  const List none(rd_kafka_topic_partition_list_new(0));
  rd_kafka_assign(rk_, none.get());
}

void Client::unassign() { rd_kafka_assign(rk_, nullptr); }

rd_kafka_resp_err_t Client::commit(std::uint64_t id, int partition, const Commit& commit) {
  const List list(rd_kafka_topic_partition_list_new(1));
  auto* entry = rd_kafka_topic_partition_list_add(list.get(), place_.topic.c_str(), partition);
  entry->offset = commit.offset;
  entry->metadata = std::malloc(commit.metadata.size());
  if (!entry->metadata) return RD_KAFKA_RESP_ERR__FAIL;
  std::memcpy(entry->metadata, commit.metadata.data(), commit.metadata.size());
  entry->metadata_size = commit.metadata.size();
  // An opaque pointer is the only room for a number there.  NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* opaque = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id));
  return rd_kafka_commit_queue(rk_, list.get(), queue_.get(), nullptr, opaque);
}

Result<std::vector<std::optional<Commit>>> Client::committed(int partitions, std::chrono::milliseconds within) {
  const List list(rd_kafka_topic_partition_list_new(partitions));
  for (int p = 0; p < partitions; ++p) rd_kafka_topic_partition_list_add(list.get(), place_.topic.c_str(), p);
  if (const auto code = rd_kafka_committed(rk_, list.get(), static_cast<int>(within.count())))
    return explained(code, reading_failed(code));
  std::vector<std::optional<Commit>> out;
  for (int i = 0; i < list->cnt; ++i) {
    const auto& entry = list->elems[i];
    if (entry.err) return explained(entry.err, "reading the record");
    if (entry.offset == RD_KAFKA_OFFSET_INVALID)
      out.emplace_back();
    else
      out.push_back(Commit{entry.offset, std::string(static_cast<const char*>(entry.metadata), entry.metadata_size)});
  }
  return out;
}

int Client::generation() const {
  const std::unique_ptr<rd_kafka_consumer_group_metadata_t, FreeGroupMetadata> group(
      rd_kafka_consumer_group_metadata(rk_));
  if (!group) return -1;
#if RD_KAFKA_VERSION >= 0x020800ff
  return rd_kafka_consumer_group_metadata_generation_id(group.get());
#else
  // The accessor came with 2.8; the serialised form begins with a magic and the generation.
  static constexpr std::string_view magic = "CGMDv2:";
  void* buffer = nullptr;
  std::size_t size = 0;
  const std::unique_ptr<rd_kafka_error_t, FreeError> error(
      rd_kafka_consumer_group_metadata_write(group.get(), &buffer, &size));
  const std::unique_ptr<void, decltype(&std::free)> owned(buffer, &std::free);
  std::int32_t generation = -1;
  if (!error && size >= magic.size() + sizeof generation && std::memcmp(buffer, magic.data(), magic.size()) == 0)
    std::memcpy(&generation, static_cast<const char*>(buffer) + magic.size(), sizeof generation);
  return generation;
#endif
}

Result<std::optional<Owner>> Client::owner(std::chrono::milliseconds within) {
  const rd_kafka_group_list* found = nullptr;
  const auto code = rd_kafka_list_groups(rk_, place_.group.c_str(), &found, static_cast<int>(within.count()));
  const std::unique_ptr<const rd_kafka_group_list, FreeGroupList> owned(found);
  // Some brokers may be down: one that knows the group is enough.
  if (!found || found->group_cnt == 0)
    return explained(code ? code : RD_KAFKA_RESP_ERR__TIMED_OUT, "looking for members");
  const auto& group = found->groups[0];
  if (group.err) return explained(group.err, "looking for members");
  // So a broker answers for a group of the other protocol, though it exists.
  if (group.state == std::string_view("Dead")) return Owner{.client_id = {}, .host = {}, .converted = true};
  for (int i = 0; i < group.member_cnt; ++i) {
    const auto& member = group.members[i];
    const std::string_view assignment(static_cast<const char*>(member.member_assignment),
                                      static_cast<std::size_t>(std::max(member.member_assignment_size, 0)));
    if (assigns_owner_partition(assignment, place_.topic)) return Owner{member.client_id, member.client_host};
  }
  return std::nullopt;
}

void Client::nudge() const {
  const std::unique_ptr<rd_kafka_consumer_group_metadata_t, FreeGroupMetadata> group(
      rd_kafka_consumer_group_metadata(rk_));
}

std::optional<Error> Client::check_topic(std::chrono::milliseconds within, bool& missing) {
  missing = false;
  const std::unique_ptr<rd_kafka_topic_t, FreeTopic> topic(rd_kafka_topic_new(rk_, place_.topic.c_str(), nullptr));
  const rd_kafka_metadata_t* found = nullptr;
  const auto code = rd_kafka_metadata(rk_, 0, topic.get(), &found, static_cast<int>(within.count()));
  const std::unique_ptr<const rd_kafka_metadata_t, FreeMetadata> owned(found);
  if (code) {
    // To a broker whose listener wants TLS it is a connection that ends, which no event tells of.
    const auto error = explained(code, "asking " + place_.brokers + " for topic " + place_.topic +
                                           ", without an answer. If a broker runs there, its listener may want another "
                                           "security.protocol");
    return take_trouble(&error);
  }
  if (found->topic_cnt != 1) return explained(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  const auto& it = found->topics[0];
  missing = it.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (it.err) return explained(it.err);
  if (it.partition_cnt >= 2) return std::nullopt;
  return Error{Fault::misconfigured,
               "Topic \"" + place_.topic +
                   "\" has one partition; two are needed, because only a commit to partition 1 "
                   "proves that what is read of partition 0 is current. Add one: kafka-topics --bootstrap-server " +
                   place_.brokers + " --alter --topic " + place_.topic + " --partitions 2"};
}

void Client::unsubscribe() {
  rd_kafka_unsubscribe(rk_);
  rd_kafka_assign(rk_, nullptr);
}

void Client::begin_close() {
  closing_ = true;
  const std::unique_ptr<rd_kafka_error_t, FreeError> error(rd_kafka_consumer_close_queue(rk_, queue_.get()));
}

bool Client::closed() {
  while (const auto event = next_event())
    if (event->kind == Event::Kind::assigned || event->kind == Event::Kind::revoked) unassign();
  return rd_kafka_consumer_closed(rk_) != 0;
}

// ---- creating the topic ----

std::optional<Error> create_topic(const Properties& properties, const Place& place, const CreateTopic& how,
                                  std::shared_ptr<Journal> journal) {
  auto plain = properties;
  for (const auto* consumer_only : {"group.id", "isolation.level", "enable.auto.commit", "enable.auto.offset.store",
                                    "allow.auto.create.topics", "session.timeout.ms"})
    plain.erase(consumer_only);
  const std::unique_ptr<rd_kafka_t, FreeClient> rk(
      make_handle(RD_KAFKA_PRODUCER, make_conf(plain, *journal), *journal));
  const std::unique_ptr<rd_kafka_queue_t, FreeQueue> queue(rd_kafka_queue_new(rk.get()));
  char why[512] = "";
  const std::unique_ptr<rd_kafka_NewTopic_t, FreeNewTopic> topic(
      rd_kafka_NewTopic_new(place.topic.c_str(), how.partitions, how.replication_factor, why, sizeof why));
  const auto failed = [&](rd_kafka_resp_err_t code, const std::string& text) {
    // A topic that may not be created is refused as one that may not be read is.
    const bool forbidden = code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    auto error =
        explain(forbidden ? RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED : code, text, place, journal->redacted());
    error.message = "create_topic: " + error.message;
    if (error.fault == Fault::unreachable) error.fault = Fault::misconfigured;
    return error;
  };
  if (!topic) return failed(RD_KAFKA_RESP_ERR__INVALID_ARG, why);
  auto* topics = topic.get();
  rd_kafka_CreateTopics(rk.get(), &topics, 1, nullptr, queue.get());
  const std::unique_ptr<rd_kafka_event_t, FreeEvent> event(rd_kafka_queue_poll(queue.get(), 5000));
  if (!event) return Error{Fault::timed_out, "create_topic: no answer from " + place.brokers + " within 5 s"};
  if (const auto code = rd_kafka_event_error(event.get())) {
    const auto* text = rd_kafka_event_error_string(event.get());
    return explain(code, std::string("create_topic: ") + (text ? text : ""), place, journal->redacted());
  }
  std::size_t count = 0;
  const auto** results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = rd_kafka_topic_result_error(results[i]);
    if (code && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
      const auto* text = rd_kafka_topic_result_error_string(results[i]);
      return failed(code, text ? text : "");
    }
  }
  return std::nullopt;
}

}  // namespace tenure::kafka
