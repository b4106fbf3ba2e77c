// SPDX-License-Identifier: Apache-2.0
// Goal: with Kafka a new document says that the term needs a restart, because the session follows from it. The rest of
// the timing changes at once. Method: a leader on the broker that tests/run started, and a new document.
#include <unistd.h>

#include <mutex>

#include <tenure/stores.hpp>

#include "support.hpp"

namespace tenure::test {
namespace {

TEST(JsonKafka, TheTermIsKeptAndTheRestOfTheTimingChanges) {
  const char* const brokers = std::getenv("TENURE_KAFKA_BROKERS");
  if (!brokers) GTEST_SKIP() << "no Kafka broker: TENURE_KAFKA_BROKERS is not set (tests/run sets it)";
  const auto name = "json-" + std::to_string(boot_clock().unix_ms()) + "-" + std::to_string(::getpid());
  const auto document = [&](const std::string& timing) {
    return R"({"store": "kafka://)" + std::string(brokers) + "/" + name + "?create_topic=true\", \"election\": \"" +
           name + R"(", "candidate": {"name": "a"}, "timing": )" + timing + "}";
  };
  std::mutex mutex;
  std::vector<std::string> errors;
  Hooks hooks;
  hooks.error = [&](const Error& error) {
    const std::lock_guard lock(mutex);
    errors.push_back(error.message);
  };
  auto running = from_json(document(R"("fast")"), open);
  const auto fast = running.timing;
  LeaderManager manager(running.backend, running.timing, hooks);
  manager.start();
  const auto token = manager.await_leadership(60s);
  ASSERT_TRUE(token);
  {
    const std::lock_guard lock(mutex);
    errors.clear();  // the topic was missing at first
  }

  const auto said =
      apply(document(R"({"preset": "fast", "term": "9s", "drain": "1s", "retry": "50ms"})"), running, manager);
  EXPECT_EQ(said, (std::vector<Finding>{
                      {"/timing/term", "cannot be changed while a manager runs on this store: it needs a restart"}}));
  EXPECT_EQ(running.timing.term, fast.term);
  EXPECT_EQ(running.timing.drain, 1s);
  // Until it has renewed by the new timing, or was refused it.
  EXPECT_FALSE(manager.await_ended(3 * fast.renew));
  EXPECT_EQ(manager.leadership().token(), token);
  EXPECT_EQ(manager.metrics().elected, 1u);
  const std::lock_guard lock(mutex);
  EXPECT_TRUE(errors.empty()) << errors.front();
}

}  // namespace
}  // namespace tenure::test
