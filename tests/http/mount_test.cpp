// SPDX-License-Identifier: Apache-2.0
// Goal: a program's own server tells the same, and outlives what it tells of. Method: httplib's server with a page of
// its own beside ours.
#include <gtest/gtest.h>

#include <thread>

#include <tenure/http_mount.hpp>

#include "process.hpp"

namespace tenure::test {
namespace {

class HttpMount : public testing::Test {
 protected:
  HttpMount() {
    own_.Get("/own", [](const httplib::Request&, httplib::Response& out) { out.set_content("mine", "text/plain"); });
    http::mount(own_, *process_.site, {}, {"mine.example"});
    http::mount(own_, *process_.site, "/election");
    address_ = "127.0.0.1:" + std::to_string(own_.bind_to_any_port("127.0.0.1"));
    thread_ = std::thread([this] { own_.listen_after_bind(); });
    eventually([this] { return own_.is_running(); });
  }
  ~HttpMount() override {
    own_.stop();
    thread_.join();
  }

  memory::Hub hub_;
  Process process_{hub_};
  httplib::Server own_;
  std::string address_;
  std::thread thread_;
};

TEST_F(HttpMount, AnswersBesideTheProgramsOwnPages) {
  EXPECT_EQ(fetch(address_, "/own").body, "mine");
  EXPECT_EQ(fetch(address_, "/leader").status, 503);
  process_.lead();
  EXPECT_EQ(fetch(address_, "/leader").status, 200);
  EXPECT_EQ(fetch(address_, "/election/leader").status, 200);
  EXPECT_EQ(fetch(address_, "/election/status").json()["self"]["state"], "leading");
  EXPECT_EQ(fetch(address_, "/election/").status, 200);
  EXPECT_EQ(fetch(address_, "/").status, 404) << "that is the program's own";
  EXPECT_EQ(fetch(address_, "/step-down", "POST", "Content-Length: 0\r\n").status, 403);
}

TEST_F(HttpMount, OutlivesTheSiteAndTheManager) {
  process_.lead();
  Client stream(address_);
  stream.send("GET /events HTTP/1.1\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(stream.await("event: status"));
  process_.site.reset();
  process_.manager.reset();
  EXPECT_TRUE(stream.await_end());
  EXPECT_EQ(fetch(address_, "/leader").status, 503);
  EXPECT_EQ(fetch(address_, "/own").body, "mine");
}

TEST_F(HttpMount, AForeignHostGets421) {
  const auto status = [&](const std::string& host) {
    Client client(address_);
    client.send("GET /leader HTTP/1.1\r\nConnection: close\r\nHost: " + host + "\r\n\r\n");
    client.await_end();
    return fetched(client.got()).status;
  };
  EXPECT_EQ(status("127.0.0.1:80"), 503);
  EXPECT_EQ(status("mine.example"), 503) << "as mount() was told";
  EXPECT_EQ(status("evil.example"), 421);
}

TEST_F(HttpMount, ALargeBodyIsNotReadAndEndsItsConnection) {
  const auto post = [&](std::size_t size) {
    Client client(address_);
    client.send("POST /step-down HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
    client.send(std::string(http::max_mounted_body_bytes + 1, 'x').substr(0, size));
    EXPECT_TRUE(client.await("\r\n\r\n"));
    EXPECT_EQ(size <= http::max_mounted_body_bytes, fetched(client.got()).status == 403) << client.got();
    if (size <= http::max_mounted_body_bytes) return;
    EXPECT_EQ(fetched(client.got()).status, 413);
    client.send("GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(client.await_end());
    EXPECT_EQ(client.got().find("mine"), std::string::npos) << "the rest of a body was taken for a request";
  };
  post(http::max_mounted_body_bytes);
  post(1UL << 40);
}

}  // namespace
}  // namespace tenure::test
