// SPDX-License-Identifier: Apache-2.0
// A TCP relay on loopback between candidates and a server. It counts Kafka requests by process and kind. It can hold
// answers back, or let no more requests through while the connections stay open. A gate sees each of Kafka's messages,
// and decides which ones to hold. Kafka tells its clients where to connect to; where it names the broker that the relay
// stands before, the relay names itself.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <tenure/clock.hpp>

namespace tenure::test {

/// Kafka's name of a request.
std::string api_name(int key);
inline constexpr int offset_commit = 8, join_group = 11, heartbeat = 12, leave_group = 13, sync_group = 14;

/// A request, or the answer to one.
struct KafkaMessage {
  bool request{};
  int api{}, version{};
  int error{};  ///< of the answer to a heartbeat or an OffsetCommit: for the latter that of its first partition
  std::string client_id;
  std::uint64_t connection{};
  bool claims{};  ///< An OffsetCommit that claims a lead or renews one, or the answer to it. A nonce's does not.
};

/// Called on the relay's thread. REQUIRES: outlives the relay.
class Gate {
 public:
  virtual ~Gate() = default;
  /// Called when a client has sent the message. Messages before it may still be held.
  virtual void sent(const KafkaMessage& request) = 0;
  /// Whether the message may pass now. If not, it is asked again, also when the client has closed the connection: the
  /// network may still have what was sent. A request is the first one of its connection. An answer may overtake one
  /// that is held: else a commit that had passed before would stay unanswered, and its client would send no other one.
  virtual bool passes(const KafkaMessage&) = 0;
};

enum class Speaks { anything, kafka };

/// Any thread may call it.
class Relay {
 public:
  /// Listens on a free port of 127.0.0.1, and forwards to 127.0.0.1:`to`.
  explicit Relay(int to, Speaks what = Speaks::anything);
  /// For Kafka. It delays nothing.
  Relay(int to, Gate& gate);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Round trips so far, of all connections together: TCP's own of each, and each time that a client sent something
  /// and was answered. What it sends before the first answer comes, it sends at once.
  std::uint64_t round_trips() const;

  /// Requests forwarded so far, by process and Kafka's api key.
  std::map<std::pair<pid_t, int>, std::uint64_t> requests() const;
  std::uint64_t requests(pid_t of, int api) const;

  /// From now on, holds back answers to this process (0: to all) for that long.
  void delay_answers(Clock::Duration by, pid_t of = 0);

  /// Behaves like a server that is that far away, for connections from now on. Each answer comes that much later. A new
  /// connection is usable that much later, too, as with TCP's handshake.
  void far_away(Clock::Duration round_trip);

  /// Behaves like a proxy that is slow to connect: it accepts connections one after the other. The pause before each
  /// goes up and down between these two.
  void slow_to_connect(Clock::Duration least, Clock::Duration most);

  /// Lets no more requests of this process (0: of all) pass. Its connections stay open, and answers to earlier requests
  /// still pass.
  void mute(bool on, pid_t of = 0);

  /// Closes all connections, and each new one, until it is told otherwise.
  void cut(bool on);

  /// Behaves like a server that moves without a word: the connections of now carry nothing more, and nobody closes
  /// them.
  void lose_connections();

 private:
  struct Connection;
  Relay(int to, Speaks what, Gate* gate);
  void serve(std::stop_token stop);
  void take_connection(std::list<Connection>& all);
  void take_requests(Connection& c);
  void take_answers(Connection& c);
  Clock::Time due_now(const Connection& c) const;
  void redirect(std::string& answer) const;
  bool muted(const Connection& c) const;
  static bool due_soon(const std::list<Connection>& all);
  bool is_cut() const;
  bool loses();
  void pass_gate(Connection& c);

  const int to_;
  const Speaks speaks_;
  Gate* const gate_;
  int listener_{-1}, port_{};
  std::uint64_t connections_{};  ///< the relay's thread's
  mutable std::mutex mutex_;
  std::map<std::pair<pid_t, int>, std::uint64_t> requests_;
  std::uint64_t round_trips_{};
  Clock::Duration delay_{}, handshake_{}, least_{}, most_{}, last_{};
  pid_t delayed_{}, muted_{};
  bool mute_{}, cut_{}, lose_{};
  std::jthread thread_;
};

}  // namespace tenure::test
