// SPDX-License-Identifier: Apache-2.0
// Fences: strict: redis_guarded(); none. A transaction is one command, so it rests before that.
#include <tenure/fence/redis.hpp>

#include <hiredis/hiredis.h>

#include <stdexcept>

#include <tenure/kit/c_handle.hpp>
#include <tenure/redis.hpp>

#include "book.hpp"

namespace tenure::test {
namespace {

class RedisBook final : public Book {
 public:
  explicit RedisBook(const Desk& desk) : desk_(desk) {
    const auto options = redis::from_url(desk.args.text("--store"));
    const timeval limit{5, 0};
    db_.reset(redisConnectWithTimeout(options.servers[0].host.c_str(), options.servers[0].port, limit));
    if (!db_ || db_->err != 0) throw std::runtime_error("no connection");
    redisSetTimeout(db_.get(), limit);
    ask({"AUTH", options.password});
  }

  bool keep(Token token, const Rest& rest) override {
    rest(Moment::about_to_commit);
    const fence::RedisWords command{"HINCRBY", ledger_, std::to_string(token.value), "1"};
    const auto answer =
        ask(desk_.fenced_by("strict") ? fence::redis_guarded(record_, token, {ledger_}, command) : command);
    if (answer->type == REDIS_REPLY_INTEGER) return true;
    if (std::string_view(answer->str).starts_with("FENCED")) return false;
    throw std::runtime_error(answer->str);
  }

  Counts read() override {
    const auto all = ask({"HGETALL", ledger_});
    if (all->type != REDIS_REPLY_ARRAY) throw std::runtime_error(all->str);
    Counts out;
    for (std::size_t i = 0; i < all->elements; i += 2)
      out[std::stoull(all->element[i]->str)] = std::stol(all->element[i + 1]->str);
    return out;
  }

 private:
  CHandle<redisReply, freeReplyObject> ask(const fence::RedisWords& words) {
    std::vector<const char*> texts;
    for (const auto& word : words) texts.push_back(word.c_str());
    auto* const answer = redisCommandArgv(db_.get(), static_cast<int>(texts.size()), texts.data(), nullptr);
    if (!answer) throw std::runtime_error("no answer");
    return CHandle<redisReply, freeReplyObject>(static_cast<redisReply*>(answer));
  }

  const Desk desk_;
  const std::string ledger_ = "ledger{" + desk_.name() + "}";
  const fence::RedisRecord record_ =
      desk_.in_group() ? fence::redis_lead(desk_.name(), "jobs") : fence::redis_record(desk_.name());
  CHandle<redisContext, redisFree> db_;
};

}  // namespace

std::unique_ptr<Book> open_book(const Desk& desk) { return std::make_unique<RedisBook>(desk); }

}  // namespace tenure::test
