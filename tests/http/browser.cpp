// SPDX-License-Identifier: Apache-2.0
// Starts Chromium, and speaks the DevTools protocol to it.
#include "browser.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace tenure::test {
namespace {

using Json = nlohmann::json;

/// So long may an answer take. until() asks for less.
constexpr int patience_ms = 60'000;

std::array<int, 2> new_line() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  return ends;
}

/// Starts the browser, which reads commands at descriptor 3 and answers at 4. When `life` ends, kills all processes
/// that the browser has started, and waits for them: they come to us as their parents end.
[[noreturn]] void guard(const std::vector<char*>& argv, int line, int life, int log) {
  for (int* fd : {&line, &life, &log}) *fd = ::fcntl(*fd, F_DUPFD, 10);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::setpgid(0, 0);
  const auto browser = ::fork();
  if (browser == 0) {
    ::setpgid(0, 0);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::dup2(line, 3);
    ::dup2(line, 4);
    ::close_range(5, ~0U, 0);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::setpgid(browser, browser);
  ::dup2(life, STDIN_FILENO);
  ::close_range(3, ~0U, 0);  // A server's socket too, which must not outlive the server.
  pollfd ours{STDIN_FILENO, POLLIN, 0};
  while (::poll(&ours, 1, -1) < 0 && errno == EINTR) {
  }
  ::kill(-browser, SIGKILL);
  while (::waitpid(-browser, nullptr, 0) > 0 || errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace

std::string Browser::program() {
  if (const char* const set = std::getenv("TENURE_CHROMIUM")) return set;
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  std::vector<std::string> folders;
  for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
  for (const auto* name : {"chromium-headless-shell", "chromium"})
    for (const auto& folder : folders)
      if (const auto file = folder + "/" + name; ::access(file.c_str(), X_OK) == 0) return file;
  return {};
}

Browser::Browser() {
  const auto folder = profile_.path().string();
  // Without a sandbox, because root has none and a container may forbid it; the page is our own. It can reach this
  // host alone.
  std::vector<std::string> words{"/usr/bin/env",
                                 "HOME=" + folder,
                                 program(),
                                 "--headless",
                                 "--no-sandbox",
                                 "--remote-debugging-pipe",
                                 "--user-data-dir=" + folder,
                                 "--disable-gpu",
                                 "--disable-dev-shm-usage",
                                 "--disable-breakpad",
                                 "--disable-background-networking",
                                 "--disable-component-update",
                                 "--no-first-run",
                                 "--no-proxy-server",
                                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.*"};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto line = new_line(), life = new_line();
  const int log = ::open(profile_.file("log", "").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  guard_ = ::fork();
  if (guard_ == 0) guard(argv, line[1], life[1], log);
  for (const int fd : {line[1], life[1], log}) ::close(fd);
  line_ = line[0], life_ = life[0];
  if (guard_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  new_page();
}

void Browser::new_page() {
  session_.clear();
  if (!page_.empty()) call("Target.closeTarget", {{"targetId", page_}});
  page_ = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
  session_ = call("Target.attachToTarget", {{"targetId", page_}, {"flatten", true}})["sessionId"];
  for (const auto* domain : {"Page", "Runtime", "Network", "Log"}) call(std::string(domain) + ".enable");
  requests_.clear();
  complaints_.clear();
}

Browser::~Browser() {
  for (const int fd : {life_, line_}) ::close(fd);
  ::waitpid(guard_, nullptr, 0);
}

std::string Browser::log() const {
  std::ostringstream out;
  out << std::ifstream(profile_ / "log").rdbuf();
  return out.str();
}

Json Browser::receive() {
  for (;;) {
    if (const auto end = got_.find('\0'); end != got_.npos) {
      auto message = Json::parse(got_.substr(0, end));
      got_.erase(0, end + 1);
      return message;
    }
    pollfd waits{line_, POLLIN, 0};
    if (::poll(&waits, 1, patience_ms) <= 0) throw std::runtime_error("the browser does not answer:\n" + log());
    std::array<char, 65536> buffer{};
    const auto n = ::recv(line_, buffer.data(), buffer.size(), 0);
    if (n <= 0) throw std::runtime_error("the browser has ended:\n" + log());
    got_.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Json Browser::call(const std::string& method, Json params) {
  Json command{{"id", ++asked_}, {"method", method}, {"params", std::move(params)}};
  if (!session_.empty()) command["sessionId"] = session_;
  const auto text = command.dump();
  if (::send(line_, text.c_str(), text.size() + 1, MSG_NOSIGNAL) != static_cast<ssize_t>(text.size() + 1))
    throw std::runtime_error("the browser takes no command:\n" + log());
  for (;;) {
    const auto message = receive();
    if (message.value("id", 0) != asked_) {
      note(message);
      continue;
    }
    if (message.contains("error")) throw std::runtime_error(method + ": " + message["error"].dump());
    return message["result"];
  }
}

void Browser::note(const Json& event) {
  if (event.value("sessionId", "") != session_) return;  // of a page that is gone
  const auto method = event.value("method", "");
  if (method == "Network.requestWillBeSent") requests_.push_back(event["params"]["request"]["url"]);
  if (method == "Runtime.exceptionThrown")
    complaints_.push_back({"exception", event["params"]["exceptionDetails"].dump()});
  if (method == "Runtime.consoleAPICalled") complaints_.push_back({"console", event["params"]["args"].dump()});
  if (method == "Log.entryAdded") {
    const auto& entry = event["params"]["entry"];
    complaints_.push_back({entry["source"], entry["text"].get<std::string>() + " " + entry.value("url", "")});
  }
}

void Browser::open(const std::string& url) {
  const auto opened = call("Page.navigate", {{"url", url}});
  if (opened.contains("errorText")) throw std::runtime_error(url + ": " + opened["errorText"].get<std::string>());
  if (const auto loaded = until("document.readyState === 'complete'"); !loaded)
    throw std::runtime_error(url + ": " + loaded.message());
}

Json Browser::eval(const std::string& expression) {
  const auto got =
      call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (got.contains("exceptionDetails")) throw std::runtime_error(expression + ": " + got["exceptionDetails"].dump());
  return got["result"].value("value", Json());
}

std::string Browser::text(const std::string& selector) {
  return eval("document.querySelector(" + Json(selector).dump() + ").textContent");
}

testing::AssertionResult Browser::until(const std::string& expression) {
  const auto came = eval(R"(new Promise(tell => {
    const holds = () => { try { return )" +
                         expression + R"(; } catch { return false; } };
    const end = performance.now() + 30000;
    (function look() {
      if (holds()) tell(true); else if (performance.now() > end) tell(false); else requestAnimationFrame(look);
    })();
  }))");
  if (came.is_boolean() && came.get<bool>()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "it did not come: " << expression << "\nthe page shows:\n"
                                     << eval("document.body.innerText").get<std::string>();
}

void Browser::show(bool dark, int width, int height, bool phone) {
  call("Emulation.setEmulatedMedia",
       {{"features", Json::array({{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}}})}});
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", height}, {"deviceScaleFactor", phone ? 2 : 1}, {"mobile", phone}});
}

void Browser::screenshot(const std::string& file) {
  const std::string png = call("Page.captureScreenshot")["data"];
  const std::unique_ptr<FILE, int (*)(FILE*)> decoded(::popen(("base64 -d >'" + file + "'").c_str(), "w"), ::pclose);
  if (!decoded || std::fwrite(png.data(), 1, png.size(), decoded.get()) != png.size())
    throw std::runtime_error("cannot write " + file);
}

std::vector<std::string> Browser::requests() {
  eval("0");  // What happened before has come when this is answered.
  return requests_;
}

std::vector<Browser::Complaint> Browser::complaints() {
  eval("0");
  return complaints_;
}

}  // namespace tenure::test
