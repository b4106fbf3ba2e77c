// SPDX-License-Identifier: Apache-2.0
// The store of one election: the transactions that read and replace its record, and the watch for news.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <tenure/conditional_store.hpp>
#include <tenure/etcd.hpp>
#include <tenure/kit/jitter.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/repeats.hpp>
#include <tenure/kit/store.hpp>

#include "connection.hpp"
#include "options.hpp"
#include "web/store.hpp"

namespace tenure::etcd {
namespace {

constexpr const char* transactions = "/v3/kv/txn";

/// More would mean that somebody else writes the beats that we expect.
constexpr int most_tries = 4;

/// The record of one election, read and replaced on condition. REQUIRES: used by one CallThread's calls.
class Cell {
 public:
  Cell(std::shared_ptr<Connection> connection, Keys keys)
      : connection_(std::move(connection)), keys_(std::move(keys)) {}

  Result<Read> read(const Until& until) {
    auto found = look(until);
    if (!found) return std::move(found).error();
    seen_ = *std::move(found);
    return seen_->read;
  }

  /// `pushed`: a record's value of which a push told. It may be late or forged.
  /// The write demands the very value that was seen, which has the beat in it. A revision would not do: those of a
  /// restored cluster come a second time.
  ///
  /// Of several beats any may stand there. If another one does than we thought, that write had no effect, and the next
  /// one demands what was found.
  //! [write]
  Result<Swap> replace(const std::optional<Expected>& expected, const Record& next, const Until& until,
                       const std::optional<std::string>& pushed = {}) {
    if (pushed)
      if (auto heard = standing_of(pushed, std::nullopt); heard && matches(expected, heard->read.record))
        seen_ = *std::move(heard);
    if (!seen_ || !matches(expected, seen_->read.record)) {
      const auto found = read(until);
      if (!found) return found.error();
    }
    const auto value = text_of(next);
    const bool news = !expected || expected->token != next.token || next.released;
    std::vector<Json> success{put(keys_.record, value), range(keys_.step_down)};
    if (news) success.push_back(put(keys_.news, value));
    const std::vector<Json> failure{range(keys_.record), range(keys_.step_down)};
    for (int tries = 0; tries < most_tries && matches(expected, seen_->read.record); ++tries) {
      const auto done = transact(transaction({still(keys_.record, seen_->value)}, success, failure), success.size(),
                                 failure.size(), until);
      if (!done) return done.error();
      auto stands = standing_of(done->succeeded ? value : done->values[0], done->values[1]);
      if (!stands) return std::move(stands).error();
      seen_ = *std::move(stands);
      if (done->succeeded) return Swap{true, seen_->read};
    }
    return Swap{false, seen_->read};
  }
  //! [write]

  /// A request for a tenure that is over would only take the place of a newer one.
  std::optional<Error> request_step_down(const StepDown& request, const Until& until) {
    const auto found = look(until);
    if (!found) return found.error();
    const auto& record = found->read.record;
    if (!record || record->token != request.token) return std::nullopt;
    const auto done = transact(transaction({}, {put(keys_.step_down, text_of(request))}, {}), 1, 0, until);
    if (!done) return done.error();
    return std::nullopt;
  }

 private:
  /// What stands there, byte for byte, and what it means.
  struct Standing {
    std::optional<std::string> value;
    Read read;
  };
  Result<Standing> standing_of(const std::optional<std::string>& record,
                               const std::optional<std::string>& step_down) const {
    auto read = read_of(record, step_down, keys_.record);
    if (!read) return std::move(read).error();
    return Standing{record, *std::move(read)};
  }

  /// A transaction that only reads is linearizable, as it names no range "serializable".
  Result<Standing> look(const Until& until) {
    const auto done = transact(transaction({}, {range(keys_.record), range(keys_.step_down)}, {}), 2, 0, until);
    if (!done) return done.error();
    return standing_of(done->values[0], done->values[1]);
  }

