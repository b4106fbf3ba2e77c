// SPDX-License-Identifier: Apache-2.0
// Goal: strict.hpp's, over PostgreSQL: single elections and groups, each isolation level, directly and through
// PgBouncer in transaction mode. Method: strict.hpp's.
#include <tenure/fence/postgres.hpp>

#include "server.hpp"
#include "strict.hpp"

namespace tenure::fence::strict {
namespace {

using namespace std::chrono_literals;
using postgres::test::shared;
using postgres::test::sql;
using postgres::test::within;

std::string admin() { return shared("TENURE_POSTGRES_SOCKET"); }

/// A user's table, and transactions that write there and hold `Held`'s row.
class Work {
 public:
  explicit Work(std::string conninfo) : conninfo_(std::move(conninfo)) {
    sql(admin(), "create table " + table_ + " (value text)");
  }
  ~Work() { sql(admin(), "drop table " + table_); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  template <class Tx, class Held>
  Fenced::Finish begin(const std::string& value, Held held) const {
    const auto db = std::make_shared<pqxx::connection>(conninfo_);
    const auto tx = std::make_shared<Tx>(*db);
    tx->exec("insert into " + table_ + " values ('" + value + "')");
    return [db, tx, held] {
      try {
        if (!held(*tx)) return false;
        tx->commit();
        return true;
      } catch (const pqxx::serialization_failure&) {
        return false;
      }
    };
  }
  Values written() const {
    Values out;
    for (const auto& row : sql(admin(), "select value from " + table_)) out.insert(row[0].as<std::string>());
    return out;
  }

 private:
  const std::string conninfo_, table_ = postgres::test::unique_name("work");
};

template <pqxx::isolation_level level>
class Single final : public FencedRecord {
 public:
  explicit Single(const std::string& conninfo) : work_(conninfo) {}
  ~Single() override { sql(admin(), "drop table " + options_.table); }
  Finish begin(Token token, const std::string& value) override {
    return work_.begin<pqxx::transaction<level>>(
        value, [token, table = options_.table](auto& tx) { return hold(tx, "jobs", token, 30s, table); });
  }
  Values written() override { return work_.written(); }

 private:
  ConditionalStore& store() override { return *store_; }

  const postgres::Options options_ = postgres::test::fresh_table(shared());
  const std::shared_ptr<ConditionalStore> store_ = postgres::store(options_, "jobs");
  const Work work_;
};

template <pqxx::isolation_level level>
class Group final : public FencedLead {
 public:
  explicit Group(const std::string& conninfo) : work_(conninfo) {}
  ~Group() override { sql(admin(), "drop table " + options_.sessions + ", " + options_.leads); }
  Finish begin(Token token, const std::string& value) override {
    return work_.begin<pqxx::transaction<level>>(
        value, [token, leads = options_.leads](auto& tx) { return hold(tx, "group", "jobs", token, 30s, leads); });
  }
  Values written() override { return work_.written(); }

 private:
  GroupStore& store() override { return *store_; }

  const postgres::Options options_ = postgres::test::fresh_group(shared());
  const std::shared_ptr<GroupStore> store_ = postgres::open_group(options_, "group");
  const Work work_;
};

/// With a pooler of its own between the user and the server.
template <class Inner>
class Pooled final : public Fenced {
 public:
  Token claim() override { return inner_.claim(); }
  void renew() override { inner_.renew(); }
  void release() override { inner_.release(); }
  Finish begin(Token token, const std::string& value) override { return inner_.begin(token, value); }
  Values written() override { return inner_.written(); }

 private:
  postgres::test::PgBouncer pooler_{shared("TENURE_POSTGRES_DIR")};
  Inner inner_{pooler_.conninfo()};
};

template <class Inner>
std::unique_ptr<Fenced> direct() {
  return std::make_unique<Inner>(shared());
}
template <class Inner>
std::unique_ptr<Fenced> pooled() {
  return std::make_unique<Pooled<Inner>>();
}

std::vector<Subject> subjects() {
  using pqxx::read_committed, pqxx::repeatable_read, pqxx::serializable;
  std::vector<Subject> out{{"single_read_committed", direct<Single<read_committed>>},
                           {"single_repeatable_read", direct<Single<repeatable_read>>},
                           {"single_serializable", direct<Single<serializable>>},
                           {"single_by_pgbouncer", pooled<Single<read_committed>>},
                           {"single_by_pgbouncer_repeatable_read", pooled<Single<repeatable_read>>},
                           {"group_read_committed", direct<Group<read_committed>>},
                           {"group_repeatable_read", direct<Group<repeatable_read>>},
                           {"group_serializable", direct<Group<serializable>>},
                           {"group_by_pgbouncer", pooled<Group<read_committed>>},
                           {"group_by_pgbouncer_repeatable_read", pooled<Group<repeatable_read>>}};
  if (shared().empty())
    for (auto& subject : out) subject.missing = "needs a real server: tests/run starts one (docker/postgres)";
  return out;
}

INSTANTIATE_TEST_SUITE_P(postgres, StrictFence, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace tenure::fence::strict
