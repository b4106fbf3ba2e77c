// SPDX-License-Identifier: Apache-2.0
// For those who write a backend with a C library: owners of its objects.
#pragma once
#include <memory>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Frees an object of a C library by that library's function.
template <auto function>
struct Free {
  /// For std::unique_ptr.
  template <class T>
  void operator()(T* object) const noexcept {
    static_cast<void>(function(object));
  }
};

/// An object of a C library and its owner, for members: CHandle<rd_kafka_t, rd_kafka_destroy>.
template <class T, auto function>
using CHandle = std::unique_ptr<T, Free<function>>;

/// The same for a local variable: `const auto event = owned<rd_kafka_event_destroy>(rd_kafka_queue_poll(queue, 0));`.
/// Empty for a null pointer, which is never freed.
template <auto function, class T>
CHandle<T, function> owned(T* object) noexcept {
  return CHandle<T, function>(object);
}

}  // namespace tenure
