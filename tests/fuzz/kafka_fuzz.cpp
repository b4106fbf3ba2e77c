// SPDX-License-Identifier: Apache-2.0
// The metadata of commits: what is read and is written again is read the same, whoever wrote it. What a coordinator
// tells of a member: no partition is below zero. What is said of strangers is printable.
#include "client.hpp"
#include "fuzz.hpp"
#include "record.hpp"
#include "strangers.hpp"
#include "unit.hpp"

namespace tenure::fuzz {
namespace {

void record(const std::string& text) {
  const auto read = kafka::decode(text);
  if (!read || read->who.incarnation.empty()) return;  // a later version's is not all there
  const auto written = kafka::encode(*read);
  require(printable_text(written), "metadata are printable");
  require(written.size() > kafka::max_record_bytes || kafka::decode(written) == read, "it is the same record");
}

void step_down(const std::string& text) {
  const auto read = kafka::decode_step_down({7}, text);
  if (!read) return;
  const auto written = kafka::encode(*read);
  require(printable_text(written) && kafka::decode_step_down({7}, written) == read, "it is the same request");
}

void assignment(const std::string& text) {
  Lines lines(text);
  const auto topic = lines.next();
  for (const int partition : kafka::assigned_partitions(lines.rest(), topic))
    require(partition >= 0, "a partition is not below zero");
}

/// A line is the commit of one partition.
void units(const std::string& text) {
  Lines lines(text);
  const int count = 1 + lines.number<std::uint8_t>() % 8;
  kafka::role_fact::Offsets read(static_cast<std::size_t>(kafka::partitions_of(count)));
  for (auto& commit : read)
    if (auto metadata = lines.next(); !metadata.empty()) commit = kafka::Commit{7, std::move(metadata)};
  const kafka::UnitNumbers numbers(read);
  require(numbers.units() >= 0 && numbers.grown_from() >= 0, "there are not fewer than no units");
  for (int unit = 0; unit < count; ++unit) numbers.exclude_older(unit, count);
  numbers.complete();
  kafka::Strangers strangers(count, Exclusive::yes, std::chrono::seconds(1));
  for (const auto& news : strangers.saw(read, Clock::Time(), false))
    require(printable_text(news), "news are printable");
}

}  // namespace

const std::vector<Target> targets{
    {"kafka_record", record}, {"kafka_step_down", step_down}, {"kafka_assignment", assignment}, {"kafka_units", units}};

}  // namespace tenure::fuzz
