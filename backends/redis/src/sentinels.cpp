// SPDX-License-Identifier: Apache-2.0
// The thread that asks and hears the Sentinels, and the vote on who is the master.
#include "sentinels.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <tenure/kit/jitter.hpp>
#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/poll_all.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/try_order.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/log.hpp>

#include "handshake.hpp"
#include "options.hpp"
#include "wire.hpp"

namespace tenure::redis {
namespace {

using Time = Clock::Time;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::Duration connect_patience = seconds(2), answer_patience = seconds(1),
                          read_patience = milliseconds(100);
constexpr Clock::Duration first_pause = milliseconds(50), longest_pause = seconds(2);
/// Shows that a connection still leads to a Sentinel that would announce a new master.
constexpr Clock::Duration ask_every = seconds(5), ask_the_unheard_every = seconds(1);

Time now() { return boot_clock().now(); }

}  // namespace

std::optional<Switch> switch_of(const std::string& message) {
  std::istringstream in(message);
  Switch out;
  std::string from, to;
  if (!(in >> out.name >> out.from.host >> from >> out.to.host >> to)) return std::nullopt;
  const auto from_port = port_of(from), to_port = port_of(to);
  if (!from_port || !to_port) return std::nullopt;
  out.from.port = *from_port;
  out.to.port = *to_port;
  return out;
}

struct Sentinels::State : std::enable_shared_from_this<Sentinels::State> {
  /// What one Sentinel said. The mutex guards it.
  struct Said {
    std::optional<Address> master;
    Time as_of{Time::min()};  ///< When it was asked that.
    bool away{};              ///< We tried it, and it cannot be asked.
    std::optional<Error> error;
  };
  /// What a thread made, which ends then. It has a thread of its own, since nothing ends a name resolution.
  struct Made {
    std::size_t which{};
    std::unique_ptr<Wire> asks, listens;
    Credentials login;  ///< Of both.
    std::optional<Error> error;
  };
  /// The thread's alone.
  struct Link {
    std::unique_ptr<Wire> asks, listens;
    std::string password;        ///< By which it logged in.
    bool connecting{}, waits{};  ///< waits: for an answer.
    Time asked{Time::min()};     ///< Last.
    Time not_before{Time::min()};
    Clock::Duration pause{first_pause};
  };

  State(const Options& o, std::string c)
      : options(o), client(std::move(c)), said(o.servers.size()), links(o.servers.size()), orders(o.servers.size()) {
    if (event < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    opening.reserve(links.size());
  }
  ~State() {
    if (event >= 0) ::close(event);
  }

  const Options options;
  const std::string client;
  const int event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  const std::unique_ptr<Waker> waker{boot_clock().make_waker()};  ///< The caller's waker, if its clock is the real one.

  std::mutex mutex;
  std::vector<Said> said;
  std::optional<Address> master;
  std::stop_source moved;
  Time wanted{Time::min()};   ///< Answers to what is asked from here on.
  Time doubted{Time::min()};  ///< What was said before says nothing any more.
  std::vector<Made> made;
  std::optional<std::string> warning;
  Waker* caller{};
  std::vector<int> opening;  ///< The sockets of those that are being made, of each Sentinel one at most.
  bool quit{};

  std::vector<Link> links;
  std::vector<TryOrder<Address>> orders;  ///< Of the addresses of each Sentinel's name. The connecting thread's alone.

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);
  }

  // ---- judging; the mutex is held ----

  /// Judges by what was asked at `since` or later. Returns nothing if that is not known yet.
  std::optional<Result<Address>> judge(Time since) const {
    std::vector<Address> named;
    std::optional<Error> error;
    bool may_answer = false;
    for (const auto& one : said) {
      const bool answered = one.as_of > Time::min() && one.as_of >= since;
      if (answered && one.master) named.push_back(*one.master);
      if (one.error && (!error || error->fault == Fault::unreachable)) error = one.error;
      may_answer = may_answer || (!answered && !one.away);
    }
    for (const auto& one : named) {
      const auto votes = static_cast<std::size_t>(std::count(named.begin(), named.end(), one));
      if (votes * 2 > said.size() || (!may_answer && votes * 2 > named.size())) return one;
    }
    if (may_answer) return std::nullopt;
    if (!named.empty()) return Error{Fault::unreachable, "the Sentinels disagree about the master"};
    return error.value_or(Error{Fault::unreachable, "no Sentinel answers"});
  }

