// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// Elects by one conditional write: the protocol that all lock tables share.
///
/// A record is taken over if it is absent, released, left by an unanswered attempt of this very seat, or lapsed by
/// *our own clock*: unchanged for as long as its holder may believe in it. The store's clock decides nothing, so
/// stepping it does nothing. Whatever is written is conditional on the version that was read.
/// Throws std::invalid_argument for a name that is empty or too long.
TENURE_EXPORT std::shared_ptr<Backend> lock_table(std::shared_ptr<ConditionalStore> store, std::string election,
                                                  Candidate candidate = {}, Log log = {});

/// Presets of every lock table: terms of 3, 10 and 30 s. A crashed leader is replaced after `term` at the latest (at
/// once where the store knows that it died), on average after 0.9 of it; Timing::rides_out() is 0.71 of it.
TENURE_EXPORT Presets lock_table_presets();

}  // namespace tenure
