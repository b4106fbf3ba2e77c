// SPDX-License-Identifier: Apache-2.0
// Fences: strict: hold(); plain: a predicate without a lock; none.
#include <tenure/fence/postgres.hpp>

#include "book.hpp"

namespace tenure::test {
namespace {

class PostgresBook final : public Book {
 public:
  explicit PostgresBook(const Desk& desk) : desk_(desk), db_(desk.args.text("--store")) {
    pqxx::nontransaction(db_).exec("set client_min_messages = warning; create table if not exists " + desk_.name() +
                                   " (token bigint not null)");
  }

  bool keep(Token token, const Rest& rest) override {
    switch (count_++ % 3) {
      case 0: return keep_at<pqxx::read_committed>(token, rest);
      case 1: return keep_at<pqxx::repeatable_read>(token, rest);
      default: return keep_at<pqxx::serializable>(token, rest);
    }
  }

  Counts read() override {
    Counts out;
    for (const auto& row :
         pqxx::nontransaction(db_).exec("select token, count(*) from " + desk_.name() + " group by token"))
      out[row[0].as<std::uint64_t>()] = row[1].as<long>();
    return out;
  }

 private:
  template <pqxx::isolation_level level>
  bool keep_at(Token token, const Rest& rest) {
    pqxx::transaction<level> tx(db_);
    tx.exec("insert into " + desk_.name() + " values (" + std::to_string(token.value) + ")");
    rest(Moment::begun);
    try {
      if (!may_commit(tx, token)) return false;
    } catch (const pqxx::serialization_failure&) {
      return false;
    }
    rest(Moment::about_to_commit);
    tx.commit();
    return true;
  }

  bool may_commit(pqxx::dbtransaction& tx, Token token) const {
    const auto left = std::chrono::floor<std::chrono::milliseconds>(desk_.leadership.remaining());
    if (desk_.fenced_by("strict"))
      return desk_.in_group() ? fence::hold(tx, desk_.name(), "jobs", token, left)
                              : fence::hold(tx, desk_.name(), token, left);
    if (desk_.fenced_by("plain"))
      return !tx.exec("select 1 from " +
                      (desk_.in_group() ? "tenure_leads where election = 'jobs' and grp = '" + desk_.name()
                                        : "tenure_elections where election = '" + desk_.name()) +
                      "' and token = " + std::to_string(token.value))
                  .empty();
    return true;
  }

  const Desk desk_;
  pqxx::connection db_;
  int count_{};
};

}  // namespace

std::unique_ptr<Book> open_book(const Desk& desk) { return std::make_unique<PostgresBook>(desk); }

}  // namespace tenure::test