  /// By the returned source the caller tells those who use the old master, with no lock held.
  std::stop_source move(const Address& to) {
    if (master == to) return std::stop_source(std::nostopstate);
    const bool first = !master;
    master = to;
    return first ? std::stop_source(std::nostopstate) : std::exchange(moved, std::stop_source());
  }

  // ---- the thread ----

  void run() {
    std::unique_lock lock(mutex);
    while (!quit) {
      for (auto& one : std::exchange(made, {})) take(std::move(one));
      const auto due = wanted;
      lock.unlock();
      for (std::size_t i = 0; i < links.size(); ++i) ask_or_connect(i, due);
      sleep();
      for (std::size_t i = 0; i < links.size(); ++i) receive(i);
      lock.lock();
    }
  }

  void take(Made one) {
    auto& link = links[one.which];
    auto& known = said[one.which];
    link.connecting = link.waits = false;
    link.asks = std::move(one.asks);
    link.listens = std::move(one.listens);
    link.password = std::move(one.login.password);
    link.asked = Time::min();
    known.error = one.error;
    known.away = !link.asks;
    if (link.asks) {
      link.pause = first_pause;
      if (!link.listens && one.error) warning = "a fail-over may be noticed a second late: " + one.error->message;
    } else {
      back_off(link);
    }
    if (caller) caller->wake();
  }

  static void back_off(Link& link) {
    link.not_before = now() + jittered(link.pause);
    link.pause = std::min(link.pause * 2, longest_pause);
  }

  /// Asks it or connects to it, if that is due.
  void ask_or_connect(std::size_t i, Time due) {
    auto& link = links[i];
    if (!link.asks) {
      if (!link.connecting && now() >= link.not_before) begin_to_connect(i);
      return;
    }
    if (link.waits) {
      if (now() >= link.asked + answer_patience) disconnect(i, link.asks->broken("no answer in time"));
      return;
    }
    if (link.asked >= due && link.asked > Time::min() && now() < next_ask(link)) return;
    link.asked = now();
    link.waits = true;
    if (auto error = link.asks->send({{"SENTINEL", "get-master-addr-by-name", options.master}})) disconnect(i, *error);
  }

  static Time next_ask(const Link& link) { return link.asked + (link.listens ? ask_every : ask_the_unheard_every); }

  void begin_to_connect(std::size_t i) {
    links[i].connecting = true;
    try {
      leave_behind(start_thread("tenure watch", [self = shared_from_this(), i] { self->connect(i); }));
    } catch (const std::system_error&) {
      links[i].connecting = false;
      disconnect(i, {Fault::unreachable, "no thread is left to connect to a Sentinel"});
    }
  }

  void disconnect(std::size_t i, const Error& why) {
    auto& link = links[i];
    link.asks.reset();
    link.listens.reset();
    link.waits = false;
    back_off(link);
    const std::lock_guard lock(mutex);
    said[i].away = true;
    said[i].error = why;
    if (caller) caller->wake();
  }

  void sleep() const {
    std::vector<pollfd> fds{{event, POLLIN, 0}};
    auto until = Time::max();
    for (const auto& link : links) {
      for (const auto* wire : {link.asks.get(), link.listens.get()})
        if (wire) fds.push_back({wire->descriptor(), POLLIN, 0});
      if (!link.connecting)
        until = std::min(until, !link.asks   ? link.not_before
                                : link.waits ? link.asked + answer_patience
                                             : next_ask(link));
    }
    const auto left = std::clamp<Clock::Duration>(until - std::min(now(), until), milliseconds(0), seconds(60));
    poll_all(fds, static_cast<int>(left / milliseconds(1)) + 1);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = ::read(event, &count, sizeof count);
  }

  static bool readable(const Wire& wire) {
    pollfd fd{wire.descriptor(), POLLIN, 0};
    return ::poll(&fd, 1, 0) != 0;
  }

  void receive(std::size_t i) {
    auto& link = links[i];
    if (link.listens && readable(*link.listens))
      if (auto error = read(*link.listens, [&](const Reply& reply) { announced(i, reply); }))
        return disconnect(i, *error);
    if (link.asks && readable(*link.asks))
      if (auto error = read(*link.asks, [&](const Reply& reply) { answered(i, reply); })) return disconnect(i, *error);
  }

