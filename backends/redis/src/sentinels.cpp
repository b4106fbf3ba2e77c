// SPDX-License-Identifier: Apache-2.0
// The threads that ask and hear the Sentinels, and the vote on who is the master.
#include "sentinels.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
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
#include <tenure/kit/text.hpp>
#include <tenure/kit/try_order.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/log.hpp>

#include "options.hpp"
#include "reply.hpp"
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

struct Sentinels::State {
  /// One Sentinel: what it said, and how its thread is reached. The mutex guards it, but for `event`.
  struct One {
    One() {
      if (event < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    }
    ~One() { ::close(event); }
    One(const One&) = delete;
    One& operator=(const One&) = delete;

    const int event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::optional<Address> master;
    Time as_of{Time::min()};  ///< When it was asked that.
    std::size_t knows{};      ///< How many Sentinels there were then, itself included.
    bool away{};              ///< We tried it, and it cannot be asked.
    std::optional<Error> error;
    int opening{-1};  ///< The socket that is being made.
    bool endless{};   ///< Its thread asks for the login, or resolves the name. Nothing ends that.
  };
  /// Two connections, since who listens may ask nothing.
  struct Link {
    std::unique_ptr<Wire> asks, listens;
    Credentials login;  ///< Of both.
  };

  State(const Options& o, std::string c) : options(o), client(std::move(c)), all(o.servers.size()) {}

  const Options options;
  const std::string client;
  const std::unique_ptr<Waker> waker{boot_clock().make_waker()};  ///< The caller's waker, if its clock is the real one.

  std::mutex mutex;
  std::deque<One> all;
  std::optional<Address> master;
  std::stop_source moved;
  Time wanted{Time::min()};                              ///< Answers to what is asked from here on.
  Time doubted{Time::min()};                             ///< What was said before says nothing any more.
  std::optional<std::string> warning, warning_of_count;  ///< The second one is told once.
  bool warned_of_count{};
  Waker* caller{};
  std::atomic<bool> quit{false};

  void wake() const {
    const std::uint64_t one = 1;
    for (const auto& each : all) [[maybe_unused]] const auto written = ::write(each.event, &one, sizeof one);
  }

  void end() {
    const std::lock_guard lock(mutex);
    quit = true;
    for (const auto& each : all)
      if (each.opening >= 0) ::shutdown(each.opening, SHUT_RDWR);
    wake();
  }

  /// Whether its thread cannot be waited for: a socket that is not connecting yet cannot be shut down either. After
  /// end() none begins with that.
  bool endless(std::size_t i) {
    const std::lock_guard lock(mutex);
    return all[i].endless || all[i].opening >= 0;
  }

  // ---- judging; the mutex is held ----

  /// How many Sentinels there are: the options may name one address for all of them, or some alone. Who does not answer
  /// says nothing of that any more. Of those who do the greatest number counts, since a claim too few is no danger.
  std::size_t count(Time since) const {
    auto out = all.size();
    for (const auto& one : all)
      if (one.as_of > Time::min() && one.as_of >= since) out = std::max(out, one.knows);
    return out;
  }

  /// Judges by what was asked at `since` or later. Returns nothing if that is not known yet. Others fail over only if
  /// more than half of all Sentinels agree. So a claim needs half of them: behind a cut that parts them, less may
  /// answer, and name the old master.
  std::optional<Result<Address>> judge(Time since, bool claims = false) const {
    const auto there_are = count(since);
    std::vector<Address> named;
    std::optional<Error> error;
    bool may_answer = false;
    for (const auto& one : all) {
      const bool answered = one.as_of > Time::min() && one.as_of >= since;
      if (answered && one.master) named.push_back(*one.master);
      if (one.error && (!error || error->fault == Fault::unreachable)) error = one.error;
      may_answer = may_answer || (!answered && !one.away);
    }
    for (const auto& one : named) {
      const auto votes = static_cast<std::size_t>(std::count(named.begin(), named.end(), one));
      if (votes * 2 > there_are) return one;
      if (!may_answer && votes * 2 > named.size() && (!claims || votes * 2 >= there_are)) return one;
    }
    if (may_answer) return std::nullopt;
    if (!named.empty())
      return Error{all.size() * 2 < there_are ? Fault::misconfigured : Fault::unreachable,
                   "the Sentinels disagree about the master, or fewer than half of them answer" +
                       (there_are > all.size() ? "; they know " + std::to_string(there_are) +
                                                     " of their kind: name all, each by an address of its own. If some "
                                                     "are gone for good, SENTINEL RESET at each makes them forget those"
                                               : std::string())};
    return error.value_or(Error{Fault::unreachable, "no Sentinel answers"});
  }

