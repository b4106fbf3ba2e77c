// SPDX-License-Identifier: Apache-2.0
// Goal: whatever answers at the server's address, no verb crashes, and none takes an answer of another shape for one.
// Method: a fake server that answers each statement with every shape that the protocol has.
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tenure/check.hpp>
#include <tenure/group_store.hpp>

#include "checkup.hpp"
#include "client.hpp"
#include "fake_server.hpp"
#include "support.hpp"

namespace tenure::postgres::test {
namespace {

using Texts = std::vector<std::optional<std::string>>;

std::string int16(std::size_t value) { return {static_cast<char>(value >> 8), static_cast<char>(value)}; }
std::string int32(std::size_t value) { return int16(value >> 16) + int16(value & 0xffff); }
std::string message(char kind, const std::string& body) { return kind + int32(body.size() + 4) + body; }
std::string text(const std::string& value) { return value + '\0'; }

std::string columns(const std::vector<std::string>& names) {
  std::string body = int16(names.size());
  for (const auto& name : names)
    body += text(name) + int32(0) + int16(0) + int32(25) + int16(0xffff) + int32(0xffffffff) + int16(0);
  return message('T', body);
}
std::string row(const Texts& values) {
  std::string body = int16(values.size());
  for (const auto& value : values) body += value ? int32(value->size()) + *value : int32(0xffffffff);
  return message('D', body);
}
const std::string done = message('C', text("SELECT 1")), ready = message('Z', "I");

std::string of_width(std::size_t width, const std::vector<Texts>& rows) {
  auto out = columns(std::vector<std::string>(width, "c"));
  for (const auto& one : rows) out += row(one);
  return out + done;
}

std::string copying(char kind, std::size_t width) {
  std::string body = '\0' + int16(width);
  for (std::size_t i = 0; i < width; ++i) body += int16(0);
  return message(kind, body) + (kind == 'H' ? message('c', "") + done : "");
}

/// Each is an answer to any statement.
std::vector<std::string> shapes() {
  std::vector<std::string> out{done, message('I', ""), "",
                               message('N', 'S' + text("WARNING") + 'M' + text("hm") + '\0') + done};
  for (const std::size_t width : {1u, 2u, 12u, 13u, 14u, 16u, 18u, 19u, 40u}) {
    out.push_back(of_width(width, {}));
    for (const auto& value : {std::optional<std::string>(),
                              {"x"},
                              {""},
                              {"1"},
                              {"-1"},
                              {"t"},
                              {"answer"},
                              {"session"},
                              {std::string(99, '9')}})
      for (const std::size_t rows : {1u, 3u})
        out.push_back(of_width(width, std::vector<Texts>(rows, Texts(width, value))));
    for (const char kind : {'G', 'H'}) out.push_back(copying(kind, width));
  }
  return out;
}

/// What a good introduction says of so many tables.
std::string introduced(int tables, int pid) {
  const std::vector<std::string> names{"pid",      "recovers",     "nspname",   "relname",   "kind",  "persistence",
                                       "may",      "only_reads",   "prepared",  "worked_us", "place", "owner",
                                       "squatted", "foreign_code", "elsewhere", "notifies",  "hides", "number"};
  auto out = columns(names);
  for (int i = 0; i < tables; ++i)
    out += row({std::to_string(pid), "f", "public", "t", "r", "p", "t", "f", "t", "1", "public.t", "o", std::nullopt,
                std::nullopt, std::nullopt, "t", "f", std::to_string(i + 1)});
  return out + done;
}

/// Whether all of it has come, up to what is to be answered.
bool complete(const std::string& request) {
  const auto length = [&](std::size_t at) {
    std::size_t out = 0;
    for (std::size_t i = at; i < at + 4; ++i) out = out << 8 | static_cast<unsigned char>(request[i]);
    return out;
  };
  if (request.size() < 5 || request[0] == 0) return request.size() >= 8;
  char last = 0;
  std::size_t at = 0;
  for (; at + 5 <= request.size(); at += 1 + length(at + 1)) last = request[at];
  return at == request.size() && (last == 'Q' || last == 'S' || last == 'X');
}

/// Introduces itself as it should, unless `introduction` is another shape, and answers each statement with `answer`.
class Pretender {
 public:
  Pretender(int tables, bool pooled) : tables_(tables), pid_(pooled ? 9 : 7) {}