  template <class Take>
  static std::optional<Error> read(Wire& wire, Take take) {
    if (auto error = wire.fill()) return error;
    for (;;) {
      auto come = wire.next();
      if (!come) return come.error();
      auto& reply = *come;
      if (!reply) return std::nullopt;
      take(*reply);
    }
  }

  void announced(std::size_t i, const Reply& reply) {
    if (reply.list.size() != 3 || reply.list[0].text != "message") return;
    const auto announced_switch = switch_of(reply.list[2].text);
    if (!announced_switch || announced_switch->name != options.master) return;
    std::unique_lock lock(mutex);
    said[i].master = announced_switch->to;
    if (master != announced_switch->from) return;  // Late: another one told us.
    auto left = move(announced_switch->to);
    lock.unlock();
    left.request_stop();
  }

  void answered(std::size_t i, const Reply& reply) {
    auto& link = links[i];
    link.waits = false;
    const bool named = reply.list.size() == 2 && !reply.list[0].text.empty();
    const auto port = named ? port_of(reply.list[1].text) : std::nullopt;
    std::unique_lock lock(mutex);
    auto& one = said[i];
    one.as_of = link.asked;
    one.master.reset();
    one.error.reset();
    if (port)
      one.master = Address{reply.list[0].text, *port};
    else if (reply.is_error() && reply.text.find("unknown command") != reply.text.npos)
      one.error = Error{Fault::misconfigured, to_string(options.servers[i]) +
                                                  " is not a Sentinel but a Redis server; name its Sentinels (port "
                                                  "26379), or write redis:// for the server itself"};
    else if (reply.is_error())
      one.error = explained(reply, link.password, link.asks->name(), "SENTINEL");
    else if (reply.kind == Reply::Kind::nil)
      one.error = Error{Fault::misconfigured, link.asks->name() + " knows no master named \"" +
                                                  printable(options.master) + "\"; set the name it monitors"};
    else
      one.error = link.asks->broken("it names no address for the master");
    const auto judged = judge(wanted);
    auto left = judged && *judged ? move(**judged) : std::stop_source(std::nostopstate);
    if (caller) caller->wake();
    lock.unlock();
    left.request_stop();
  }

  // ---- connecting, on a thread of its own ----

  /// While it lives, the end of the Sentinels ends what waits for this socket.
  class Endable {
   public:
    Endable(State& state, int socket) : state_(state), socket_(socket) {
      const std::lock_guard lock(state_.mutex);
      state_.opening.push_back(socket_);
      if (state_.quit) ::shutdown(socket_, SHUT_RDWR);
    }
    ~Endable() {
      const std::lock_guard lock(state_.mutex);
      std::erase(state_.opening, socket_);
    }
    Endable(const Endable&) = delete;
    Endable& operator=(const Endable&) = delete;

   private:
    State& state_;
    const int socket_;
  };

  void end() {
    const std::lock_guard lock(mutex);
    quit = true;
    for (const int socket : opening) ::shutdown(socket, SHUT_RDWR);
    wake();
  }

  void connect(std::size_t i) {
    Made out;
    out.which = i;
    const auto& named = options.servers[i];
    try {
      out.login = login();
      connect_to(named, orders[i], out);
    } catch (const NoCredentials& e) {
      out.error = Error{Fault::unreachable, "Sentinel " + to_string(named) + ": " + e.what()};
    }
    const std::lock_guard lock(mutex);
    made.push_back(std::move(out));
    wake();
  }

  /// Asked for each time, as that of the store: a password may change while we run.
  Credentials login() const {
    if (!options.sentinel_credentials) return {options.sentinel_user, options.sentinel_password};
    return credentials_by(options.sentinel_credentials, Redactor({}));
  }

  void connect_to(const Address& named, TryOrder<Address>& order, Made& out) {
    auto found = Wire("Sentinel " + to_string(named)).resolve(named);
    if (!found) out.error = found.error();
    auto addresses = found ? order.of(*std::move(found)) : std::vector<Address>();
    addresses.resize(std::min(addresses.size(), most_addresses));
    for (const auto& at : addresses) {
      order.tried(at);
      connect_to(at, named, out);
      if (out.asks) return order.served(at);
      order.failed(at);
    }
  }

