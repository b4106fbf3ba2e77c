// SPDX-License-Identifier: Apache-2.0
// Fences: strict: etcd_leads(); none. A transaction is one request, so it rests before that.
#include <tenure/fence/etcd.hpp>

#include <curl/curl.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include <tenure/kit/c_handle.hpp>

#include "book.hpp"
#include "web/base64.hpp"

namespace tenure::test {
namespace {

using Json = nlohmann::json;

/// A token's transactions all put the same key, whose version counts them.
class EtcdBook final : public Book {
 public:
  explicit EtcdBook(const Desk& desk) : desk_(desk) {}

  bool keep(Token token, const Rest& rest) override {
    rest(Moment::about_to_commit);
    const auto leads = fence::etcd_leads(desk_.name(), token);
    const auto stands = [&](const char* how, const std::string& text) {
      return Json{{"key", web::base64(leads.key)}, {"target", "VALUE"}, {"result", how}, {"value", web::base64(text)}};
    };
    Json compare = Json::array();
    if (desk_.fenced_by("strict")) compare = {stands("GREATER", leads.above), stands("LESS", leads.below)};
    const Json put{{"request_put", {{"key", web::base64(ledger_ + std::to_string(token.value))}}}};
    return ask("txn", {{"compare", compare}, {"success", Json::array({put})}}).value("succeeded", false);
  }

  Counts read() override {
    const auto all = ask("range", {{"key", web::base64(ledger_)}, {"range_end", web::base64(ledger_ + ":")}});
    Counts out;
    for (const auto& one : all.value("kvs", Json::array())) {
      const auto key = web::from_base64(one.at("key").get<std::string>()).value();
      out[std::stoull(key.substr(ledger_.size()))] = std::stol(one.at("version").get<std::string>());
    }
    return out;
  }

 private:
  Json ask(const std::string& what, const Json& question) {
    const auto url = "http" + desk_.args.text("--store").substr(4) + "/v3/kv/" + what, body = question.dump();
    std::string answer;
    auto* const c = curl_.get();
    curl_easy_setopt(c, CURLOPT_URL, url.c_str());
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, 5000L);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(
        c, CURLOPT_WRITEFUNCTION, +[](char* data, std::size_t, std::size_t size, void* out) {
          static_cast<std::string*>(out)->append(data, size);
          return size;
        });
    if (const auto failed = curl_easy_perform(c); failed != CURLE_OK)
      throw std::runtime_error(curl_easy_strerror(failed));
    return Json::parse(answer);
  }

  const Desk desk_;
  const std::string ledger_ = "ledger/" + desk_.name() + "/";
  const CHandle<CURL, curl_easy_cleanup> curl_{curl_easy_init()};
};

}  // namespace

std::unique_ptr<Book> open_book(const Desk& desk) { return std::make_unique<EtcdBook>(desk); }

}  // namespace tenure::test
