// SPDX-License-Identifier: Apache-2.0
// Goal: the seat and its threads run without a broker, too. Method: librdkafka's mock cluster in this process. It
// proves little of the protocol (it fences and times differently from a broker): that stands in neli_test and
// kafka_test.
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <memory>
#include <stdexcept>

#include <tenure/kafka.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/observer.hpp>

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;  ///< When a test gives up.

class Cluster {
 public:
  explicit Cluster(const std::string& topic) {
    char why[512] = "";
    rk_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why));
    if (!rk_) throw std::runtime_error(why);
    cluster_.reset(rd_kafka_mock_cluster_new(rk_.get(), 1));
    if (!cluster_) throw std::runtime_error("no mock cluster");
    if (rd_kafka_mock_topic_create(cluster_.get(), topic.c_str(), 2, 1)) throw std::runtime_error("no topic");
  }
  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_.get()); }

 private:
  std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)> rk_{nullptr, &rd_kafka_destroy};
  std::unique_ptr<rd_kafka_mock_cluster_t, decltype(&rd_kafka_mock_cluster_destroy)> cluster_{
      nullptr, &rd_kafka_mock_cluster_destroy};
};

TEST(KafkaMock, OneIsElectedIsSeenAndHandsOver) {
  // Handles leave their group after their seat is gone, in the background: until then it must answer.
  static const Cluster cluster("jobs.neli");
  Options o;
  o.brokers = cluster.brokers();
  o.group = "jobs";
  o.candidate = {"a", "a:1"};
  LeaderManager a(open(o), presets().fast);
  o.candidate = {"watcher", ""};
  Observer watcher(open(o), presets().fast);
  a.start();
  const auto first = a.await_leadership(patience);
  ASSERT_TRUE(first);
  const auto until = boot_clock().now() + patience;
  for (auto changes = watcher.changes(); !watcher.incumbent() && boot_clock().now() < until;)
    changes = watcher.await_change(changes, 1s);
  ASSERT_TRUE(watcher.incumbent());
  EXPECT_EQ(watcher.incumbent()->token, *first);
  EXPECT_FALSE(a.await_ended(2 * presets().fast.renew)) << "it renews";
  EXPECT_TRUE(a.leadership().is_leader());
  a.stop();
  EXPECT_FALSE(a.leadership().is_leader());

  o.candidate = {"b", "b:1"};
  LeaderManager b(open(o), presets().fast);
  b.start();
  const auto second = b.await_leadership(patience);
  ASSERT_TRUE(second);
  EXPECT_GT(*second, *first);
}

}  // namespace
}  // namespace tenure::kafka
