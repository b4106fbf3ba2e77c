// SPDX-License-Identifier: Apache-2.0
// Mocks for tests with GoogleMock: of Backend, of ConditionalStore, and FakeLeadership for code that asks whether it
// leads.
#pragma once
#include <gmock/gmock.h>

#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/fake_leadership.hpp>
#include <tenure/kit/wait.hpp>

namespace tenure {

/// A backend that your test instructs. Without an instruction acquire(), renew() and observe() answer Unknown, which
/// elects nobody, and await_change() sleeps until its limit, so that no loop runs hot. The manager calls the mock from
/// a thread of its own.
class MockBackend : public Backend {
 public:
  MockBackend() {
    using testing::_;
    const Error untold{Fault::unreachable, "MockBackend: this call was not expected"};
    ON_CALL(*this, acquire(_)).WillByDefault(testing::Return(Answer(Unknown{untold})));
    ON_CALL(*this, renew(_, _)).WillByDefault(testing::Return(Answer(Unknown{untold})));
    ON_CALL(*this, release(_)).WillByDefault(testing::Return(std::nullopt));
    ON_CALL(*this, observe(_)).WillByDefault(testing::Return(Sight(Unknown{untold})));
    ON_CALL(*this, await_change(_, _)).WillByDefault([](const Sight&, const Limit& limit) { wait_out(limit); });
    ON_CALL(*this, request_step_down(_, _, _)).WillByDefault(testing::Return(untold));
    ON_CALL(*this, accepts(_)).WillByDefault(testing::Return(std::nullopt));
    ON_CALL(*this, election()).WillByDefault(testing::Return("mock"));
  }

  MOCK_METHOD(Answer, acquire, (const Limit& limit), (override));
  MOCK_METHOD(Answer, renew, (Token token, const Limit& limit), (override));
  MOCK_METHOD(std::optional<Error>, release, (const Limit& limit), (override));
  MOCK_METHOD(Sight, observe, (const Limit& limit), (override));
  MOCK_METHOD(void, await_change, (const Sight& seen, const Limit& limit), (override));
  MOCK_METHOD(std::optional<Error>, request_step_down,
              (const std::string& by, const std::string& why, const Limit& limit), (override));
  MOCK_METHOD(std::optional<Error>, accepts, (const Timing& timing), (override));
  MOCK_METHOD(std::string, election, (), (const, override));
};

/// A store that your test instructs. Without an instruction a call returns an error, so that nothing is read
/// or written.
class MockConditionalStore : public ConditionalStore {
 public:
  MockConditionalStore() {
    using testing::_;
    const Error untold{Fault::unreachable, "MockConditionalStore: this call was not expected"};
    ON_CALL(*this, read(_)).WillByDefault(testing::Return(Result<Read>(untold)));
    ON_CALL(*this, compare_and_set(_, _, _)).WillByDefault(testing::Return(Result<Swap>(untold)));
    ON_CALL(*this, await_change(_, _)).WillByDefault([](const std::optional<Version>&, const Limit& limit) {
      wait_out(limit);
      return std::nullopt;
    });
    ON_CALL(*this, request_step_down(_, _)).WillByDefault(testing::Return(untold));
    ON_CALL(*this, accepts(_)).WillByDefault(testing::Return(std::nullopt));
  }

  MOCK_METHOD(Result<Read>, read, (const Limit& limit), (override));
  MOCK_METHOD(Result<Swap>, compare_and_set,
              (const std::optional<Expected>& expected, const Record& next, const Limit& limit), (override));
  MOCK_METHOD(std::optional<Version>, await_change, (const std::optional<Version>& seen, const Limit& limit),
              (override));
  MOCK_METHOD(std::optional<Error>, request_step_down, (const StepDown& request, const Limit& limit), (override));
  MOCK_METHOD(std::optional<Error>, accepts, (const Timing& timing), (override));
};

}  // namespace tenure
