// SPDX-License-Identifier: Apache-2.0
// One election in its directory: the nth tenure is the file named n. A new one appears whole, by link(2); its
// holder keeps it open and locked, and renews in place; whoever reads asks the kernel whether that lock still
// stands.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <tenure/conditional_store.hpp>
#include <tenure/election_list.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/result.hpp>

#include "descriptor.hpp"
#include "directory.hpp"
#include "image.hpp"
#include "watch.hpp"

namespace tenure::file {

/// The moments between two system calls at which tests stop a process, or let another one act. From compared to synced
/// they are a claim's, from checked to relisted a renewal's. looked is a reading's.
enum class Step { compared, locked, linked, listed, synced, checked, beaten, relisted, looked };

class Store final : public ConditionalStore {
 public:
  /// Throws as open() does. `witness`: see open_url(); -1: none.
  Store(const std::filesystem::path& directory, std::string election, std::function<void(Step)> at = {},
        int witness = -1);

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override;

 private:
  /// The tenure that this process holds.
  struct Held {
    std::uint64_t number{};
    Descriptor file;  ///< Bears the lock.
    Origin origin;
    Record record;     ///< The record as it was acknowledged last.
    Clock::Time ends;  ///< The lease that others honour: asked + term of the last write that counted.
  };
  struct Look {
    Listing listing;
    Read read;
  };

  std::optional<Error> unusable(const Limit& limit) const;
  Read remember(Read answer);
  Result<Look> look(const Limit& limit, Missing missing = Missing::stays);
  Result<bool> look_into(std::uint64_t newest, Read& out) const;
  Result<bool> judge(Decoded decoded, const Descriptor& file, const std::string& path, Read& out) const;
  void add_step_down(const Listing& listing, Read& out) const;

  bool in_place(const std::optional<Expected>& expected, const Record& next) const;
  Result<Swap> renew(const Record& next, const Limit& limit);
  Result<Swap> release(const Record& next, const Limit& limit);
  Result<Swap> not_applied(const Limit& limit);
  Result<Swap> give_up(const Limit& limit);
  Result<bool> still_mine() const;
  Result<bool> is_newest(const Held& mine, Listing& listing) const;
  bool is_named(const Held& mine) const;

  Result<Swap> publish(const std::optional<Expected>& expected, const Record& next, const Limit& limit);
  Result<Swap> settle(Held mine, const Limit& limit);
  void take_back(const Held& mine) const;
  Result<Held> prepare(const Record& next) const;
  void remove_before(const Listing& listing, const Held& mine) const;
  Swap applied(const Record& record, const Listing& listing, const Limit& limit) const;

  bool differs(const std::optional<Version>& seen, const Read& now) const;
  void reached(Step step) const {
    if (at_) at_(step);
  }

  std::string election_;
  std::function<void(Step)> at_;
  int witness_;
  unsigned life_{life()};
  std::string boot_id_;
  std::uint64_t time_namespace_{};
  ElectionDirectory directory_;
  std::optional<Held> held_;
  std::optional<Token> lost_;            ///< A tenure of ours that ended against our will. It is never renewed again.
  std::optional<Token> known_released_;  ///< The tenure that our last answer showed as released.
  Subscription subscription_;
};

/// The elections below a directory. Nothing is made there.
ElectionList list_of(const std::filesystem::path& directory);

}  // namespace tenure::file
