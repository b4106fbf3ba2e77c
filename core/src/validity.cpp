// SPDX-License-Identifier: Apache-2.0
#include "validity.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include <tenure/fake_leadership.hpp>
#include <tenure/leadership.hpp>

namespace tenure {

Validity::Validity(Clock& clock) : clock_(clock) {
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

Validity::~Validity() { ::munmap(page_, sizeof(Page)); }

void Validity::write(Token token, Clock::rep deadline) noexcept {
  const auto next = page_->count.load(std::memory_order_relaxed) + 1;
  auto& slot = page_->slots[next % 2];
  // Release, although the count follows: a reader that sees a field of this write must also see the count before it.
  slot.token.store(token.value, std::memory_order_release);
  slot.deadline.store(deadline, std::memory_order_release);
  page_->count.store(next, std::memory_order_release);
}

void Validity::publish(Token token, Clock::Time deadline) noexcept {
  write(token, deadline.time_since_epoch().count());
}

void Validity::withdraw() noexcept { write(Token{}, 0); }

Validity::Now Validity::now() const noexcept {
  for (;;) {
    const auto count = page_->count.load(std::memory_order_acquire);
    const auto& slot = page_->slots[count % 2];
    const auto token = slot.token.load(std::memory_order_acquire);
    const auto deadline = slot.deadline.load(std::memory_order_acquire);
    if (deadline == 0) return {};
    const auto left = deadline - clock_.now().time_since_epoch().count();
    if (page_->count.load(std::memory_order_acquire) != count) continue;
    if (left <= 0) return {};
    return {Token{token}, Clock::Duration(left)};
  }
}

void Validity::hear(std::optional<Incumbent> incumbent, Clock::Time until) {
  const std::lock_guard lock(mutex_);
  incumbent_ = std::move(incumbent);
  incumbent_until_ = until;
}

std::optional<Incumbent> Validity::incumbent() const {
  if (forked()) return std::nullopt;  // before the lock: it may have been held when we were forked
  const std::lock_guard lock(mutex_);
  if (!incumbent_) return std::nullopt;
  const auto left = incumbent_until_ - clock_.now();
  if (left <= Clock::Duration::zero()) return std::nullopt;
  auto copy = *incumbent_;
  copy.remaining = left;
  return copy;
}

bool Validity::forked() const noexcept { return page_->count.load(std::memory_order_relaxed) == 0; }

Leadership::Leadership(std::shared_ptr<const Validity> validity) : validity_(std::move(validity)) {}

bool Leadership::is_leader() const noexcept { return static_cast<bool>(validity_->now()); }

std::optional<Token> Leadership::token() const noexcept { return guard(Clock::Duration::zero()); }

Clock::Duration Leadership::remaining() const noexcept { return validity_->now().remaining; }

std::optional<Token> Leadership::guard(Clock::Duration cost) const noexcept {
  const auto now = validity_->now();
  if (!now || now.remaining < cost) return std::nullopt;
  return now.token;
}

std::optional<Incumbent> Leadership::incumbent() const { return validity_->incumbent(); }

FakeLeadership::FakeLeadership(Clock& clock) : clock_(clock), validity_(std::make_shared<Validity>(clock)) {}

Leadership FakeLeadership::leadership() const { return Leadership(validity_); }

void FakeLeadership::lead(Token token, Clock::Duration lasting) { validity_->publish(token, clock_.now() + lasting); }

void FakeLeadership::end() { validity_->withdraw(); }

void FakeLeadership::follow(Incumbent incumbent) {
  const auto until = clock_.now() + incumbent.remaining;
  validity_->withdraw();
  validity_->hear(std::move(incumbent), until);
}

}  // namespace tenure