  Result<Done> transact(const Json& question, std::size_t of_success, std::size_t of_failure, const Until& until) {
    const auto answer = connection_->ask(transactions, question, until);
    if (!answer) return answer.error();
    auto done = done_of(*answer, of_success, of_failure);
    if (!done) return Error{Fault::unreachable, "etcd gave an answer that is none to a transaction"};
    return *std::move(done);
  }

  const std::shared_ptr<Connection> connection_;
  const Keys keys_;
  std::optional<Standing> seen_;  ///< Last. The next write demands it.
};

/// The longest pause from a watch that failed to the next attempt, if anybody still waits.
constexpr Clock::Duration watch_again = std::chrono::seconds(1);

/// One election's keys in a cluster.
class Store final : public web::Store<Cell> {
 public:
  Store(const Options& options, Keys keys, const std::shared_ptr<Connection>& connection, std::string election, Log log)
      : web::Store<Cell>(connection, std::make_shared<Cell>(connection, keys)),
        options_(options),
        election_(std::move(election)),
        keys_(std::move(keys)),
        log_(std::move(log)) {}

  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    return replace(expected, next, limit, std::exchange(pushed_, std::nullopt));
  }

  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    while (!limit.passed()) {
      const auto began = limit.clock.now();
      const auto heard = listen(limit);
      if (!heard) {
        warn(heard.error(), limit.clock.now());
        const bool passes = heard.error().fault == Fault::unreachable || heard.error().fault == Fault::timed_out;
        rest(passes ? limit.clock.now() + jittered(watch_again) : limit.by, limit);
        continue;
      }
      const auto before = std::exchange(known_, *heard);
      if (known_.ceased) rest(began + jittered(watch_again), limit);
      if (known_.watches != before.watches || !known_.value) return std::nullopt;
      const auto told = read_of(known_.value, std::nullopt, keys_.news);
      if (!told || !told->record) return std::nullopt;
      const auto& record = *told->record;
      const Version version{record.token, record.beat};
      if (version == seen) continue;
      if (!record.released) return std::nullopt;
      pushed_ = known_.value;
      return version;
    }
    return std::nullopt;
  }

 private:
  /// A connection of its own, which the first follower makes.
  struct Watch {
    explicit Watch(const Options& options) : connection(std::make_shared<Connection>(options)), thread(connection) {}
    const std::shared_ptr<Connection> connection;
    CallThread thread;
  };

  /// An answer that the limit cuts off is no error here.
  Result<Connection::News> listen(const Limit& limit) {
    try {
      if (!watch_) watch_.emplace(options_);
    } catch (const std::system_error& e) {
      return no_connection_left(e);
    }
    auto news =
        watch_->thread.ask([connection = watch_->connection, key = keys_.news, known = known_](
                               CallThread::Socket& socket) { return connection->await_news(key, known, socket); },
                           limit);
    if (!news && limit.passed()) return known_;
    return news;
  }

  void rest(Clock::Time until, const Limit& limit) {
    commands_.wait_out({limit.clock, std::min(limit.by, until), limit.stop});
  }

  void warn(const Error& error, Clock::Time now) {
    const auto news = repeats_.told(now, error);
    if (!news) return;
    tell(log_, Level::warning, "this candidate cannot watch, so it will notice a release late: " + news->message,
         {{"election", election_}, {"store", "etcd"}});
  }

  const Options options_;
  const std::string election_;
  const Keys keys_;
  const Log log_;
  std::optional<Watch> watch_;
  Connection::News known_;             ///< What the watch reported last.
  std::optional<std::string> pushed_;  ///< A released record, until it is claimed.
  Repeats repeats_;                    ///< Of why it cannot watch.
};

}  // namespace

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election, Log log) {
  auto keys = keys_of(checked(options), election);
  return std::make_shared<Store>(options, std::move(keys), std::make_shared<Connection>(options), election,
                                 std::move(log));
}

}  // namespace tenure::etcd
