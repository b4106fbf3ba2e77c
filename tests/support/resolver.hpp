// SPDX-License-Identifier: Apache-2.0
// A resolver that hangs. One source of a program includes it. If a library does not find it there, the program exports
// its symbols (ENABLE_EXPORTS).
#pragma once
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <future>
#include <string>

namespace tenure::test {

/// Names below ".hole" are resolved once it is told to, as 127.0.0.1. Those below ".two" have two addresses: 127.0.0.2,
/// then 127.0.0.1.
class Resolver {
 public:
  void answer() { answers_.set_value(); }
  int waiting() const { return waiting_; }  ///< Callers.
  void wait() {
    ++waiting_;
    answered_.wait();
    --waiting_;
  }

 private:
  std::promise<void> answers_;
  const std::shared_future<void> answered_{answers_.get_future()};
  std::atomic<int> waiting_{0};
};

/// Never destroyed: whoever was left behind in a resolution may still look at it when the program ends.
inline Resolver& resolver() {
  static auto& one = *new Resolver;
  return one;
}

}  // namespace tenure::test

/// Takes the place of the C library's.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  if (node != nullptr && std::string(node).ends_with(".hole")) {
    tenure::test::resolver().wait();
    node = "127.0.0.1";
  }
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || !std::string(node).ends_with(".two")) return real(node, service, hints, result);
  if (const int failed = real("127.0.0.2", service, hints, result)) return failed;
  auto* last = *result;
  while (last->ai_next != nullptr) last = last->ai_next;
  return real("127.0.0.1", service, hints, &last->ai_next);  // freeaddrinfo() frees each by itself
}
