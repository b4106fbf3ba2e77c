// SPDX-License-Identifier: Apache-2.0
// What stands in etcd's keys: what is read and is written again is read the same. What its gateway answers: anything is
// an answer or an error, whose message is printable.
#include "fuzz.hpp"
#include "gateway.hpp"

namespace tenure::fuzz {
namespace {

void record(const std::string& text) {
  Lines lines(text);
  const auto value = lines.next();
  const auto read = etcd::read_of(value, lines.rest(), "key");
  if (!read) return require(printable_text(read.error().message), "an error is printable");
  if (read->unreadable) return;
  const auto request = read->step_down ? std::optional(etcd::text_of(*read->step_down)) : std::nullopt;
  const auto again = etcd::read_of(etcd::text_of(*read->record), request, "key");
  require(again && again->record == read->record, "it is the same record");
  require(!request || (printable_text(*request) && again->step_down.has_value()), "a request is read again");
}

void answer(const std::string& text) {
  Lines lines(text);
  const etcd::Answer answer{.status = lines.number<std::uint16_t>(), .body = lines.rest()};
  const auto json = etcd::json_of(answer);
  if (!json) return require(printable_text(json.error().message), "an error is printable");
  if (const auto error = etcd::error_in(*json)) require(printable_text(error->message), "an error is printable");
  if (const auto done = etcd::done_of(*json, 2, 1))
    require(done->values.size() == (done->succeeded ? 2u : 1u), "an answer has all that was asked for");
  if (const auto page = etcd::page_of(*json, "a", "b"))
    for (const auto& [key, value] : page->values) require(key >= "a" && key < "b", "a page has the keys of its range");
  if (const auto event = etcd::event_of(*json)) require(event->changed || !event->value, "a value is a change's");
  etcd::objects_at(*json, "/members");
}

void base64(const std::string& text) {
  require(etcd::from_base64(etcd::base64(text)) == text, "what is written is read");
  if (const auto bytes = etcd::from_base64(text)) require(etcd::base64(*bytes) == text, "two texts are two values");
}

}  // namespace

const std::vector<Target> targets{{"etcd_record", record}, {"etcd_answer", answer}, {"etcd_base64", base64}};

}  // namespace tenure::fuzz
