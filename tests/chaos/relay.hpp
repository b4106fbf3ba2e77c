// SPDX-License-Identifier: Apache-2.0
// A TCP relay on loopback that stands between candidates and a server: counts Kafka requests by process and
// kind, holds answers back, or lets no more requests through while the connections stay open. A gate sees each of
// Kafka's messages, and holds which it will.
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
inline constexpr int offset_commit = 8, join_group = 11, heartbeat = 12, sync_group = 14;

/// A request, or the answer to one.
struct KafkaMessage {
  bool request{};
  int api{}, version{};
  int error{};  ///< of the answer to a heartbeat
  std::string client_id;
  std::uint64_t connection{};
};

/// Called on the relay's thread. REQUIRES: outlives the relay.
class Gate {
 public:
  virtual ~Gate() = default;
  /// A client has sent it; what was sent before it may still be held.
  virtual void sent(const KafkaMessage& request) = 0;
  /// The first of its connection and direction: may it go on now? If not, it is asked again.
  virtual bool passes(const KafkaMessage&) = 0;
};

/// Any thread may call it.
class Relay {
 public:
  /// Listens on 127.0.0.1:`port` and forwards to 127.0.0.1:`to`. Port 0: does nothing. With a gate it understands
  /// Kafka only, and delays nothing.
  Relay(int port, int to, Gate* gate = nullptr);
  /// Listens on a free port of its own.
  explicit Relay(int to);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }

  /// Requests forwarded so far, by process and Kafka's api key.
  std::map<std::pair<pid_t, int>, std::uint64_t> requests() const;
  std::uint64_t requests(pid_t of, int api) const;

  /// Answers to this process (0: to all) that come from now on are held back for so long.
  void delay_answers(Clock::Duration by, pid_t of = 0);

  /// As if the server were so far away, for connections from now on: each answer comes that much later, and a new
  /// connection is spoken on that much later too, as TCP's handshake would have it.
  void far_away(Clock::Duration round_trip);

  /// As a proxy that is slow to begin: connections are taken one after the other, each after so long, up and down
  /// between these.
  void slow_to_connect(Clock::Duration least, Clock::Duration most);

  /// No more requests of this process (0: of all) pass, while its connections stay open. Answers owed to it
  /// still do.
  void mute(bool on, pid_t of = 0);

 private:
  struct Connection;
  void listen();
  void serve(std::stop_token stop);
  void take_connection(std::list<Connection>& all);
  void take_requests(Connection& c);
  void take_answers(Connection& c);
  bool muted(const Connection& c) const;
  void pass_gate(Connection& c);

  Gate* const gate_{};
  int listener_{-1}, port_{}, to_{};
  std::uint64_t connections_{};  ///< the relay's thread's
  mutable std::mutex mutex_;
  std::map<std::pair<pid_t, int>, std::uint64_t> requests_;
  Clock::Duration delay_{}, handshake_{}, least_{}, most_{}, last_{};
  pid_t delayed_{}, muted_{};
  bool mute_{};
  std::jthread thread_;
};

}  // namespace tenure::test