  /// By the returned source the caller tells those who use the old master, with no lock held.
  std::stop_source move(const Address& to) {
    if (master == to) return std::stop_source(std::nostopstate);
    const bool first = !master;
    master = to;
    return first ? std::stop_source(std::nostopstate) : std::exchange(moved, std::stop_source());
  }

  // ---- the thread of each Sentinel ----

  void serve(std::size_t i) {
    TryOrder<Address> order;  // of the addresses of its name
    for (auto pause = first_pause; !quit; pause = std::min(pause * 2, longest_pause)) {
      Link link;
      const auto error = connect(i, order, link);
      know(i, !link.asks, error);
      if (link.asks) {
        if (error) warn("a fail-over may be noticed a second late: " + error->message);
        pause = first_pause;
        know(i, true, watch(i, link));
      }
      for (const auto by = now() + jittered(pause); !quit && now() < by;) sleep(i, Link(), by);
    }
  }

  void know(std::size_t i, bool away, const std::optional<Error>& error) {
    const std::lock_guard lock(mutex);
    all[i].away = away;
    all[i].error = error;
    if (caller) caller->wake();
  }

  void warn(std::string message) {
    const std::lock_guard lock(mutex);
    warning = std::move(message);
  }

  Time wanted_since() {
    const std::lock_guard lock(mutex);
    return wanted;
  }

  /// Asks it and hears it. Returns why that is over.
  Error watch(std::size_t i, const Link& link) {
    const auto every = link.listens ? ask_every : ask_the_unheard_every;
    std::optional<Time> asked;
    std::size_t knows = 0;
    int waits = 0;  // for so many answers
    bool overtaken = false;
    while (!quit) {
      if (waits && now() >= *asked + answer_patience) return link.asks->broken("no answer in time");
      if (!waits && (!asked || *asked < wanted_since() || now() >= *asked + every)) {
        asked = now();
        waits = 2;
        if (auto error = link.asks->send(
                {{"SENTINEL", "MASTER", options.master}, {"SENTINEL", "get-master-addr-by-name", options.master}}))
          return *error;
      }
      sleep(i, link, *asked + (waits ? answer_patience : every));
      if (link.listens && readable(*link.listens))
        if (auto error =
                read(*link.listens, [&](const Reply& reply) { overtaken |= announced(i, reply) && waits > 0; }))
          return *error;
      const auto take = [&](const Reply& reply) {
        if (waits == 0) return;  // It was not asked.
        if (--waits == 1) {
          knows = counted(reply, link.asks->name());
          return;
        }
        // It may have been given before that announcement, and name the old master. Then nobody would ask again.
        if (std::exchange(overtaken, false)) return asked.reset();
        answered(i, link, *asked, knows, reply);
      };
      if (readable(*link.asks))
        if (auto error = read(*link.asks, take)) return *error;
    }
    return link.asks->broken("it is asked nothing more");
  }

  /// Until something has come, somebody wants to know more, or that time.
  void sleep(std::size_t i, const Link& link, Time until) const {
    std::vector<pollfd> fds{{all[i].event, POLLIN, 0}};
    for (const auto* wire : {link.asks.get(), link.listens.get()})
      if (wire) fds.push_back({wire->descriptor(), POLLIN, 0});
    const auto left = std::clamp<Clock::Duration>(until - now(), milliseconds(0), seconds(60));
    poll_all(fds, static_cast<int>(left / milliseconds(1)) + 1);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = ::read(all[i].event, &count, sizeof count);
  }

