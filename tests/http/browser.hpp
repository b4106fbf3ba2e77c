// SPDX-License-Identifier: Apache-2.0
// A real browser without a window, driven by the DevTools protocol through a socket.
#pragma once
#include <gtest/gtest.h>
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scratch.hpp"

namespace tenure::test {

/// Chromium with one page. One thread uses it. All of its processes end with it, and with our process, however that
/// ends. Throws std::runtime_error if the browser does not do what it is told.
class Browser {
 public:
  /// Of $TENURE_CHROMIUM, or of Debian's packages; empty if there is none.
  static std::string program();

  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// A new one takes the place of its page: nothing that was asked for or complained of before is known any more.
  void new_page();

  /// Returns once the page is loaded.
  void open(const std::string& url);

  /// The value of an expression in the page.
  nlohmann::json eval(const std::string& expression);
  std::string text(const std::string& selector);  ///< Of the first such element.

  /// Waits until the expression is true in the page, which is asked at each frame. It fails after 30 s, with what the
  /// page shows.
  testing::AssertionResult until(const std::string& expression);

  void show(bool dark, int width, int height, bool phone = false);
  void screenshot(const std::string& file);

  /// What the page has asked for, and what the browser complained of: scripts that threw, requests that failed, what
  /// the Content-Security-Policy forbade.
  std::vector<std::string> requests();
  struct Complaint {
    std::string source, text;
  };
  std::vector<Complaint> complaints();

  const Scratch& profile() const { return profile_; }

 private:
  nlohmann::json call(const std::string& method, nlohmann::json params = nlohmann::json::object());
  nlohmann::json receive();
  void note(const nlohmann::json& event);
  std::string log() const;

  const Scratch profile_;
  pid_t guard_{-1};
  int line_{-1}, life_{-1};
  int asked_{};
  std::string page_, session_, got_;
  std::vector<std::string> requests_;
  std::vector<Complaint> complaints_;
};

}  // namespace tenure::test
