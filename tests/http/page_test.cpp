// SPDX-License-Identifier: Apache-2.0
// Goal: the page for people tells the truth, live, to everybody who can read it. Method: a real browser shows the pages
// of processes that take part in an election in memory. Its screenshots are left in the build directory, to be looked
// at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <tenure/elections.hpp>
#include <tenure/version.hpp>

#include "browser.hpp"
#include "messages.hpp"
#include "process.hpp"
#include "shared.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

/// At an address of 127.0.0.0/8 that only this program uses, so that nobody takes the port while no server has it.
http::ServerOptions own_address() {
  const auto pid = ::getpid();
  return {.address = "127." + std::to_string(pid >> 16 & 255) + "." + std::to_string(pid >> 8 & 255) + "." +
                     std::to_string(pid & 255) + ":0"};
}

std::string quoted(const std::string& text) { return Json(text).dump(); }

class Page : public testing::Test {
 protected:
  void SetUp() override {
    if (Browser::program().empty()) GTEST_SKIP() << "there is no Chromium (Debian: chromium-headless-shell)";
    browser = &Shared<Browser>::get();
    browser->new_page();
  }
  void open(const Process& process) { browser->open("http://" + process.server->address() + "/"); }
  testing::AssertionResult shows(const std::string& selector, const std::string& text) {
    return browser->until("document.querySelector(" + quoted(selector) + ").textContent === " + quoted(text));
  }
  /// What stands beside this name among the facts.
  std::string fact(const std::string& name) {
    return browser->eval("[...document.querySelectorAll('#facts dt')].find(e => e.textContent === " + quoted(name) +
                         ").nextSibling.textContent");
  }
  std::vector<std::string> history() {
    return browser->eval("[...document.querySelectorAll('#list li span')].map(e => e.textContent)");
  }
  std::string token_of(const Process& process) {
    const auto token = process.manager->leadership().token();
    return token ? std::to_string(token->value) : "none";
  }

  const memory::Hub hub;
  Process a{hub, {"a", "10.0.0.7:80"}, {}, own_address()}, b{hub, {"b", "10.0.0.8:80"}, {}, own_address()};
  Browser* browser{};  ///< The same for all tests of this process, because its start is most of their work.
};

TEST_F(Page, ShowsWhoLeadsSinceWhenAndWithWhichToken) {
  open(a);
  EXPECT_TRUE(shows("#who", "nobody is known to lead"));
  a.lead();
  EXPECT_TRUE(shows("#who.self", "a leads"));
  EXPECT_EQ(browser->text("#election"), "election jobs, seen by a");
  EXPECT_TRUE(browser->until("document.title === 'a · jobs'"));
  b.start();
  for (auto* const process : {&a, &b}) {
    open(*process);
    EXPECT_TRUE(shows(process == &a ? "#who.self" : "#who.other", "a leads"));
    EXPECT_EQ(fact("token"), token_of(a));
    EXPECT_EQ(fact("address"), "10.0.0.7:80");
    EXPECT_EQ(fact("tenure"), TENURE_VERSION);
    EXPECT_EQ(fact("this process"), process == &a ? "leads" : "follows");
    EXPECT_EQ(fact("health"), "healthy");
    const auto since = process->get("/status").json()["leader"]["since_unix_ms"];
    const std::string here = browser->eval("new Date(" + since.dump() + ").toLocaleString()");
    EXPECT_EQ(fact("since"), here);
  }
}

