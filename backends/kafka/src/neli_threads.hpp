// SPDX-License-Identifier: Apache-2.0
// The threads round Neli.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "machine_threads.hpp"
#include "neli.hpp"

namespace tenure::kafka {

/// What a verb brought; nothing if its limit passed first.
using CallResult = std::variant<std::monostate, Answer, Sight, std::optional<Error>>;

class NeliThreads final : public MachineThreads<NeliThreads, Fact, CallResult> {
 public:
  /// Makes it with its threads, and with all that its end needs. Throws std::system_error if threads or descriptors
  /// have run out.
  static std::shared_ptr<NeliThreads> make(Options options, std::shared_ptr<ClosableLog> log,
                                           std::unique_ptr<Reader> observer);

  Result<Pace> pace_of_its(const Timing& timing) const { return pace_of(timing, options_); }

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace);

  /// One verb at a time.
  CallResult call(fact::Called what, const Limit& limit);

  /// Nothing: this tenure is over, or a rebalance is under way. Any thread.
  std::optional<Client::Standing> place(Token token);

 private:
  friend MachineThreads;
  using MachineThreads::carry_out;
  using MachineThreads::MachineThreads;

  // The serving thread
  Neli& machine() { return *neli_; }
  static Fact assigned(std::uint64_t handle, const Client::Event& event, int generation) {
    return fact::Assigned{handle, event.owner, generation};
  }
  void handled();
  void publish_place();
  static bool waits_to_leave() { return true; }
  void carry_out(effect::Open& asked);
  void carry_out(effect::SendCommit& asked) { send(asked.id, asked.partition, asked.commit); }
  void carry_out(effect::ReadMember& read);
  void carry_out(effect::Observe& asked);
  void carry_out(effect::ReadRequests&);
  void carry_out(effect::Reply& reply) { mailbox_.answer(reply.id, std::move(reply.answer)); }
  void carry_out(effect::ReplySight& reply) { mailbox_.answer(reply.id, std::move(reply.sight)); }
  void carry_out(effect::ReplyReleased& reply) { mailbox_.answer(reply.id, std::move(reply.error)); }
  void carry_out(effect::Wake& wake) { mailbox_.answer(wake.id, Sight{}); }

  // The reading thread
  static Result<Reading> read_as_member(Client& member);
  Result<std::optional<Commit>> read_requests();
  Result<std::optional<Commit>> observe(const effect::Observe& asked);

  std::unique_ptr<Reader> requests_;  ///< the reading thread's
  std::optional<Neli> neli_;          ///< the serving thread's, from begin() on
  Token published_highest_;

  std::mutex place_mutex_;
  std::optional<std::pair<Token, Client::Standing>> place_;
  bool lent_{};  ///< It was asked for.
};

}  // namespace tenure::kafka