  void connect_to(const Address& at, const Address& named, Made& out) {
    auto asks = std::make_unique<Wire>("Sentinel " + to_string(named, at));
    auto listens = std::make_unique<Wire>(asks->name());
    out.error = open(*asks, at, named, out.login, std::nullopt);
    if (out.error) return;
    out.asks = std::move(asks);
    out.error = open(*listens, at, named, out.login, Command{"SUBSCRIBE", "+switch-master"});
    if (!out.error) out.listens = std::move(listens);
  }

  std::optional<Error> open(Wire& wire, const Address& at, const Address& named, const Credentials& login,
                            const std::optional<Command>& last) {
    if (auto error = wire.open(at)) return error;
    const Endable socket(*this, wire.descriptor());
    if (auto error = wire.connect(connect_patience)) return error;
    wire.set_patience(connect_patience);
    if (auto error = wire.secure(options, named.host)) return error;
    std::vector<HandshakeStep> steps;
    add_auth(steps, wire, login.user, login.password);
    add_client_name(steps, wire, client);
    if (last)
      steps.push_back({*last, [&](const Reply& reply) -> std::optional<Error> {
                         if (!reply.is_error()) return std::nullopt;
                         return explained(reply, login.password, wire.name(), (*last)[0]);
                       }});
    auto error = shake_hands(wire, steps);
    wire.set_patience(read_patience);
    return error;
  }
};

Sentinels::Sentinels(const Options& options, std::string client)
    : state_(std::make_shared<State>(options, std::move(client))),
      made_by_(::getpid()),
      thread_(start_thread("tenure watch", [state = state_] { state->run(); })) {}

bool Sentinels::forked() const { return ::getpid() != made_by_; }

Sentinels::~Sentinels() {
  if (forked()) {
    new std::thread(std::move(thread_));
    return;
  }
  state_->end();
  thread_.join();
}

Result<Sentinels::Named> Sentinels::master(Time since, const Limit& limit) {
  if (forked()) return forked_child("the store");
  auto& state = *state_;
  const auto own = &limit.clock == &boot_clock() ? nullptr : limit.clock.make_waker();
  auto& waker = own ? *own : *state.waker;
  std::stop_source left(std::nostopstate);
  std::unique_lock lock(state.mutex);
  since = std::max(since, state.doubted);
  if (since > state.wanted) {
    state.wanted = since;
    state.wake();
  }
  for (;;) {
    if (since == Time::min() && state.master) break;
    const auto judged = state.judge(since);
    if (judged && !*judged) return judged->error();
    if (judged) {
      left = state.move(**judged);
      break;
    }
    if (limit.passed()) return Error{Fault::timed_out, "no Sentinel has said by the call's limit who the master is"};
    state.caller = &waker;
    lock.unlock();
    wait(waker, limit);
    lock.lock();
    state.caller = nullptr;
  }
  Named out{*state.master, state.moved.get_token()};
  lock.unlock();
  left.request_stop();
  return out;
}

void Sentinels::doubt() {
  if (forked()) return;
  const std::lock_guard lock(state_->mutex);
  state_->doubted = now();
}

std::optional<Sentinels::Named> Sentinels::known() {
  if (forked()) return std::nullopt;
  const std::lock_guard lock(state_->mutex);
  if (!state_->master) return std::nullopt;
  return Named{*state_->master, state_->moved.get_token()};
}

void Sentinels::wait_out(const Limit& limit) {
  if (&limit.clock != &boot_clock()) return tenure::wait_out(limit);
  while (!limit.passed()) wait(*state_->waker, limit);
}

Clock::Time Sentinels::ask() {
  if (forked()) return now();
  const std::lock_guard lock(state_->mutex);
  state_->wanted = now();
  state_->wake();
  return state_->wanted;
}

std::optional<std::string> Sentinels::take_warning() {
  if (forked()) return std::nullopt;
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->warning, std::nullopt);
}

std::shared_ptr<Sentinels> sentinels_of(const Options& options, const std::string& client) {
  return options.master.empty() ? nullptr : std::make_shared<Sentinels>(options, client);
}

}  // namespace tenure::redis
