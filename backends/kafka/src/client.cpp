// SPDX-License-Identifier: Apache-2.0
// Drives librdkafka's C API on one consumer handle.
#include "client.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tenure::kafka {
namespace {

using List = CHandle<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;

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

/// librdkafka before 2.6.1 copies metadata up to its first byte of zero, and tells the whole length: behind that byte
/// is other memory of this process. What has one is no text of ours, so the byte is kept as a mark.
std::string metadata_of(const rd_kafka_topic_partition_t& entry) {
  const auto* text = static_cast<const char*>(entry.metadata);
  if (!text) return {};
  const auto size = ::strnlen(text, entry.metadata_size);
  return std::string(text, size) + (size < entry.metadata_size ? std::string(1, '\0') : std::string());
}

std::vector<int> partitions_in(const rd_kafka_topic_partition_list_t* list, const std::string& topic) {
  std::vector<int> out;
  for (int i = 0; list && i < list->cnt; ++i)
    if (list->elems[i].topic == topic) out.push_back(list->elems[i].partition);
  return out;
}

}  // namespace

rd_kafka_resp_err_t error_of(rd_kafka_resp_err_t code, const rd_kafka_topic_partition_list_t* list) {
  for (int i = 0; list && i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) code = known_at(list->elems[i].err);
  return code;
}

std::vector<int> assigned_partitions(std::string_view assignment, std::string_view topic) {
  std::vector<int> out;
  take_number(assignment, 2);
  for (auto topics = take_number(assignment, 4); topics > 0 && !assignment.empty(); --topics) {
    const auto told = static_cast<std::size_t>(std::max(take_number(assignment, 2), 0));
    const auto size = std::min(told, assignment.size());
    const bool ours = assignment.substr(0, size) == topic;
    assignment.remove_prefix(size);
    for (auto partitions = take_number(assignment, 4); partitions > 0 && !assignment.empty(); --partitions)
      if (const int partition = take_number(assignment, 4); partition >= 0 && ours) out.push_back(partition);
  }
  return out;
}

// ---- the handle ----

Client::Client(const Properties& properties, Target target, std::shared_ptr<ClosableLog> log)
    : log_(std::move(log)),
      target_(std::move(target)),
      rk_(make_handle(RD_KAFKA_CONSUMER, properties, callbacks_,
                      RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_ERROR)) {
  rd_kafka_poll_set_consumer(rk_);
  queue_.reset(rd_kafka_queue_get_consumer(rk_));
}