  void answer(std::string introduction, std::string with) {
    const std::lock_guard lock(mutex_);
    introduction_ = std::move(introduction);
    answer_ = std::move(with);
  }
  /// From now on these are answered by `hook`, unless it returns nothing.
  void answer_by(std::function<std::optional<std::string>(const std::string& request)> hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
  }
  void push(const std::string& bytes) { server_.push(0, bytes); }
  std::string conninfo() const {
    return "host=127.0.0.1 user=u dbname=d sslmode=disable gssencmode=disable port=" + server_.address().substr(10);
  }

 private:
  tenure::test::FakeServer::Answer answered(const std::string& chunk) {
    thread_local std::string pending;  // Each connection has a thread of its own.
    pending += chunk;
    if (!complete(pending)) return {};
    const auto request = std::exchange(pending, {});
    const std::lock_guard lock(mutex_);
    if (request.size() > 8 && request[0] == 0) {
      std::string hello = message('R', int32(0));
      for (const auto& [name, value] : {std::pair("server_version", "15.1"),
                                        {"client_encoding", "UTF8"},
                                        {"standard_conforming_strings", "on"},
                                        {"integer_datetimes", "on"}})
        hello += message('S', text(name) + text(value));
      return {hello + message('K', int32(7) + int32(1)) + ready};
    }
    const std::string begun = request.starts_with('P') ? message('1', "") + message('2', "") : "";
    if (const auto by_hook = hook_ ? hook_(request) : std::nullopt) return {begun + *by_hook + ready};
    if (request.find("pg_is_in_recovery") != request.npos)
      return {(introduction_.empty() ? introduced(tables_, pid_) : introduction_) + ready};
    if (request.starts_with('X')) return {"", true};
    return {begun + answer_ + ready};
  }

  const int tables_, pid_;
  std::mutex mutex_;
  std::string introduction_, answer_;
  std::function<std::optional<std::string>(const std::string&)> hook_;
  tenure::test::FakeServer server_{[this](const std::string& request) { return answered(request); }};
};

/// Each verb returns: an error of ours, or what an answer of that shape may say.
template <class T>
void returned(const Result<T>& result) {
  if (!result) seen(result.error());
}
void returned(const std::optional<Error>& error) {
  if (error) seen(*error);
}

void ask_for_one(const Options& options) {
  const auto table = postgres::store(options, "jobs");
  returned(table->read(within(10s)));
  returned(table->compare_and_set(std::nullopt, record(1, 1), within(10s)));
  returned(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s)));
  returned(table->request_step_down({Token{1}, "ops", ""}, within(10s)));
  returned(list_of(settings_of(options))(within(10s)));
  returned(check_up(settings_of(options), within(10s)));
}

void ask_for_many(const Options& options) {
  const auto store = open_group(options, "group", no_log);
  const Session next{.record = {.beat = 1, .who = "name=holder", .term = 10s}};
  returned(store->look({}, within(10s)));
  returned(store->open(SessionId{7}, next, within(10s)));
  returned(store->commit({.session = SessionId{7}, .beats = {1}, .next = next}, within(10s)));
  returned(store->commit({.session = SessionId{7}, .beats = {1}, .next = next, .claims = {{"a"}}}, within(10s)));
  returned(
      store->commit({.session = SessionId{7}, .beats = {1}, .next = next, .releases = {{"a", Token{1}}}}, within(10s)));
  returned(store->end(SessionId{7}, {1}, 2, within(10s)));
  returned(store->sweep(within(10s)));
  returned(store->retire({{"a", Token{1}}}, within(10s)));
  returned(store->request_step_down("a", {Token{1}, "ops", ""}, within(10s)));
}

class PostgresHostile : public testing::TestWithParam<bool> {};
class PostgresHostileServer : public testing::Test {};

TEST_P(PostgresHostile, AnswersOfEveryShapeCrashNothing) {
  Pretender one(1, GetParam()), many(2, GetParam());
  Options of_one, of_many;
  of_one.conninfo = one.conninfo();
  of_many.conninfo = many.conninfo();
  for (const auto& shape : shapes()) {
    one.answer({}, shape);
    ask_for_one(of_one);
    many.answer({}, shape);
    ask_for_many(of_many);
  }
}

TEST_P(PostgresHostile, IntroductionsOfEveryShapeCrashNothing) {
  Pretender one(1, GetParam()), many(2, GetParam());
  Options of_one, of_many;
  of_one.conninfo = one.conninfo();
  of_many.conninfo = many.conninfo();
  for (const auto& shape : shapes()) {
    if (shape.empty()) continue;  // It is what the Pretender takes for a good one.
    one.answer(shape, done);
    EXPECT_FALSE(postgres::store(of_one, "jobs")->read(within(10s)));
    many.answer(shape, done);
    EXPECT_FALSE(open_group(of_many, "group", no_log)->look({}, within(10s)));
  }
}

