// SPDX-License-Identifier: Apache-2.0
// The verbs of a candidate. Each but request_step_down() is one call to the serving thread.
#pragma once
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/kafka.hpp>

#include "carrier.hpp"

namespace tenure::kafka {

class KafkaBackend final : public Backend {
 public:
  explicit KafkaBackend(std::shared_ptr<Carrier> carrier);
  ~KafkaBackend() override;

  std::optional<Error> accepts(const Timing& timing) override;
  std::string election() const override;
  Answer acquire(const Limit& limit) override;
  Answer renew(Token token, const Limit& limit) override;
  std::optional<Error> release(const Limit& limit) override;
  Sight observe(const Limit& limit) override;
  void await_change(const Sight& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const std::string& by, const std::string& why, const Limit& limit) override;

 private:
  bool forked() const;
  Error unanswered(const Limit& limit) const;
  Carrier::CallResult call(fact::Called what, const Limit& limit);
  Answer ask(fact::Called what, const Limit& limit);

  std::shared_ptr<Carrier> carrier_;
  const pid_t made_by_;
  Timing timing_;
  bool started_{};
};

}  // namespace tenure::kafka
