// SPDX-License-Identifier: Apache-2.0
// One connection to whichever server is in charge: found, greeted, and left when another one is.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/call_thread.hpp>
#include <tenure/conditional_store.hpp>

#include "record.hpp"
#include "reply.hpp"

struct redisContext;

namespace tenure::redis {

using Command = std::vector<std::string>;

struct CloseContext {
  void operator()(redisContext* context) const;
};

/// REQUIRES: used on one CallThread.
class Connection final : public CallThread::Connection {
 public:
  enum class Use { commands, notices };
  Connection(Options options, Use use) : options_(std::move(options)), use_(use) {}

  std::optional<Error> connect(CallThread::Attempt& attempt) override;
  bool stands() override;

  /// What the script returned; refusals are errors, and so is being sent on if we do not `follow`. Nothing: another
  /// server has the record; ask again, and it is asked.
  Result<std::optional<Reply>> run(const Script& script, const std::string& key,
                                   const std::vector<std::string>& arguments, bool follow);

  /// Whether as many replicas as the options ask for have what was written on this connection.
  std::optional<Error> await_replicas(Clock::Time until);

  /// Listens to the channel from now on.
  std::optional<Error> subscribe(const std::string& channel);
  bool subscribed() const { return subscribed_; }

  /// The next message; an error ends the subscription. Nothing: its call is to return.
  Result<std::optional<std::string>> next_message(CallThread::Socket& socket);

  /// What people should hear of, said once. REQUIRES: nothing runs on the thread.
  std::optional<std::string> take_warning() { return std::exchange(warning_, std::nullopt); }

 private:
  void aim();
  std::optional<Error> connect(Clock::Duration patience);
  std::optional<Error> ask_sentinel();
  std::optional<Error> greet();
  std::optional<Error> log_in(const std::string& user, const std::string& password);
  std::optional<Error> check_role();
  std::optional<Error> check_cluster();
  std::optional<Error> check_memory();
  bool stale() const;
  void drop();

  Result<Reply> call(const Script& script, const std::string& key, const std::vector<std::string>& arguments);
  Result<Reply> ask(const Command& command);
  Result<Reply> receive();
  Result<std::optional<Reply>> buffered();
  std::optional<Error> fill();
  Error refused(const Reply& reply) const;
  Error broken(const std::string& what) const;
  std::string where() const;

  const Options options_;
  const Use use_;
  std::unique_ptr<redisContext, CloseContext> context_;
  bool at_sentinel_{}, greeted_{}, subscribed_{};
  Address at_;                 ///< Where `context_` leads.
  std::optional<Address> to_;  ///< Where a Sentinel or a cluster sent us.
  bool asking_{};              ///< There for a slot that is still on its way.
  std::size_t seed_{};         ///< Which of the servers is next.
  std::size_t received_{};     ///< Bytes of the reply that is coming.
  std::optional<std::string> warning_;
  std::string policy_;  ///< That was warned of.
};

}  // namespace tenure::redis
