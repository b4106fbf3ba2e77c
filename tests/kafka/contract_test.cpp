// SPDX-License-Identifier: Apache-2.0
// Goal: Kafka keeps the contract that all stores share. Method: the suite, against a real broker with default settings.
#include <tenure/kafka.hpp>
#include <tenure/kit/names.hpp>

#include "broker.hpp"
#include "contract_suite.hpp"

namespace tenure::contract {
namespace {

/// Every test has elections of its own: its mark is at the end of each group.
class Kafka final : public StoreUnderTest {
 public:
  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    check_election(election);  // an empty group would be the program's name
    kafka::Options options;
    options.brokers = brokers_;
    options.group = election.ends_with(mark_) ? election : election + mark_;
    options.topic = topic_;
    options.candidate = candidate;
    options.create_topic = kafka::CreateTopic{};
    return kafka::open(options);
  }
  Timing timing() const override { return kafka::presets().fast; }
  Timing short_timing() const override { return timing(); }
  Clock::Duration hand_over() const override { return timing().term / 2; }
  /// The broker's delay of a new group, up to 6 s; of a group whose leader died a session and a lease.
  Clock::Duration first_election() const override { return std::chrono::seconds(20); }
  /// It would cost each of the many a third handle; a test of this room's has it.
  bool heeds_step_down() const override { return false; }
  int contended_tenures() const override { return 2; }
  std::vector<std::string> odd_elections() const override {
    return {"PLAIN" + mark_, "plain" + mark_, "../a b;%s{}'\"" + mark_, "\xc3\xa4\xf0\x9f\x91\x91" + mark_};
  }

 private:
  const std::string brokers_ = kafka::test::real_brokers();
  const std::string topic_ = kafka::test::unique_name("tenure-contract");
  const std::string mark_ = "." + topic_;
};

const auto subject = testing::Values(
    Subject{"kafka", [] { return std::make_unique<Kafka>(); },
            kafka::test::real_brokers().empty() ? "needs a real broker: set TENURE_KAFKA_BROKERS to host:port" : ""});

INSTANTIATE_TEST_SUITE_P(real, BackendContract, subject, name_of);

}  // namespace
}  // namespace tenure::contract