Client::~Client() {
  on_events(nullptr);
  queue_.reset();
  end_handle(rk_);
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
    const auto event = owned<rd_kafka_event_destroy>(rd_kafka_queue_poll(queue_.get(), 0));
    if (!event) return std::nullopt;
    Event out{};
    out.code = known(rd_kafka_event_error(event.get()));
    switch (rd_kafka_event_type(event.get())) {
      case RD_KAFKA_EVENT_REBALANCE:
        out.kind = out.code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? Event::Kind::assigned : Event::Kind::revoked;
        out.partitions = partitions_in(rd_kafka_event_topic_partition_list(event.get()), target_.topic);
        out.lost = rd_kafka_assignment_lost(rk_) != 0;
        return out;
      case RD_KAFKA_EVENT_OFFSET_COMMIT: {
        out.kind = Event::Kind::committed;
        out.id = reinterpret_cast<std::uintptr_t>(rd_kafka_event_opaque(event.get()));
        out.code = error_of(out.code, rd_kafka_event_topic_partition_list(event.get()));
        out.again = callbacks_.closed != closed_before_;
        unheard_ = out.code < 0;  // librdkafka's own errors
        return out;
      }
      case RD_KAFKA_EVENT_ERROR:
        out.kind = Event::Kind::trouble;
        out.text = rd_kafka_event_error_string(event.get());
        out.code = meant_by(out.code, out.text);
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
    // "All brokers are down" comes after the reason, and says less.
    if (event->kind != Event::Kind::trouble || event->code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) continue;
    const bool needs = needs_the_user(event->code);
    if (needed && !needs) continue;  // such as "connection closed" after "password refused"
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
  rd_kafka_topic_partition_list_add(topics.get(), target_.topic.c_str(), RD_KAFKA_PARTITION_UA);
  if (const auto code = rd_kafka_subscribe(rk_, topics.get())) return explained(code, "subscribe");
  return std::nullopt;
}

void Client::assign_nothing() {
  const List none(rd_kafka_topic_partition_list_new(0));
  rd_kafka_assign(rk_, none.get());
}

void Client::unassign() { rd_kafka_assign(rk_, nullptr); }

rd_kafka_resp_err_t Client::commit(std::uint64_t id, int partition, const Commit& commit) {
  return this->commit(id, {{partition, commit}});
}

rd_kafka_resp_err_t Client::commit(std::uint64_t id, const std::map<int, Commit>& commits) {
  const List list(rd_kafka_topic_partition_list_new(static_cast<int>(commits.size())));
  for (const auto& [partition, commit] : commits) {
    // librdkafka would leave it out of the request, and tell no error.
    if (commit.offset < 0) return RD_KAFKA_RESP_ERR__INVALID_ARG;
    auto* entry = rd_kafka_topic_partition_list_add(list.get(), target_.topic.c_str(), partition);
    entry->offset = commit.offset;
    entry->metadata = std::malloc(commit.metadata.size());
    if (!entry->metadata) return RD_KAFKA_RESP_ERR__FAIL;
    std::memcpy(entry->metadata, commit.metadata.data(), commit.metadata.size());
    entry->metadata_size = commit.metadata.size();
  }
  closed_before_ = callbacks_.closed;
  unheard_ = true;
  // An opaque pointer is the only room for a number there.  NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* opaque = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id));
  return rd_kafka_commit_queue(rk_, list.get(), queue_.get(), nullptr, opaque);
}

Result<std::vector<std::optional<Commit>>> Client::committed(int partitions, std::chrono::milliseconds within) {
  const List list(rd_kafka_topic_partition_list_new(partitions));
  for (int p = 0; p < partitions; ++p) rd_kafka_topic_partition_list_add(list.get(), target_.topic.c_str(), p);
  if (const auto code = known(rd_kafka_committed(rk_, list.get(), static_cast<int>(within.count()))))
    return explained(code, reading_failed(code));
  std::vector<std::optional<Commit>> out;
  for (int i = 0; i < list->cnt; ++i) {
    const auto& entry = list->elems[i];
    if (const auto code = known_at(entry.err)) return explained(code, "reading the record");
    if (entry.offset == RD_KAFKA_OFFSET_INVALID)  // Also if somebody has committed -1: rule 5 reckons with that.
      out.emplace_back();
    else
      out.push_back(Commit{entry.offset, metadata_of(entry)});
  }
  return out;
}

Client::Standing Client::standing() const {
  const auto group = owned<rd_kafka_consumer_group_metadata_destroy>(rd_kafka_consumer_group_metadata(rk_));
  if (!group) return {};
#if RD_KAFKA_VERSION >= 0x020800ff
  const auto* member = rd_kafka_consumer_group_metadata_member_id(group.get());
  return {rd_kafka_consumer_group_metadata_generation_id(group.get()), member ? member : ""};
#else
  // The accessors came with 2.8. The serialised form has a magic, the generation, the group, the member.
  static constexpr std::string_view magic = "CGMDv2:";
  void* buffer = nullptr;
  std::size_t size = 0;
  const auto error = owned<rd_kafka_error_destroy>(rd_kafka_consumer_group_metadata_write(group.get(), &buffer, &size));
  const auto owner = owned<std::free>(buffer);
  Standing out;
  std::string_view rest(static_cast<const char*>(buffer), size);
  if (error || size < magic.size() + sizeof out.generation || rest.substr(0, magic.size()) != magic) return out;
  std::memcpy(&out.generation, rest.data() + magic.size(), sizeof out.generation);
  rest.remove_prefix(magic.size() + sizeof out.generation);
  rest.remove_prefix(std::min(rest.size(), target_.group.size() + 1));
  out.member = rest.substr(0, rest.find('\0'));
  return out;
#endif
}

Result<Owners> Client::owners(std::chrono::milliseconds within) {
  const rd_kafka_group_list* found = nullptr;
  const auto code = known(rd_kafka_list_groups(rk_, target_.group.c_str(), &found, static_cast<int>(within.count())));
  const auto owner = owned<rd_kafka_group_list_destroy>(found);
  // Some brokers may be down. One that knows the group is enough.
  if (!found || found->group_cnt == 0)
    return explained(code ? code : RD_KAFKA_RESP_ERR__TIMED_OUT, "looking for members");
  const auto& group = found->groups[0];
  if (const auto error = known_at(group.err)) return explained(error, "looking for members");
  // A broker answers this for a group of the other protocol, though that group exists.
  const std::string_view state(group.state);
  if (state == "Dead") return Owners{.partitions = {}, .converted = true};
  Owners out{.partitions = {}, .stable = state == "Stable"};
  for (int i = 0; i < group.member_cnt; ++i) {
    const auto& member = group.members[i];
    const std::string_view assignment(static_cast<const char*>(member.member_assignment),
                                      static_cast<std::size_t>(std::max(member.member_assignment_size, 0)));
    for (const int partition : assigned_partitions(assignment, target_.topic))
      out.partitions.push_back({partition, member.client_id, member.client_host});
  }
  return out;
}

bool Client::no_such_group(std::chrono::milliseconds within) {
  const rd_kafka_group_list* found = nullptr;
  const auto code = rd_kafka_list_groups(rk_, target_.group.c_str(), &found, static_cast<int>(within.count()));
  const auto owner = owned<rd_kafka_group_list_destroy>(found);
  return !code && found && found->group_cnt == 0;
}

void Client::nudge() const {
  const auto group = owned<rd_kafka_consumer_group_metadata_destroy>(rd_kafka_consumer_group_metadata(rk_));
}

Result<int> Client::partitions(std::chrono::milliseconds within, bool& missing) {
  missing = false;
  const auto topic = owned<rd_kafka_topic_destroy>(rd_kafka_topic_new(rk_, target_.topic.c_str(), nullptr));
  const rd_kafka_metadata_t* found = nullptr;
  const auto code = known(rd_kafka_metadata(rk_, 0, topic.get(), &found, static_cast<int>(within.count())));
  const auto owner = owned<rd_kafka_metadata_destroy>(found);
  if (code) {
    // A listener that wants TLS just closes the connection, and no event tells of it.
    const auto error = explained(code, "no broker at " + target_.brokers + " answered for topic " + target_.topic +
                                           ". If a broker runs there, its listener may want another "
                                           "security.protocol");
    return take_trouble(&error).value_or(error);
  }
  if (found->topic_cnt != 1) return explained(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  const auto& it = found->topics[0];
  const auto error = known_at(it.err);
  missing = error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (error) return explained(error);
  return it.partition_cnt;
}

void Client::unsubscribe() {
  rd_kafka_unsubscribe(rk_);
  rd_kafka_assign(rk_, nullptr);
  // That was the answer to every rebalance told so far. A second answer while the group ends would get no reply,
  // because librdkafka empties its queue then. rd_kafka_assign() waits for a reply without a limit.
  while (next_event()) {
  }
}

void Client::begin_close() {
  const auto error = owned<rd_kafka_error_destroy>(rd_kafka_consumer_close_queue(rk_, queue_.get()));
}

bool Client::closed() {
  while (const auto event = next_event())
    if (event->kind == Event::Kind::assigned || event->kind == Event::Kind::revoked) unassign();
  return rd_kafka_consumer_closed(rk_) != 0;
}

Target target_of(const Options& options, int partitions) {
  return {options.brokers, options.group, options.topic, partitions};
}

std::shared_ptr<Client> make_observer(const Options& options, const std::string& group,
                                      const std::shared_ptr<ClosableLog>& log, int partitions) {
  try {
    return std::make_shared<Client>(common_properties(options, group),
                                    Target{options.brokers, group, options.topic, partitions}, log);
  } catch (const std::runtime_error& e) {
    throw std::invalid_argument(std::string("kafka: ") + e.what());
  }
}

}  // namespace tenure::kafka