TEST_F(Page, TheBarRunsDownAndEachRenewalFillsIt) {
  a.lead();
  b.start();
  for (auto* const process : {&a, &b}) {
    open(*process);
    ASSERT_TRUE(shows("#who", "a leads"));
    browser->eval(R"(
      window.widths = [];
      (function look() {
        widths.push(document.querySelector('#bar').getBoundingClientRect().width /
                    document.querySelector('.track').getBoundingClientRect().width);
        requestAnimationFrame(look);
      })())");
    EXPECT_TRUE(browser->until(R"(widths.some((width, i) =>  // It is full again, after it has run down for a while.
        i > 5 && width > 0.9 && width > widths[i - 1] + 0.05 && widths[i - 1] < widths[i - 3] && widths[i - 3] < widths[i - 5]))"))
        << browser->eval("widths.map(w => w.toFixed(3)).join(' ')");
    EXPECT_EQ(browser->eval("widths.filter(w => w > 1.0001).length"), 0);
    const double whole = browser->eval("Number(document.querySelector('.track').getAttribute('aria-valuemax'))");
    EXPECT_GE(whole, 9);
    EXPECT_LE(whole, 10) << "the term, and no more";
  }
}

TEST_F(Page, AHandOverAppearsByItself) {
  a.lead();
  b.start();
  open(b);
  ASSERT_TRUE(shows("#who.other", "a leads"));
  const auto first = token_of(a);
  browser->eval("window.still = 'the same document'");
  a.manager->resign(1h);
  EXPECT_TRUE(shows("#who.self", "b leads"));
  const auto second = token_of(b);
  EXPECT_TRUE(browser->until("document.querySelectorAll('#list li').length >= 2"));
  EXPECT_EQ(fact("token"), second);
  EXPECT_EQ(history().front(), "this process was elected, token " + second);
  EXPECT_EQ(history().back(), "a leads, token " + first);
  EXPECT_EQ(browser->eval("document.querySelectorAll('#line i').length"), history().size()) << "the time line";
  EXPECT_EQ(browser->eval("document.querySelector('#line i').className"), "other");
  EXPECT_EQ(browser->eval("document.querySelector('#line').lastChild.className"), "self");
  b.manager->resign(1h);
  EXPECT_TRUE(shows("#who.none", "nobody is known to lead"));
  EXPECT_TRUE(shows("#list li span", "its tenure ended: resigned"));
  EXPECT_EQ(browser->eval("window.still"), "the same document");
}

TEST_F(Page, ForeignTextIsShownAsText) {
  const std::string markup = "<img src=x onerror=ran()><script>ran()</script><u>&amp;\"'";
  const auto sent = markup +
                    "\xe2\x80\xae"
                    "\xc2\x9b";  // U+202E turns what follows round, U+009B is CSI
  const auto evil = markup + "\xef\xbf\xbd\xef\xbf\xbd";
  Process c(hub, {sent, sent}, {}, own_address());
  c.lead();
  b.start();
  for (auto* const process : {&c, &b}) {
    open(*process);
    EXPECT_TRUE(shows("#who", evil + " leads"));
    EXPECT_EQ(fact("address"), evil);
  }
  EXPECT_TRUE(browser->until("document.querySelectorAll('#list li').length === 1"));
  EXPECT_EQ(history(), std::vector{evil + " leads, token " + token_of(c)});
  EXPECT_EQ(browser->eval("document.querySelectorAll('img, u, script').length"), 1) << "its own script";
  for (const auto& [source, text] : browser->complaints()) ADD_FAILURE() << source << ": " << text;
}

TEST_F(Page, AsksOnlyItsOwnProcessAndThePolicyForbidsMore) {
  a.lead();
  open(a);
  ASSERT_TRUE(shows("#who", "a leads"));
  const auto own = "http://" + a.server->address() + "/";
  EXPECT_THAT(browser->requests(), ElementsAre(own, own + "events"));
  for (const auto& [source, text] : browser->complaints()) ADD_FAILURE() << source << ": " << text;

  browser->eval(R"(
    window.forbidden = [];
    document.addEventListener('securitypolicyviolation', e => forbidden.push(e.effectiveDirective));
    const add = (tag, set) => document.body.append(Object.assign(document.createElement(tag), set));
    add('script', { textContent: 'window.ran = true' });
    add('style', { textContent: 'body { display: none }' });
    add('img', { src: 'http://127.0.0.1:9/' });
    fetch('http://127.0.0.1:9/').catch(() => 0);)");
  EXPECT_TRUE(browser->until("forbidden.length === 4"));
  EXPECT_EQ(browser->eval("forbidden.sort().join()"), "connect-src,img-src,script-src-elem,style-src-elem");
  EXPECT_EQ(browser->eval("window.ran === undefined && getComputedStyle(document.body).display"), "block");
  EXPECT_TRUE(eventually([&] { return browser->complaints().size() >= 4; })) << "so a complaint would have been seen";
}

