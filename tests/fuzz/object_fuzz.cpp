// SPDX-License-Identifier: Apache-2.0
// What a bucket answers: anything is an answer or an error, whose message is printable and tells no secret; and nothing
// is a version that a header cannot have.
#include "fuzz.hpp"
#include "s3.hpp"

namespace tenure::fuzz {
namespace {

void answer(const std::string& text) {
  Lines lines(text);
  web::Answer made{.status = lines.number<std::uint16_t>(), .head = lines.next() + "\r\n" + lines.next() + "\r\n"};
  made.body = lines.rest();
  const object::Options options{.bucket = "bucket", .region = "r", .endpoint = "http://h"};
  const auto error = object::error_of(made, options, Redactor({std::string(canary)}));
  require(printable_text(error.message), "an error is printable");
  require(!contains(error.message, canary), "an error tells no secret");
  if (const auto version = object::version_of(made))
    require(printable_text(*version) && !contains(*version, " ") && !version->empty(), "a header can have a version");
  require(!object::absent(made) || made.status == 404, "what is absent was not found");
  if (object::refuses_login(made)) require(made.status >= 400, "a login is refused by an error");
  object::throttles(made);
}

void moment(const std::string& text) {
  require(object::moment_of(text) >= -62'200'000'000'000, "years have four digits");
}

}  // namespace

const std::vector<Target> targets{{"object_answer", answer}, {"object_moment", moment}};

}  // namespace tenure::fuzz
