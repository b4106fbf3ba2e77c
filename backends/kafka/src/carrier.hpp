// SPDX-License-Identifier: Apache-2.0
// The two threads round Neli. They carry facts to it, and do what it decides. The serving thread owns Neli and the
// member handle; the reading thread makes the reads that block.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tenure/kafka.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "neli.hpp"
#include "reaper.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// A read that blocks. The reading thread does it.
struct ReadJob {
  enum class Kind { observe, member, requests, owner } kind{};
  std::uint64_t id{};
  bool check_topic{};
  std::shared_ptr<Client> client;  ///< member
};

/// Owned by the backend and its two threads together, so that none waits for another at the end.
class Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  /// Makes it with its threads, and with all that its end needs. Throws std::system_error if threads or descriptors
  /// have run out.
  static std::shared_ptr<Carrier> make(Options options, std::shared_ptr<ClosableLog> log,
                                       std::shared_ptr<Client> observer);

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace);
  void stop();

  /// One verb at a time. Its answer, or nothing if the limit passed first.
  using CallResult = std::variant<std::monostate, Answer, Sight, std::optional<Error>>;
  CallResult call(fact::Called what, const Limit& limit);

  const Options& options() const { return options_; }

 private:
  Carrier(Options options, std::shared_ptr<ClosableLog> log, std::shared_ptr<Client> observer);

  // The serving thread
  void serve();
  bool survives(auto step);
  void take_events();
  void handle(const Fact& fact);
  void carry_out(effect::Open&);
  void carry_out(effect::Assign&);
  void carry_out(effect::Unassign&);
  void carry_out(effect::SendCommit&);
  void carry_out(effect::ReadMember&);
  void carry_out(effect::Observe&);
  void carry_out(effect::ReadRequests&);
  void carry_out(effect::FindOwner&);
  void carry_out(effect::Drop&);
  void carry_out(effect::Reply&);
  void carry_out(effect::ReplySight&);
  void carry_out(effect::ReplyReleased&);
  void carry_out(effect::Wake&);
  void carry_out(effect::Tell&);
  void answer(std::uint64_t id, CallResult result);
  Clock::Time next_nudge();

  // The reading thread
  void read();
  void queue(ReadJob job);
  Fact result_of(const ReadJob& job);
  Fact carry_out(const ReadJob& job);
  Fact observe(const ReadJob& job);
  static Fact read_as_member(const ReadJob& job);
  Fact read_requests();

  void post(Fact fact);

  const Options options_;
  const std::shared_ptr<ClosableLog> log_;
  const std::shared_ptr<Client> observer_;
  Reaper& reaper_;
  std::shared_ptr<Client> requests_;  ///< the reading thread's
  Pace pace_{};
  const std::string incarnation_;

  std::mutex mutex_;
  std::vector<Fact> inbox_;
  std::deque<ReadJob> jobs_;
  bool quit_{}, read_quit_{};
  std::uint64_t last_call_{};
  CallResult result_;  ///< of last_call_

  std::shared_ptr<Waker> serve_wakes_, caller_wakes_;
  std::unique_ptr<Waker> read_wakes_;
  std::thread serve_thread_, read_thread_;
  std::shared_ptr<std::atomic<bool>> read_over_{std::make_shared<std::atomic<bool>>(false)};

  // The serving thread's, from begin() on
  std::optional<Neli> neli_;
  std::shared_ptr<Client> member_;
  std::uint64_t handle_{};
  Clock::Time nudge_at_{Clock::Time::max()};
  Token published_highest_;
};

}  // namespace tenure::kafka