TEST_F(Page, SaysThatTheProcessIsGoneAndGoesOnWhenItIsBack) {
  Process c(hub, {"c", ""}, {}, own_address(), memory::presets().fast);
  c.lead();
  open(c);
  ASSERT_TRUE(shows("#who.self", "c leads"));
  EXPECT_TRUE(browser->eval("document.querySelector('#trouble').hidden"));
  browser->eval("window.still = 'the same document'");
  const auto address = c.server->address();
  c.server.reset();
  EXPECT_TRUE(
      browser->until("document.querySelector('#trouble').checkVisibility() && "
                     "document.querySelector('#trouble').textContent.startsWith('No news since ')"));
  EXPECT_TRUE(browser->until("document.title === 'no news · jobs'"));
  EXPECT_TRUE(shows("#who.none", "the lease has ended")) << "nobody can know whether it was renewed";
  c.server.emplace(*c.site, http::ServerOptions{.address = address});
  EXPECT_TRUE(shows("#who.self", "c leads"));
  EXPECT_TRUE(browser->until("document.querySelector('#trouble').hidden"));
  EXPECT_EQ(browser->eval("window.still"), "the same document");
  for (const auto& [source, text] : browser->complaints()) EXPECT_EQ(source, "network") << text;
}

TEST_F(Page, SaysThatItGetsNoEventsAndGoesOnWhenItDoes) {
  Process one(hub, {"one", ""}, {.streams = 1}, own_address());
  one.lead();
  std::optional<Client> reader(one.server->address());
  reader->send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(reader->await("event: status\n"));
  open(one);
  EXPECT_TRUE(browser->until("document.querySelector('#trouble').checkVisibility()"));
  EXPECT_EQ(browser->text("#trouble"), "The process does not answer, or has as many readers as it takes.");
  reader.reset();
  EXPECT_TRUE(shows("#who.self", "one leads"));
  EXPECT_TRUE(browser->until("document.querySelector('#trouble').hidden"));
}

TEST_F(Page, AChangeOfAnotherDayHasItsDate) {
  a.lead();
  open(a);
  EXPECT_TRUE(shows("#list span", "this process was elected, token " + token_of(a)));
  const auto elected = a.get("/status").json()["history"][0]["unix_ms"].dump();
  EXPECT_TRUE(shows("#list time", browser->eval("new Date(" + elected + ").toLocaleTimeString()")));
  browser->eval("window.today = Date.now; Date.now = () => today() + 86400000");
  const std::string month = browser->eval("new Date(" + elected + ").toLocaleString([], { month: 'short' })");
  EXPECT_TRUE(browser->until("document.querySelector('#list time').textContent.includes(" + quoted(month) + ")"));
  EXPECT_TRUE(browser->until("document.querySelector('#from').textContent.includes(" + quoted(month) + ")"));
}

