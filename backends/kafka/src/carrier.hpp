// SPDX-License-Identifier: Apache-2.0
// The two threads round Neli. They carry facts to it, and do what it decides. The serving thread owns Neli and the
// member handle; the reading thread makes the reads that block.
#pragma once
#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include <tenure/kafka.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "mailbox.hpp"
#include "member.hpp"
#include "neli.hpp"
#include "reader.hpp"
#include "reading_thread.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// Owned by the backend and its two threads together, so that none waits for another at the end.
class Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  /// Makes it with its threads, and with all that its end needs. Throws std::system_error if threads or descriptors
  /// have run out.
  static std::shared_ptr<Carrier> make(Options options, std::shared_ptr<ClosableLog> log,
                                       std::unique_ptr<Reader> observer);

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace);
  void stop();

  /// One verb at a time. Its answer, or nothing if the limit passed first.
  using CallResult = std::variant<std::monostate, Answer, Sight, std::optional<Error>>;
  CallResult call(fact::Called what, const Limit& limit);

  const Options& options() const { return options_; }

 private:
  Carrier(Options options, std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer);

  // The serving thread
  void serve();
  void take_events();
  void handle(const Fact& fact);
  void carry_out(effect::Open&);
  void carry_out(effect::Assign&);
  void carry_out(effect::Unassign&);
  void carry_out(effect::SendCommit&);
  void carry_out(effect::ReadMember&);
  void carry_out(effect::Observe&);
  void carry_out(effect::ReadRequests&);
  void carry_out(effect::FindOwners&);
  void carry_out(effect::Drop&);
  void carry_out(effect::Reply&);
  void carry_out(effect::ReplySight&);
  void carry_out(effect::ReplyReleased&);
  void carry_out(effect::Wake&);
  void carry_out(effect::Tell&);

  // The reading thread
  static Result<Reading> read_as_member(Client& member);
  Result<std::optional<Commit>> read_requests();
  Result<std::optional<Commit>> observe(const effect::Observe& asked);

  const Options options_;
  const std::shared_ptr<ClosableLog> log_;
  const std::unique_ptr<Reader> observer_;  ///< The reading thread's, but for explained().
  std::unique_ptr<Reader> requests_;        ///< the reading thread's
  const std::string incarnation_;

  Mailbox<Fact, CallResult> mailbox_;
  ReadingThread reading_;
  std::thread serve_thread_;

  // The serving thread's, from begin() on
  std::optional<Neli> neli_;
  Pace pace_{};
  Member member_;
  Token published_highest_;
};

}  // namespace tenure::kafka
