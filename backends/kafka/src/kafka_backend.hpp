// SPDX-License-Identifier: Apache-2.0
// The verbs of a candidate. Each but request_step_down() is one call to the serving thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/backend.hpp>
#include <tenure/kafka.hpp>

#include "neli_threads.hpp"

namespace tenure::kafka {

class KafkaBackend final : public Backend {
 public:
  explicit KafkaBackend(std::shared_ptr<NeliThreads> threads) : threads_(std::move(threads), presets().balanced) {}

  std::optional<Error> accepts(const Timing& timing) override { return threads_.accepts(timing); }
  std::string election() const override { return threads_->options().group; }
  Answer acquire(const Limit& limit) override;
  Answer renew(Token token, const Limit& limit) override;
  std::optional<Error> release(const Limit& limit) override;
  Sight observe(const Limit& limit) override;
  void await_change(const Sight& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const std::string& by, const std::string& why, const Limit& limit) override;

  // For Transactions
  std::optional<Client::Standing> place(Token token) { return threads_->place(token); }
  const Options& options() const { return threads_->options(); }
  std::shared_ptr<ClosableLog> log() const { return threads_->log(); }

 private:
  Answer ask(fact::Called what, const Limit& limit);

  ThreadsInUse<NeliThreads> threads_;
};

}  // namespace tenure::kafka
