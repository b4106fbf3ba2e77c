// SPDX-License-Identifier: Apache-2.0
// Bytes of a server, as they come by a socket: a reply keeps its limits, and is an answer or an error whose message is
// printable. What is read of a record or a session and is written again is read the same. Anybody may publish.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.hpp"
#include "group_text.hpp"
#include "options.hpp"
#include "record.hpp"
#include "sentinels.hpp"
#include "wire.hpp"

namespace tenure::fuzz {
namespace {

using redis::Reply;

std::size_t elements(const Reply& reply) {
  auto all = reply.list.size();
  for (const auto& one : reply.list) all += elements(one);
  return all;
}

/// A server that says this text, and goes.
class Server {
 public:
  Server() {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ::unlink(path_.c_str());
    require(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(socket_, 1) == 0,
            "a server listens");
  }
  ~Server() { ::close(socket_), ::unlink(path_.c_str()); }

  std::vector<Reply> replies(const std::string& text) {
    redis::Wire wire("redis", {.bytes = 4096, .elements = 64, .advice = "far too much"});
    require(!wire.open(path_) && !wire.connect(), "a client connects");
    const int peer = ::accept(socket_, nullptr, nullptr);
    require(::send(peer, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()), "it says it");
    ::close(peer);
    std::vector<Reply> out;
    for (;;) {
      auto reply = wire.receive();
      if (!reply) return require(printable_text(reply.error().message), "an error is printable"), out;
      out.push_back(*std::move(reply));
    }
  }

 private:
  const std::string path_ = "/tmp/tenure-fuzz-" + std::to_string(::getpid());
  const int socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

std::vector<Reply> replies(const std::string& text) {
  static Server server;
  return server.replies(text);
}

template <class T>
bool good(const Result<T>& result) {
  if (!result) require(printable_text(result.error().message), "an error is printable");
  return bool(result);
}

Reply as_text(std::string text) { return {.kind = Reply::Kind::text, .text = std::move(text)}; }
Reply as_list(std::vector<Reply> list) { return {.kind = Reply::Kind::list, .list = std::move(list)}; }

void reply(const std::string& text) {
  for (const auto& reply : replies(text)) {
    require(elements(reply) <= 4096 / 3, "a reply keeps its limits");
    const auto error = redis::explained(reply.text, "redis", true);
    require(printable_text(error.message), "an error is printable");
    if (const auto to = redis::redirection(reply, "host")) require(to->to.port > 0 && to->to.port < 65'536, "a port");
    redis::info_field(reply.text, "redis_version");
  }
}

void record(const std::string& text) {
  for (const auto& reply : replies(text)) {
    good(redis::swap_of(reply, "key"));
    good(redis::found_of(reply, "tenure"));
    const auto read = redis::read_of(reply, "key");
    if (!good(read) || !read->record || read->unreadable) continue;
    static constexpr const char* fields[] = {"token", "beat", "released", "term_ms", "asked_ns", "who"};
    const auto written = redis::swap_arguments(std::nullopt, *read->record);
    std::vector<Reply> hash{as_text("format"), as_text("1"), as_text("written_ms"),
                            as_text(std::to_string(read->record->written_ms))};
    for (std::size_t i = 0; i < std::size(fields); ++i)
      hash.insert(hash.end(), {as_text(fields[i]), as_text(written[i + 1])});
    const auto again = redis::read_of(as_list({reply.list[0], as_list(std::move(hash))}), "key");
    require(again && again->record == read->record, "it is the same record");
  }
}

void group(const std::string& text) {
  Commit commit;
  commit.claims.resize(2), commit.releases.resize(2);
  for (const auto& reply : replies(text)) {
    good(redis::opened_of(reply, "group"));
    good(redis::count_of(reply, "group"));
    good(redis::page_of(reply, "group"));
    if (const auto done = redis::committed_of(reply, commit, "group"); good(done))
      require(done->claimed.size() + done->released.size() <= elements(reply), "each is told");
    const auto look = redis::look_of(reply, "group");
    if (!good(look)) continue;
    for (const auto& [election, error] : look->unreadable)
      require(printable_text(error.message), "an error is printable");
    for (const auto& [id, session] : look->sessions) {
      const auto written = redis::open_arguments(id, session, 1, {});
      const auto& record = session.record;
      auto value =
          written[1] + (record.released ? " 1 " : " 0 ") + std::to_string(record.written_ms) + ' ' + written[2];
      const auto sessions = as_list({as_text(written[0]), as_text(std::move(value))});
      const auto again = redis::look_of(
          as_list({reply.list[0], reply.list[1], sessions, reply.list[3], as_list({}), reply.list[5]}), "group");
      require(again && again->sessions.at(id).record == record, "it is the same session");
    }
  }
}

void push(const std::string& text) {
  Lines lines(text);
  const auto cursor = lines.next(), message = lines.rest();
  redis::is_news(message, cursor);
  redis::look_arguments(cursor, {});
  if (const auto release = redis::release_in(message))
    require(!release->election.empty(), "a release names an election");
  if (const auto notice = redis::notice_of(message)) {
    const auto& [token, beat] = notice->version;
    require(std::to_string(token.value) + ' ' + std::to_string(beat) + (notice->released ? " released" : "") == message,
            "a notice is as we write it");
  }
}

/// What a Sentinel announces: who has it, and what we would say of it.
void announcement(const std::string& text) {
  const auto found = redis::switch_of(text);
  if (!found) return;
  std::string written = found->name;
  for (const auto& address : {found->from, found->to}) {
    require(!address.host.empty() && address.port > 0 && address.port < 65'536, "an address is whole");
    require(printable_text(redis::to_string(address)), "an address is printable");
    written += ' ' + address.host + ' ' + std::to_string(address.port);
  }
  const auto again = redis::switch_of(written);
  require(again && again->name == found->name && again->from == found->from && again->to == found->to,
          "it is read again");
}

}  // namespace

const std::vector<Target> targets{{"redis_reply", reply},
                                  {"redis_record", record},
                                  {"redis_group", group},
                                  {"redis_push", push},
                                  {"redis_switch", announcement}};

}  // namespace tenure::fuzz