/// Text whose colour differs too little from what is behind it (WCAG: 4.5), and a bar that does from its track (3).
constexpr auto pale = R"((() => {
  const light = color => {
    const [r, g, b] = color.match(/[\d.]+/g).map(n => n / 255).map(n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const contrast = (one, other) => Math.max(one / other, other / one);
  const behind = element => {
    if (getComputedStyle(element).opacity !== '1') throw 'this judge knows no opacity';
    const color = getComputedStyle(element).backgroundColor;
    if (/^rgb\(/.test(color)) return light(color);
    if (color !== 'rgba(0, 0, 0, 0)') throw 'this judge knows no ' + color;
    return behind(element.parentElement);
  };
  const out = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim(), element = texts.currentNode.parentElement;
    if (!text || !element.checkVisibility()) continue;
    const ratio = contrast(light(getComputedStyle(element).color), behind(element));
    if (ratio < 4.5) out.push(text + ': ' + ratio.toFixed(2));
  }
  const bar = document.querySelector('#bar');
  if (bar && bar.clientWidth > 0 && contrast(behind(bar), behind(bar.parentElement)) < 3) out.push('the bar');
  return out.join('; ');
})())";

/// What stands out at the right.
std::string too_wide(int width) {
  return "[document.documentElement, ...document.querySelectorAll('body, body *')].filter(e => Math.max("
         "e.getBoundingClientRect().right, e.scrollWidth) > " +
         std::to_string(width) + ").map(e => e.tagName + ' ' + e.id).join()";
}

class Look : public Page {
 protected:
  void look(const std::string& state) {
    for (const bool dark : {false, true})
      for (const int width : {360, 1200}) {
        const auto name = state + (dark ? "-dark" : "-light") + (width == 360 ? "-phone" : "");
        browser->show(dark, width, width == 360 ? 740 : 800, width == 360);
        ASSERT_TRUE(browser->until("innerWidth >= " + std::to_string(width) +
                                   " && matchMedia('(prefers-color-scheme: " + (dark ? "dark" : "light") +
                                   ")').matches"));
        EXPECT_EQ(browser->eval(pale), "") << name;
        EXPECT_EQ(browser->eval(too_wide(width)), "") << name;
        std::filesystem::create_directories(TENURE_SCREENSHOTS);
        browser->screenshot(std::string(TENURE_SCREENSHOTS "/") + name + ".png");
      }
  }
};

TEST_F(Look, ALeadersPageIsReadable) {
  a.lead();
  b.start();
  open(a);
  for (auto* const process : {&a, &b}) {
    ASSERT_TRUE(shows("#who", process == &a ? "a leads" : "b leads"));
    process->manager->resign();
  }
  ASSERT_TRUE(shows("#who.self", "a leads"));
  look("leading");
}

TEST_F(Look, AFollowersPageIsReadable) {
  Process leader(hub, {std::string(100, 'x'), std::string(100, 'y')}, {}, own_address());
  leader.lead();
  b.start();
  open(b);
  ASSERT_TRUE(browser->until("document.querySelector('#who.other')"));
  look("following");
}

TEST_F(Look, ThePageWithoutALeaderIsReadable) {
  open(a);
  ASSERT_TRUE(shows("#who", "nobody is known to lead"));
  look("vacant");
}

TEST_F(Look, ThePageOfALostProcessIsReadable) {
  a.lead();
  open(a);
  ASSERT_TRUE(shows("#who", "a leads"));
  a.server.reset();
  ASSERT_TRUE(browser->until("document.querySelector('#trouble').checkVisibility()"));
  look("lost");
}

TEST_F(Look, TheJudgesSeeWhatIsNotReadable) {
  a.lead();
  open(a);
  ASSERT_TRUE(shows("#who", "a leads"));
  browser->show(false, 360, 740, true);
  ASSERT_EQ(browser->eval(pale), "");
  ASSERT_EQ(browser->eval(too_wide(360)), "");
  browser->eval(
      "document.querySelector('#who').style.color = '#7c8794'; document.querySelector('#who').style.width = '500px'");
  EXPECT_THAT(browser->eval(pale).get<std::string>(), HasSubstr("a leads: 3."));
  EXPECT_THAT(browser->eval(too_wide(360)).get<std::string>(), HasSubstr("P who"));
}

