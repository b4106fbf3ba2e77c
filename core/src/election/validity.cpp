// SPDX-License-Identifier: Apache-2.0
// The page of memory that holds the deadline, and how it is read without a lock.
#include "election/validity.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace tenure {

LeasePage::LeasePage() {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  if (::madvise(memory, sizeof(Page), MADV_WIPEONFORK) != 0) {
    const int error = errno;
    ::munmap(memory, sizeof(Page));
    throw std::system_error(error, std::generic_category(),
                            "madvise(MADV_WIPEONFORK), without which a forked child could take itself for the leader");
  }
  page_ = new (memory) Page{};
  page_->count.store(1);
}

LeasePage::~LeasePage() { ::munmap(page_, sizeof(Page)); }

void LeasePage::write(std::uint64_t holder, Clock::rep deadline) noexcept {
  const auto next = page_->count.load(std::memory_order_relaxed) + 1;
  auto& slot = page_->slots[next % 2];
  // Release, although the count follows: a reader that sees a field of this write must also see the earlier count.
  slot.holder.store(holder, std::memory_order_release);
  slot.deadline.store(deadline, std::memory_order_release);
  page_->count.store(next, std::memory_order_release);
}

void OwnValidity::publish(Token token, Clock::Time deadline) noexcept {
  page_.write(token.value, deadline.time_since_epoch().count());
}

void OwnValidity::withdraw() noexcept { page_.write(0, 0); }

Validity::Now OwnValidity::now() const noexcept {
  for (;;) {
    const auto view = page_.view();
    if (view.deadline == 0) return {};
    const auto left = view.deadline - clock_.now().time_since_epoch().count();
    if (!page_.stands(view)) continue;
    if (left <= 0) return {};
    return {Token{view.holder}, Clock::Duration(left)};
  }
}

void OwnValidity::hear(std::optional<Incumbent> incumbent, Clock::Time until) {
  const std::lock_guard lock(mutex_);
  incumbent_ = std::move(incumbent);
  incumbent_until_ = until;
}

std::optional<Incumbent> OwnValidity::incumbent() const {
  if (forked()) return std::nullopt;  // before the lock: it may have been held when we were forked
  const std::lock_guard lock(mutex_);
  if (!incumbent_) return std::nullopt;
  const auto left = incumbent_until_ - clock_.now();
  if (left <= Clock::Duration::zero()) return std::nullopt;
  auto copy = *incumbent_;
  copy.remaining = left;
  return copy;
}

}  // namespace tenure
