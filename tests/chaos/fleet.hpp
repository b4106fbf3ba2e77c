// SPDX-License-Identifier: Apache-2.0
// Candidates as processes of their own, and the one journal that they write. For the multi-process tests and the
// benchmarks.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/token.hpp>

namespace tenure::test {

/// A line of the journal; candidate.cpp says what each event means and which fields it has.
struct Event {
  Clock::Time at{};
  pid_t pid{};
  std::string what, election;
  Token token;
  Clock::Time after{}, until{};
  Clock::Duration term{}, margin{};
  std::string name, reason, detail, message;
};

/// What is done to a candidate is in the journal too, and to the server or the group, without a process. It is noted
/// just before it is done; but "stopped" (SIGSTOP) once the process stands still. A busy machine takes a while for
/// that, and the pause must not seem longer than it is. The others: "resumed" (SIGCONT), "killed" (SIGKILL), "asked to
/// end" (SIGTERM), "muted" (no request of theirs passes).
namespace done_to {
inline constexpr auto stopped = "stopped", resumed = "resumed", killed = "killed", asked = "asked to end",
                      muted = "muted", crashed = "server crashed", frozen = "server frozen", put_out = "one put out";
}

/// The event that the line tells. Its `what` is empty if it is not a line of a journal. A candidate that is killed may
/// leave a line without its end, behind which the next one stands: then it is that one.
Event parse_event(const std::string& line);

// What to wait for: an event of this name, of this process if one is named, or of another one.
inline auto is(std::string what, pid_t of = 0) {
  return [what = std::move(what), of](const Event& e) { return e.what == what && (of == 0 || e.pid == of); };
}
inline auto is_of_another(std::string what, pid_t than) {
  return [what = std::move(what), than](const Event& e) { return e.what == what && e.pid != than; };
}

/// One thread uses it. The destructor kills the candidates that still run; if this process dies, the kernel does. Of a
/// test that has failed it moves the journal to where it outlives the test's directory, and says where that is.
class Fleet {
 public:
  /// Every candidate gets these arguments besides its --name and --log.
  Fleet(std::string program, std::vector<std::string> arguments, std::filesystem::path journal);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  pid_t start(const std::string& name, const std::vector<std::string>& more = {});
  void signal(pid_t pid, int number) const;
  void stop(pid_t pid) const;    ///< Waits until it stands still, and notes it.
  void resume(pid_t pid) const;  ///< Notes it, too.
  /// Waits for the end of the process, at most `within`. False if it still runs.
  bool reap(pid_t pid, Clock::Duration within);
  const std::set<pid_t>& running() const { return running_; }

  /// Notes in the journal what is done to a candidate.
  void note(const std::string& event, pid_t pid) const;

  /// All events so far.
  const std::vector<Event>& events();
  /// From now on events() hands each event over once, and keeps none.
  void hand_to(std::function<void(const Event&)> taker) { taker_ = std::move(taker); }
  /// Waits for an event that fits, from index `from` on. Returns its index, or npos when `within` has passed.
  std::size_t await(std::size_t from, const std::function<bool(const Event&)>& fits, Clock::Duration within);
  static constexpr auto npos = static_cast<std::size_t>(-1);

  /// Who leads, by the last lead or follow of each running candidate; 0 if nobody or several.
  pid_t leader();

  /// Asks all that run to end, and waits for them.
  void end_all(Clock::Duration within);

  const std::filesystem::path& journal() const { return journal_; }

 private:
  void keep_journal() const;

  std::string program_;
  std::vector<std::string> arguments_;
  std::filesystem::path journal_;
  std::set<pid_t> running_;
  std::vector<Event> events_;
  std::function<void(const Event&)> taker_;
  std::string rest_;
  off_t offset_{};               ///< Read so far; writing moves the descriptor's own.
  std::map<pid_t, bool> leads_;  ///< By the first `counted_` events.
  std::size_t counted_{};
  int fd_;
};

}  // namespace tenure::test
