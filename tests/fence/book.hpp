// SPDX-License-Identifier: Apache-2.0
// A ledger in a store, behind its strict fence or another one: STORE_book.cpp for each store. The ledger has the name
// of the election, or of the group.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include <tenure/backend.hpp>
#include <tenure/leadership.hpp>

#include "program_options.hpp"

namespace tenure::test {

/// How many transactions of each token are committed.
using Counts = std::map<std::uint64_t, long>;

/// Throws where the store does not say what became of a call; then it is opened anew.
class Book {
 public:
  enum class Moment { begun, about_to_commit };
  using Rest = std::function<void(Moment)>;

  virtual ~Book() = default;
  /// Writes the token in a transaction that rests at these moments. False: the fence refused it.
  virtual bool keep(Token token, const Rest& rest) = 0;
  virtual Counts read() = 0;
};

/// What a book is opened with. `backend`: nothing in a group.
struct Desk {
  const Options& args;
  Leadership leadership;
  std::shared_ptr<Backend> backend;

  const std::string& name() const { return args.text("--election"); }
  bool in_group() const { return args.number("--elections") > 0; }
  bool fenced_by(const std::string& fence) const { return args.text("--fence") == fence; }
};

std::unique_ptr<Book> open_book(const Desk& desk);

}  // namespace tenure::test
