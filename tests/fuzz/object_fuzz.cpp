// SPDX-License-Identifier: Apache-2.0
// What a bucket answers: anything is an answer or an error, whose message is printable and tells no secret; and nothing
// is a version that a header cannot have.
#include "dialect.hpp"
#include "fuzz.hpp"

namespace tenure::fuzz {
namespace {

void answer(const std::string& text) {
  Lines lines(text);
  web::Answer made{.status = lines.number<std::uint16_t>(), .head = lines.next() + "\r\n" + lines.next() + "\r\n"};
  made.body = lines.rest();
  for (const auto service : {object::Service::s3, object::Service::gcs, object::Service::azure}) {
    const auto dialect = object::dialect_of(
        {.service = service, .account = "account", .bucket = "bucket", .region = "r", .endpoint = "http://h"});
    const auto error = dialect->error_of(made, Redactor({std::string(canary)}));
    require(printable_text(error.message), "an error is printable");
    require(!contains(error.message, canary), "an error tells no secret");
    if (const auto version = dialect->version_of(made))
      require(printable_text(*version) && !contains(*version, " ") && !version->empty(), "a header can have a version");
    require(!dialect->absent(made) || made.status == 404, "what is absent was not found");
    if (dialect->refuses_login(made)) require(made.status >= 400, "a login is refused by an error");
    dialect->throttles(made);
  }
}

void moment(const std::string& text) {
  require(object::moment_of(text) >= -62'200'000'000'000, "years have four digits");
}

}  // namespace

const std::vector<Target> targets{{"object_answer", answer}, {"object_moment", moment}};

}  // namespace tenure::fuzz