TEST_P(PostgresHostile, AnAnswerOfAnotherShapeIsCorruptAndSaysNothing) {
  Pretender one(1, GetParam()), many(2, GetParam());
  Options options;
  options.conninfo = one.conninfo();
  for (const auto& shape : {done, message('I', ""), copying('H', 1), of_width(13, {}), of_width(1, {{{"1"}}}),
                            of_width(13, {Texts(13, "1"), Texts(13, "1")})}) {
    one.answer({}, shape);
    EXPECT_EQ(error_of(postgres::store(options, "jobs")->read(within(10s))).fault, Fault::corrupt);
  }
  options.conninfo = many.conninfo();
  for (const auto& shape :
       {done, message('I', ""), copying('H', 16), of_width(16, {}), of_width(16, {Texts(16, "1")})}) {
    many.answer({}, shape);
    const auto store = open_group(options, "group", no_log);
    EXPECT_EQ(error_of(store->look({}, within(10s))).fault, Fault::corrupt);
    many.answer({}, of_width(1, {}));
    EXPECT_FALSE(store->end(SessionId{7}, {1}, 2, within(10s))) << "nobody has ended because of that";
  }
}

/// What it has sent stands in libpq's memory. It does not become as much again.
TEST_P(PostgresHostile, AnAnswerOfMoreRowsOrBytesThanWeAskedForIsCorrupt) {
  Pretender server(1, GetParam());
  Options options;
  options.conninfo = server.conninfo();
  const auto list = [&] { return list_of(settings_of(options))(within(20s)); };
  const Texts one{"2", "2", "61", "f", "1000", "1", "1", std::nullopt, std::nullopt, std::nullopt, "1", "6a"};
  server.answer({}, of_width(12, std::vector(500, one)));
  EXPECT_EQ(value(list()).elections.size(), 500u);
  server.answer({}, of_width(12, std::vector(501, one)));
  EXPECT_THAT(error_of(list()).message, testing::HasSubstr("501 rows"));
  auto large = one;
  large[2] = std::string(2 << 20, '6');
  server.answer({}, of_width(12, std::vector(3, large)));
  const auto error = error_of(list());
  EXPECT_EQ(error.fault, Fault::corrupt);
  EXPECT_THAT(error.message, testing::HasSubstr("bytes, more than"));
}

std::string error(const std::string& sqlstate, const std::string& words) {
  return message('E', 'S' + text("ERROR") + 'V' + text("ERROR") + 'C' + text(sqlstate) + 'M' + text(words) + '\0');
}

/// A row that says that this was written.
std::string written(std::size_t width) {
  Texts values{"2", "2", "6e616d653d61", "f", "1000", "1", "1", std::nullopt, std::nullopt, std::nullopt, "1"};
  values.resize(width);
  return of_width(width, {values});
}

/// A session that listens and never reads fills the server's queue of notices: only the push is lost.
TEST_P(PostgresHostile, AFullQueueOfNoticesCostsThePushAloneAndIsWarnedOfOnce) {
  Pretender server(1, GetParam());
  int refused = 0;
  server.answer_by([&](const std::string& request) -> std::optional<std::string> {
    if (request.find("pg_is_in_recovery") != request.npos) return std::nullopt;
    for (const auto* silent : {"pg_catalog.concat($9", "pg_catalog.concat('tenure_"})
      if (request.find(silent) != request.npos) return written(12);
    if (request.find("left join") != request.npos || request.find("execute tenure_0") != request.npos)
      return of_width(12, {{std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                            std::nullopt, std::nullopt, std::nullopt, std::nullopt, "1", "f"}});
    ++refused;
    return error("54000", "too many notifications in the NOTIFY queue");
  });
  Options options;
  options.conninfo = server.conninfo();
  tenure::test::Lines lines;
  const auto table = store_of(settings_of(options), "jobs", lines.log());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(applied(table->compare_and_set(std::nullopt, record(2, 2), within(10s))));
  EXPECT_EQ(refused, 2) << "the push is tried each time, since the queue may be empty again";
  const auto all = lines.all();
  EXPECT_EQ(std::ranges::count_if(all, [](const auto& line) { return line.find("nothing is pushed") != line.npos; }),
            1);
}