  static bool readable(const Wire& wire) {
    pollfd fd{wire.descriptor(), POLLIN, 0};
    return ::poll(&fd, 1, 0) != 0;
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

  /// Whether it announces another master.
  bool announced(std::size_t i, const Reply& reply) {
    if (reply.list.size() != 3 || reply.list[0].text != "message") return false;
    const auto announced_switch = switch_of(reply.list[2].text);
    if (!announced_switch || announced_switch->name != options.master) return false;
    std::unique_lock lock(mutex);
    all[i].master = announced_switch->to;
    if (master != announced_switch->from) return true;  // Late: another one told us.
    auto left = move(announced_switch->to);
    lock.unlock();
    left.request_stop();
    return true;
  }

  /// How many Sentinels the answer to SENTINEL MASTER tells of. 0: it tells of none, and we can do without it.
  std::size_t counted(const Reply& reply, const std::string& where) {
    for (std::size_t at = 0; at + 1 < reply.list.size(); at += 2)
      if (reply.list[at].text == "num-other-sentinels")
        return std::size_t{number<std::uint16_t>(reply.list[at + 1].text).value_or(0)} + 1;
    const std::lock_guard lock(mutex);
    if (code_of(reply.text) == "NOPERM" && !std::exchange(warned_of_count, true))
      warning_of_count =
          where +
          " may not tell how many Sentinels there are, so a claim counts those alone that the URL names: "
          "permit it (+sentinel|master), or name all";
    return 0;
  }

  void answered(std::size_t i, const Link& link, Time asked, std::size_t knows, const Reply& reply) {
    const bool named = reply.list.size() == 2 && !reply.list[0].text.empty();
    const auto port = named ? port_of(reply.list[1].text) : std::nullopt;
    std::unique_lock lock(mutex);
    auto& one = all[i];
    one.as_of = asked;
    one.knows = knows;
    one.master.reset();
    one.error.reset();
    if (port)
      one.master = Address{reply.list[0].text, *port};
    else if (reply.is_error() && reply.text.find("unknown command") != reply.text.npos)
      one.error = Error{Fault::misconfigured, to_string(options.servers[i]) +
                                                  " is not a Sentinel but a Redis server; name its Sentinels (port "
                                                  "26379), or write redis:// for the server itself"};
    else if (reply.is_error())
      one.error = explained(reply, link.login.password, link.asks->name(), "SENTINEL");
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

  // ---- connecting ----

  /// While it lives, the end of the Sentinels ends what waits for this socket.
  class Endable {
   public:
    Endable(State& state, One& one, int socket) : state_(state), one_(one) {
      const std::lock_guard lock(state_.mutex);
      one_.opening = socket;
    }
    ~Endable() {
      const std::lock_guard lock(state_.mutex);
      one_.opening = -1;
    }
    Endable(const Endable&) = delete;
    Endable& operator=(const Endable&) = delete;

   private:
    State& state_;
    One& one_;
  };

  Error nothing_more(const Address& named) const {
    return {Fault::unreachable, "Sentinel " + to_string(named) + ": it is asked nothing more"};
  }

  /// What nothing ends: the login is asked for, and the name resolved.
  Result<std::vector<Address>> resolve(std::size_t i, Credentials& out) {
    const auto& named = options.servers[i];
    {
      const std::lock_guard lock(mutex);
      if (quit) return nothing_more(named);
      all[i].endless = true;
    }
    auto found = [&]() -> Result<std::vector<Address>> {
      try {
        out = login();
      } catch (const NoCredentials& e) {
        return Error{Fault::forbidden, "Sentinel " + to_string(named) + ": " + e.what()};
      }
      return Wire("Sentinel " + to_string(named)).resolve(named);
    }();
    const std::lock_guard lock(mutex);
    all[i].endless = false;
    return found;
  }

  /// Why it cannot be asked; or, if it can, why it is not heard.
  std::optional<Error> connect(std::size_t i, TryOrder<Address>& order, Link& out) {
    auto found = resolve(i, out.login);
    if (!found) return found.error();
    auto addresses = order.of(*std::move(found));
    addresses.resize(std::min(addresses.size(), most_addresses));
    std::optional<Error> error;
    for (const auto& at : addresses) {
      order.tried(at);
      error = connect_to(i, at, out);
      if (!out.asks) {
        order.failed(at);
        continue;
      }
      order.served(at);
      break;
    }
    return error;
  }

  /// Asked for each time, as that of the store: a password may change while we run.
  Credentials login() const {
    if (!options.sentinel_credentials) return {options.sentinel_user, options.sentinel_password};
    return credentials_by(options.sentinel_credentials, Redactor({}));
  }

  std::optional<Error> connect_to(std::size_t i, const Address& at, Link& out) {
    auto asks = std::make_unique<Wire>("Sentinel " + to_string(options.servers[i], at));
    auto listens = std::make_unique<Wire>(asks->name());
    if (auto error = open(i, *asks, at, out.login, std::nullopt)) return error;
    out.asks = std::move(asks);
    auto error = open(i, *listens, at, out.login, Command{"SUBSCRIBE", "+switch-master"});
    if (!error) out.listens = std::move(listens);
    return error;
  }

  std::optional<Error> open(std::size_t i, Wire& wire, const Address& at, const Credentials& login,
                            const std::optional<Command>& last) {
    if (auto error = wire.open(at)) return error;
    const Endable socket(*this, all[i], wire.descriptor());
    if (quit) return nothing_more(options.servers[i]);
    if (auto error = wire.connect(connect_patience)) return error;
    wire.set_patience(connect_patience);
    if (auto error = wire.secure(options, options.servers[i].host)) return error;
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
    : state_(std::make_shared<State>(options, std::move(client))), made_by_(::getpid()) {
  threads_.reserve(options.servers.size());
  try {
    for (std::size_t i = 0; i < options.servers.size(); ++i)
      threads_.push_back(start_thread("tenure watch", [state = state_, i] { state->serve(i); }));
  } catch (...) {  // A thread or memory has run out.
    end();
    throw;
  }
}

Sentinels::~Sentinels() {
  if (forked())
    new std::vector<std::thread>(std::move(threads_));
  else
    end();
}

/// Those that were started. They end at once, but for what nothing ends.
void Sentinels::end() {
  state_->end();
  for (std::size_t i = 0; i < threads_.size(); ++i)
    if (state_->endless(i))
      leave_behind(std::move(threads_[i]));
    else
      threads_[i].join();
}

bool Sentinels::forked() const { return ::getpid() != made_by_; }

Result<Sentinels::Named> Sentinels::master(Time since, const Limit& limit) {
  if (forked()) return forked_child("the store");
  auto& state = *state_;
  const auto own = &limit.clock == &boot_clock() ? nullptr : limit.clock.make_waker();
  auto& waker = own ? *own : *state.waker;
  std::stop_source left(std::nostopstate);
  std::unique_lock lock(state.mutex);
  const bool claims = since > Time::min();
  since = std::max(since, state.doubted);
  if (since > state.wanted) {
    state.wanted = since;
    state.wake();
  }
  for (;;) {
    if (since == Time::min() && state.master) break;
    const auto judged = state.judge(since, claims);
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
  auto& first = state_->warning_of_count ? state_->warning_of_count : state_->warning;
  return std::exchange(first, std::nullopt);
}

std::shared_ptr<Sentinels> sentinels_of(const Options& options, const std::string& client) {
  return options.master.empty() ? nullptr : std::make_shared<Sentinels>(options, client);
}

}  // namespace tenure::redis
