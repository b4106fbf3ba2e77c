// SPDX-License-Identifier: Apache-2.0
// A value, or the error that there is instead of one.
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

#include <tenure/error.hpp>

namespace tenure {

/// A value, or the error that there is instead of one. One thread at a time changes it:
///   if (!result) return result.error();
///   use(*result);
/// A default-constructed Result holds an error, so that a mock without instructions reports one.
template <class T>
class [[nodiscard]] Result {
 public:
  Result() = default;
  /// There is no value.
  Result(Error error) : held_(std::in_place_index<0>, std::move(error)) {}
  /// There is one: what `value` converts to.
  template <class U = T>
  requires(std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, Error> &&
           // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): clang-tidy overlooks the line above it
           !std::same_as<std::remove_cvref_t<U>, Result>) Result(U&& value)
      : held_(std::in_place_index<1>, std::forward<U>(value)) {}

  /// True if there is a value, also if the value of a Result<bool> is false.
  explicit operator bool() const noexcept { return held_.index() == 1; }

  /// REQUIRES: there is no value; for the next five, that there is one. They throw std::bad_variant_access otherwise.
  const Error& error() const& { return std::get<0>(held_); }
  Error&& error() && { return std::get<0>(std::move(held_)); }  ///< See above.

  /// The value.
  T& operator*() & { return std::get<1>(held_); }
  const T& operator*() const& { return std::get<1>(held_); }
  T&& operator*() && { return std::get<1>(std::move(held_)); }
  T* operator->() { return &std::get<1>(held_); }
  const T* operator->() const { return &std::get<1>(held_); }

 private:
  std::variant<Error, T> held_;
};

}  // namespace tenure
