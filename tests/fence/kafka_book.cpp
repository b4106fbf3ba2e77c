// SPDX-License-Identifier: Apache-2.0
// Fences: strict: Transactions::commit(); none: its producer commits by itself. Its reader has read_committed, and each
// token a partition of its own: a transaction that is open hides what comes behind it in its partition.
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include <tenure/kafka_transactions.hpp>
#include <tenure/kit/c_handle.hpp>

#include "book.hpp"
#include "broker.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using kafka::Transactions;

void check(rd_kafka_resp_err_t error) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
}

class KafkaBook final : public Book {
 public:
  explicit KafkaBook(const Desk& desk)
      : desk_(desk),
        // Of one that stops itself the brokers do not end the transaction for it. Others stand still in the midst of
        // one, too, and nobody leads until the brokers have ended that.
        transactions_(desk.backend, desk.name() + "." + desk.args.text("--name"),
                      {{"transaction.timeout.ms", desk.args.number("--stops") > 0 ? "60000" : "2000"}}) {
    try {
      kafka::test::create_topic(brokers_, ledger_, partitions);
    } catch (const std::runtime_error&) {  // it is there
    }
    char why[512] = "";
    auto* conf = rd_kafka_conf_new();
    for (const auto& [name, value] : {std::pair<const char*, std::string>{"bootstrap.servers", brokers_},
                                      {"group.id", ledger_ + ".readers"},
                                      {"isolation.level", "read_committed"},
                                      {"log_level", "0"},
                                      {"enable.partition.eof", "true"},
                                      {"fetch.wait.max.ms", "10"}})  // Else each question for an end waits behind one.
      if (rd_kafka_conf_set(conf, name, value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
        throw std::runtime_error(why);
    reader_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why));
    if (!reader_) throw std::runtime_error(why);
    const auto all = owned<rd_kafka_topic_partition_list_destroy>(rd_kafka_topic_partition_list_new(partitions));
    for (int partition = 0; partition < partitions; ++partition)
      rd_kafka_topic_partition_list_add(all.get(), ledger_.c_str(), partition)->offset = 0;
    check(rd_kafka_assign(reader_.get(), all.get()));
  }

  bool keep(Token token, const Rest& rest) override {
    auto* const producer = transactions_.begin(5s);
    auto text = std::to_string(token.value);
    {
      const auto topic = owned<rd_kafka_topic_destroy>(rd_kafka_topic_new(producer, ledger_.c_str(), nullptr));
      rd_kafka_produce(topic.get(), static_cast<int>(token.value % partitions), RD_KAFKA_MSG_F_COPY, text.data(),
                       text.size(), nullptr, 0, nullptr);
    }
    check(rd_kafka_flush(producer, 5000));
    rest(Moment::about_to_commit);
    if (desk_.fenced_by("strict")) {
      const auto outcome = transactions_.commit(token, 5s);
      if (outcome == Transactions::Outcome::unknown) throw std::runtime_error("nobody says what became of it");
      return outcome == Transactions::Outcome::committed;
    }
    const auto failed = owned<rd_kafka_error_destroy>(rd_kafka_commit_transaction(producer, 5000));
    transactions_.abort(5s);  // or it takes it for open
    if (failed) throw std::runtime_error(rd_kafka_error_string(failed.get()));
    return true;
  }

  /// Reads on to the last stable offset of now.
  Counts read() override {
    std::int64_t low = 0;
    Offsets end{};
    for (int partition = 0; partition < partitions; ++partition)
      check(rd_kafka_query_watermark_offsets(reader_.get(), ledger_.c_str(), partition, &low,
                                             &end[static_cast<std::size_t>(partition)], 5000));
    while (!std::equal(at_.begin(), at_.end(), end.begin(), std::greater_equal<>())) {
      const auto message = owned<rd_kafka_message_destroy>(rd_kafka_consumer_poll(reader_.get(), 5000));
      if (!message) throw std::runtime_error("the ledger cannot be read");
      auto& at = at_.at(static_cast<std::size_t>(message->partition));
      if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) at = message->offset;
      if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
      ++counts_[std::stoull(std::string(static_cast<const char*>(message->payload), message->len))];
      at = message->offset + 1;
    }
    return counts_;
  }

 private:
  static constexpr int partitions = 32;
  using Offsets = std::array<std::int64_t, partitions>;

  /// Of kafka://BROKERS/TOPIC?...
  static std::string brokers_of(const std::string& url) { return url.substr(8, url.find('/', 8) - 8); }

  const Desk desk_;
  const std::string brokers_ = brokers_of(desk_.args.text("--store")), ledger_ = desk_.name() + ".ledger";
  Transactions transactions_;
  CHandle<rd_kafka_t, rd_kafka_destroy> reader_;
  Offsets at_{};
  Counts counts_;
};

}  // namespace

std::unique_ptr<Book> open_book(const Desk& desk) { return std::make_unique<KafkaBook>(desk); }

}  // namespace tenure::test