/// Whoever may connect to a real one can notify without end.
TEST_F(PostgresHostileServer, AnEndlessStreamOfNoticesKeepsNoStatementWaiting) {
  Pretender server(1, false);
  server.answer({}, written(12));
  Options options;
  options.conninfo = server.conninfo();
  const auto table = postgres::store(options, "jobs");
  ASSERT_TRUE(value(table->read(within(10s))).record);
  std::string notices;
  for (int i = 0; i < 2000; ++i) notices += message('A', int32(9) + text("tenure_noise") + text(std::string(500, 'x')));
  std::atomic<int> pushed{0};
  std::jthread noise([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++pushed) server.push(notices);
  });
  ASSERT_TRUE(tenure::test::eventually([&] { return pushed > 0; }));
  server.answer_by([&](const std::string&) -> std::optional<std::string> {
    noise = {};  // None may stand within the answer.
    return std::nullopt;
  });
  EXPECT_TRUE(table->read(within(1500ms))) << "else it is ended after 2 s";
}

/// The fake server has the settings that a real one of this machine has not.
TEST_F(PostgresHostileServer, TheDoctorExplainsEachSetting) {
  Pretender server(1, false);
  Options options;
  options.conninfo = server.conninfo();
  Texts good{"150001", "15.1", "t", "t", "0", "f", "t", "t", "t", "me", "owner", "ops", "f", std::nullopt, "t"};
  good.resize(19);
  using Is = Check::Is;
  struct Case {
    std::size_t column;
    const char* value;
    Is is;
    const char* what;
  };
  for (const auto& [column, told, expected, said] :
       {Case{0, "129999", Is::wrong, "is too old"}, Case{0, "130000", Is::fine, "the server is PostgreSQL 15.1"},
        Case{2, "f", Is::wrong, "fsync or full_page_writes is off"},
        Case{3, "f", Is::wrong, "fsync or full_page_writes is off"},
        Case{4, "0", Is::fine, "is a primary without standbys"},
        Case{4, "2", Is::doubtful, "2 standby server(s), and our commits wait for none"},
        Case{7, "f", Is::wrong, "may not insert"}, Case{10, "you", Is::fine, "is the table public.t of the role you"},
        Case{12, "t", Is::doubtful, "everybody may create"}, Case{13, "599", Is::fine, "no transaction is open"},
        Case{13, "7200", Is::doubtful, " is open for 120 min"},
        Case{14, "f", Is::doubtful, "the strict fence is missing"}, Case{15, "t", Is::fine, "can hold a group's lead"},
        Case{15, "f", Is::doubtful, "a release in a group waits"},
        Case{17, "s.t", Is::doubtful, "there is also s.t: a role with another search_path"},
        Case{18, "lost", Is::doubtful, "the replication slot lost keeps"}}) {
    auto settings = good;
    settings[column] = told;
    const auto is = expected;  // clang 14 captures no structured binding
    const std::string what = said;
    server.answer({}, of_width(settings.size(), {settings}));
    const auto checks = value(check_up(settings_of(options), within(10s)));
    EXPECT_TRUE(std::ranges::any_of(checks, [&](const Check& check) {
      return check.is == is && check.what.find(what) != check.what.npos && check.remedy.empty() == (is == Is::fine);
    })) << what;
    EXPECT_EQ(std::ranges::count_if(checks, [](const Check& check) { return check.is != Is::fine; }), is != Is::fine);
  }
}

/// Some servers that speak PostgreSQL's protocol know no such block.
TEST_F(PostgresHostileServer, ThatKnowsNoBlockIsPreparedStepByStep) {
  Pretender server(1, false);
  server.answer_by([&](const std::string& request) -> std::optional<std::string> {
    if (request.find("do $tenure$") != request.npos) return error("0A000", "DO is not implemented");
    if (request.find("pg_is_in_recovery") != request.npos || request.find("deallocate all") == request.npos)
      return std::nullopt;
    return done;
  });
  server.answer({}, written(12));
  Options options;
  options.conninfo = server.conninfo();
  EXPECT_TRUE(value(postgres::store(options, "jobs")->read(within(10s))).record);
}

INSTANTIATE_TEST_SUITE_P(By, PostgresHostile, testing::Bool(),
                         [](const auto& that) { return std::string(that.param ? "Pooler" : "Server"); });

}  // namespace
}  // namespace tenure::postgres::test