/// Two processes in one group. The first one leads what it has joined alone.
class GroupPage : public Look {
 protected:
  struct Member {
    Member(const memory::Hub& hub, const std::string& name)
        : elections(hub.group("tenants"), {name, "10.0.0.7:80"}, memory::presets().balanced, quiet(),
                    Spread{.on = false}),
          site(elections, {.self = {name, ""}}),
          server(site, own_address()) {
      elections.start();
    }
    Elections elections;
    http::Site site;
    http::Server server;
  };
  void open(const Member& member) { browser->open("http://" + member.server.address() + "/"); }
  void ask(const std::string& election) {
    browser->eval("document.querySelector('#name').value = " + quoted(election) +
                  "; document.querySelector('#ask').requestSubmit()");
  }
};

TEST_F(GroupPage, ShowsWhatIsLedAndWhoLeadsAGivenElection) {
  Member first(hub, "first"), second(hub, "second");
  std::vector<std::string> names;
  for (int i = 100; i < 250; ++i) names.push_back("e" + std::to_string(i));
  first.elections.join(names);
  ASSERT_TRUE(eventually([&] { return first.elections.led().size() == names.size(); }));
  const auto token = [&](const std::string& name) {
    return std::to_string(first.elections.leadership(name).token().value_or(Token{}).value);
  };
  open(first);
  EXPECT_TRUE(shows("#who.self", "leads 150 of the 150 elections that it has joined"));
  EXPECT_TRUE(browser->until("document.querySelectorAll('#led tr').length === 100"));
  EXPECT_EQ(browser->text("#led tr"), "e100" + token("e100"));
  browser->eval("document.querySelector('#more').click()");
  EXPECT_TRUE(browser->until("document.querySelectorAll('#led tr').length === 150"));
  ask("e249");
  EXPECT_TRUE(shows("#found", "e249: this process leads, token " + token("e249"))) << browser->text("#found");
  ask("<b>\xe2\x80\xae");
  EXPECT_TRUE(shows("#found", "<b>\xef\xbf\xbd: nobody is known to lead")) << browser->text("#found");
  EXPECT_TRUE(browser->until("document.querySelector('#leaderless').hidden"));
  for (const auto* name : {"e100", "e120"}) first.elections.resign(name, std::chrono::hours(1));
  EXPECT_TRUE(shows("#unled", "e100e120")) << "first of all, what nobody leads";
  EXPECT_TRUE(browser->until("document.title.startsWith('2 without a leader')"));
  look("group");
  for (const auto& [source, text] : browser->complaints()) EXPECT_EQ(source, "network") << text;  // 503 is an answer

  second.elections.join("e101");
  open(second);
  EXPECT_TRUE(shows("#who.none", "leads 0 of the 1 elections that it has joined"));
  ask("e101");
  EXPECT_TRUE(shows("#found", "e101: first leads at 10.0.0.7:80, tenure " TENURE_VERSION ", token " + token("e101")))
      << browser->text("#found");
}

/// The processes whose command line names this.
int count_processes(const std::string& name) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "cmdline");
    std::string words;
    std::getline(in, words);  // Nothing, if the process has ended meanwhile.
    count += mentions(words, name);
  }
  return count;
}

TEST_F(Page, TheBrowserEndsWithItsTestHoweverThatEnds) {
  std::optional<Browser> own(std::in_place);
  const auto profile = own->profile().path().string();
  EXPECT_GT(count_processes(profile), 1);
  own.reset();
  EXPECT_EQ(count_processes(profile), 0);

  const Scratch scratch;
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Browser left;
    scratch.file("profile", left.profile().path().string());
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  std::string of_child;
  std::ifstream(scratch / "profile") >> of_child;
  ASSERT_NE(of_child, "");
  EXPECT_TRUE(eventually([&] { return count_processes(of_child) == 0; }));
  std::filesystem::remove_all(of_child);
}

}  // namespace
}  // namespace tenure::test
