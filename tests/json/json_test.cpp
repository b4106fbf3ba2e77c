// SPDX-License-Identifier: Apache-2.0
// Goal: a document can say all that a store and a timing need. All its mistakes are told at once, each with its place
// and what would be right, and without a secret.
// Method: documents as texts, and a store that takes any URL. A canary stands in every place where a secret may stand.
#include <sys/stat.h>
#include <unistd.h>

#include <tenure/stores.hpp>
#include "support.hpp"

namespace tenure::test {
namespace {

std::string with_timing(const std::string& timing) {
  return R"({"store": "memory:", "election": "e", "timing": )" + timing + "}";
}
std::string with_store(const std::string& store) { return R"({"store": )" + store + R"(, "election": "e"})"; }

TEST(Json, ADocumentMaySetEveryFieldOfOpeningAndTiming) {
  const Scratch scratch;
  ::setenv("TENURE_TEST_HOST", "host-7", 1);
  const auto got =
      from_json(R"({
    "$schema": "https://example.org/tenure.schema.json",
    "store": {"url": "redis://h:1/0", "user": "u", "password": {"file": ")" +
                    scratch.file("secret", "p@ss\n") + R"("}, "properties": {"a": "1", "b": "${TENURE_TEST_HOST}"}},
    "election": "reports",
    "candidate": {"name": "${TENURE_TEST_HOST}", "address": "10.0.0.7:80"},
    "timing": {"preset": "steady", "term": "20s", "renew": "2500ms", "retry": "150000us", "margin": "1000000000ns",
               "call": "2s", "drain": "0s", "clock_rate_error_ppm": 200.5}
  })",
                any_store);
  EXPECT_EQ(last_opening.url, "redis://h:1/0");
  EXPECT_EQ(last_opening.user, "u");
  EXPECT_EQ(last_opening.password, "p@ss");
  EXPECT_EQ(last_opening.properties, (std::map<std::string, std::string>{{"a", "1"}, {"b", "host-7"}}));
  EXPECT_EQ(last_opening.election, "reports");
  EXPECT_EQ(last_opening.candidate.name, "host-7");
  EXPECT_EQ(last_opening.candidate.address, "10.0.0.7:80");
  EXPECT_EQ(got.backend->election(), "reports");
  EXPECT_EQ(got.timing.term, 20s);
  EXPECT_EQ(got.timing.renew, 2500ms);
  EXPECT_EQ(got.timing.retry, 150ms);
  EXPECT_EQ(got.timing.margin, 1s);
  EXPECT_EQ(got.timing.call, 2s);
  EXPECT_EQ(got.timing.drain, 0s);
  EXPECT_DOUBLE_EQ(got.timing.clock_rate_error, 200.5e-6);
}

TEST(Json, ADocumentNeedsNoMoreThanAStoreAndAnElection) {
  const auto got = from_json(R"({"store": "memory:", "election": "e"})", any_store);
  EXPECT_EQ(got.timing, lock_table_presets().balanced);
  EXPECT_EQ(last_opening.candidate.name, "");
  EXPECT_EQ(from_json(with_timing(R"("fast")"), any_store).timing, lock_table_presets().fast);
  EXPECT_EQ(from_json(with_timing(R"({"preset": "steady"})"), any_store).timing, lock_table_presets().steady);
  auto timing = lock_table_presets().balanced;
  timing.drain = 1s;
  EXPECT_EQ(from_json(with_timing(R"({"drain": "1s"})"), any_store).timing, timing) << "the rest is balanced";
}

TEST(Json, TheUrlOfADocumentChoosesTheStore) {
  const Scratch scratch;
  for (const auto& url : {std::string("memory:json-test"), "file://" + (scratch / "d").string()}) {
    auto configured = from_json(with_store("\"" + url + "\""), open);
    LeaderManager manager(configured.backend, configured.timing);
    manager.start();
    EXPECT_TRUE(manager.await_leadership(10s)) << url;
  }
}

TEST(Json, ADocumentIsReadFromAFile) {
  const Scratch scratch;
  const auto path = scratch.file("c.json", R"({"store": "memory:", "election": "from-file"})");
  EXPECT_EQ(from_json_file(path, any_store).backend->election(), "from-file");
  const auto refusal = [](const fs::path& at) { return refusal_of([&] { from_json_file(at, any_store); }); };
  EXPECT_TRUE(mentions(refusal(scratch / "missing"), "cannot be found: No such file")) << refusal(scratch / "missing");
  EXPECT_TRUE(mentions(refusal(fs::path("/")), "is not a regular file"));
  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(mentions(refusal(scratch / "fifo"), "is not a regular file")) << "and does not hang";
  EXPECT_TRUE(mentions(refusal(scratch.file("large", std::string(max_document_bytes + 1, ' '))), "is too large"));
  EXPECT_EQ(refusal(scratch.file(
                "full", R"({"store": "memory:", "election": "e"})" + std::string(max_document_bytes - 37, ' '))),
            "accepted");
}

// ---- what is wrong ----

TEST(Json, AllMistakesOfADocumentAreReportedTogether) {
  const auto all = findings(R"({
    "stroe": "x", "election": "", "candidate": {"nmae": "a", "address": 5},
    "timing": {"term": 8, "renew": "2", "preset": "fst", "unknown": 1}, "election": "e"
  })");
  std::string text;
  for (const auto& [pointer, message] : all) text += pointer + " " + message + "\n";
  EXPECT_EQ(text,
            "/election stands twice in its object; give it once\n"
            "/stroe is not known, did you mean \"store\"?; known here: store, election, candidate, timing, $schema\n"
            " has no \"store\"\n"
            "/candidate/nmae is not known, did you mean \"name\"?; known here: name, address\n"
            "/candidate/address must be a string, not a number\n"
            "/timing/unknown is not known; known here: preset, term, renew, retry, margin, call, drain, "
            "clock_rate_error_ppm\n"
            "/timing/preset \"fst\" is not a preset, did you mean \"fast\"?; known here: fast, balanced, steady\n"
            "/timing/term has no unit: write \"8s\" or \"8ms\"\n"
            "/timing/renew \"2\" is not a duration: write a whole number and ns, us, ms or s, for instance \"8s\" or "
            "\"750ms\"\n");
  EXPECT_EQ(refusal_of([] { from_json(R"({"election": 5})", any_store); }),
            "configuration: the document has no \"store\"; /election must be a string, not a number");
}

TEST(Json, DurationsAreExactAndHaveUnits) {
  for (const std::string wrong : {R"("")", R"("s")", R"("8")", R"("8 s")", R"(" 8s")", R"("8S")", R"("-8s")",
                                  R"("+8s")", R"("1.5s")", R"("8m")", R"("8s\n")", R"("0x8s")", R"("8ss")", R"("８s")"})
    EXPECT_TRUE(mentions(finding(with_timing("{\"term\": " + wrong + "}")), "is not a duration")) << wrong;
  for (const std::string wrong : {"8", "-8", "8.5", "1e3", "18446744073709551615"})
    EXPECT_TRUE(mentions(finding(with_timing("{\"term\": " + wrong + "}")), "/timing/term has no unit: write "))
        << wrong;
  EXPECT_TRUE(mentions(finding(with_timing(R"({"term": 8.5})")), "for instance \"8s\""));
  for (const std::string wrong : {"null", "true", "[]", "{}"})
    EXPECT_TRUE(mentions(finding(with_timing("{\"term\": " + wrong + "}")), "must be a string such as \"8s\""))
        << wrong;
  for (const std::string large : {"3601s", "3600001ms", "9223372036854775807s", "9999999999999999999999999999999ns",
                                  "18446744073709551617s", "3600000000001ns"})
    EXPECT_TRUE(mentions(finding(with_timing("{\"term\": \"" + large + "\"}")), "more than an hour")) << large;
  EXPECT_EQ(from_json(with_timing(R"({"drain": "3600s"})"), any_store).timing.drain, 1h);
  EXPECT_EQ(from_json(with_timing(R"({"drain": "0000000000000000000000000750ms"})"), any_store).timing.drain, 750ms);
  EXPECT_TRUE(mentions(finding(with_timing(R"({"term": "0s"})")), "/timing/term must be more than zero"));
}

TEST(Json, ATimingThatCannotWorkIsRefusedWithOneThatWould) {
  const auto said = finding(with_timing(R"({"term": "1s"})"));
  EXPECT_TRUE(mentions(said, "/timing Timing: term (1s) must be greater than")) << said;
  EXPECT_TRUE(mentions(said, "This would work:"));
  for (const std::string wrong : {"-1", "250000", "1e300"})
    EXPECT_TRUE(mentions(finding(with_timing("{\"clock_rate_error_ppm\": " + wrong + "}")), "below 250000")) << wrong;
  EXPECT_TRUE(mentions(finding(with_timing(R"({"clock_rate_error_ppm": "5"})")), "must be a number"));
  EXPECT_TRUE(mentions(finding(with_timing("[]")), "/timing must be \"fast\""));
  EXPECT_TRUE(mentions(finding(with_timing("5")), "/timing must be \"fast\""));
}

TEST(Json, ATimingOrUrlThatTheStoreRefusesIsAFinding) {
  const auto said = finding(with_timing(R"("fast")"), [](const Opening&) {
    struct Slow : Backend {
      Answer acquire(const Limit&) override { return {}; }
      Answer renew(Token, const Limit&) override { return {}; }
      std::optional<Error> release(const Limit&) override { return {}; }
      Sight observe(const Limit&) override { return {}; }
      void await_change(const Sight&, const Limit&) override {}
      std::optional<Error> accepts(const Timing&) override {
        return Error{Fault::misconfigured, "slow: terms begin at a minute"};
      }
    };
    return Opened{std::make_shared<Slow>(), {Timing::of(3s), Timing::of(10s), Timing::of(30s)}};
  });
  EXPECT_EQ(said, "/timing slow: terms begin at a minute");
  EXPECT_EQ(finding(with_store("\"nonsense://x\""), open).substr(0, 23), "/store tenure::open: th");
  EXPECT_EQ(finding(with_store("\"memory:\""), [](const Opening&) { return Opened{}; }),
            "/store could not be opened: the opener returned no store and no reason");
  EXPECT_THROW(from_json(with_store("\"memory:\""),
                         [](const Opening&) -> Opened { throw std::runtime_error("no descriptor left"); }),
               std::runtime_error);
}

TEST(Json, TypesKeysAndLengthsAreChecked) {
  EXPECT_EQ(finding("[]"), " must be an object, not an array");
  EXPECT_EQ(finding("5"), " must be an object, not a number");
  EXPECT_EQ(finding(R"({"store": 5, "election": "e"})"),
            "/store must be a URL or an object with a \"url\", not a number");
  EXPECT_EQ(finding(R"({"store": "h:1", "election": null})"), "/election must be a string, not null");
  EXPECT_TRUE(mentions(finding(with_store("\"\"")), "/store must be a URL"));
  EXPECT_TRUE(mentions(finding(with_store("\"/directory\"")), "/store must be a URL"));
  EXPECT_TRUE(mentions(finding(with_store(R"({"url": "nothing"})")), "/store/url must be a URL"));
  EXPECT_EQ(finding(with_store("{}")), "/store has no \"url\"");
  EXPECT_EQ(finding(with_store(R"({"url": "memory:", "properties": []})")),
            "/store/properties must be an object, not an array");
  EXPECT_EQ(finding(with_store(R"({"url": "memory:", "properties": {"replicas": 1}})")),
            "/store/properties/replicas must be a string, not a number: write it in quotes");
  EXPECT_EQ(finding(with_store(R"({"url": "memory:", "properties": {"": "x"}})")),
            "/store/properties/ has an empty name");
  EXPECT_EQ(finding(with_store(R"({"url": "memory:", "pasword": "x"})")),
            "/store/pasword is not known, did you mean \"password\"?; known here: url, user, password, properties");
  EXPECT_EQ(finding(R"({"store": "memory:", "election": ")" + std::string(201, 'x') + "\"}"),
            "/election has 201 bytes; 1 to 200 bytes without NUL are allowed");
  EXPECT_EQ(finding(R"({"store": "memory:", "election": "a\u0000b"})"),
            "/election has 3 bytes, and a NUL is one of them; 1 to 200 bytes without NUL are allowed");
  EXPECT_EQ(
      finding(R"({"store": "memory:", "election": "e", "candidate": {"address": ")" + std::string(101, 'x') + "\"}}"),
      "/candidate/address has 101 bytes; 0 to 100 bytes without NUL are allowed");
  EXPECT_EQ(finding(R"({"store": "memory:", "election": "e", "candidate": "me"})"),
            "/candidate must be an object, not a string");
  EXPECT_EQ(finding(R"({"store": "memory:", "election": "e", "$schema": 1})"),
            "/$schema must be a string, not a number");
}

TEST(Json, TextThatIsNotJsonIsRefusedWithLineAndColumn) {
  EXPECT_EQ(finding(""),
            " is not JSON: it cannot be read at line 1, column 1 (the text is not shown, because it may be a secret)");
  EXPECT_EQ(finding("{\n  \"store\": nonsense}"),
            " is not JSON: it cannot be read at line 2, column 13 (the text is not shown, because it may be a secret)");
  EXPECT_TRUE(mentions(finding(R"({"store": "memory:"} x)"), "line 1, column 22"));
  EXPECT_TRUE(mentions(finding("{\"store\": \"\xff\"}"), "is not JSON"));
  EXPECT_TRUE(mentions(finding(R"({"store": 1e999})"), "a number that is too large"));
  EXPECT_TRUE(mentions(finding(R"({"store": "memory:", // comment
    "election": "e"})"),
                       "is not JSON"));
  EXPECT_TRUE(mentions(finding(std::string(max_document_bytes + 1, ' ')), "at most 1048576"));
  EXPECT_TRUE(mentions(finding(std::string(30'000, '[')), "nested too deeply; 8 levels"));
  std::string deep = "1";
  for (int i = 0; i < 9; ++i) deep = "{\"a\":" + deep + "}";
  EXPECT_TRUE(mentions(finding(deep), "nested too deeply"));
}

TEST(Json, AKeyThatStandsTwiceIsRefusedAtAnyDepth) {
  EXPECT_EQ(finding(R"({"store": "memory:", "election": "e", "timing": {"term": "9s", "term": "9s"}})"),
            "/timing/term stands twice in its object; give it once");
  EXPECT_EQ(finding(R"({"store": {"url": "memory:", "properties": {"a": "1", "b": "2", "a": "1"}}, "election": "e"})"),
            "/store/properties/a stands twice in its object; give it once");
  EXPECT_EQ(findings(R"({"store": "memory:", "election": "e", "x": [{"a": 1, "a": 1}]})")[0].pointer, "/x/-/a");
}

// ---- secrets ----

TEST(Json, SecretsComeFromEnvironmentVariablesAndFiles) {
  const Scratch scratch;
  ::setenv("TENURE_TEST_SECRET", canary.c_str(), 1);
  ::setenv("TENURE_TEST_EMPTY", "", 1);
  ::unsetenv("TENURE_TEST_UNSET");
  const auto password = [](const std::string& value) {
    return with_store(R"({"url": "memory:", "password": )" + value + "}");
  };
  const auto got = [&](const std::string& value) {
    from_json(password(value), any_store);
    return last_opening.password;
  };
  const auto in_file = [&](const std::string& content) {
    return "{\"file\": \"" + scratch.file("secret", content) + "\"}";
  };
  EXPECT_EQ(got(R"("${TENURE_TEST_SECRET}")"), canary);
  EXPECT_EQ(got(R"("$TENURE_TEST_SECRET")"), "$TENURE_TEST_SECRET") << "no other notation";
  EXPECT_EQ(got(in_file("a b\n")), "a b");
  EXPECT_EQ(got(in_file("a\n\n")), "a\n") << "one newline";
  EXPECT_EQ(got(in_file("a\r\n")), "a\r");
  EXPECT_EQ(got(in_file("a")), "a");
  ::setenv("TENURE_TEST_URL", "redis://h", 1);
  from_json(with_store(R"("${TENURE_TEST_URL}")"), any_store);
  EXPECT_EQ(last_opening.url, "redis://h");
  from_json(with_store(R"({"url": {"file": ")" + scratch.file("url", "redis://f\n") + "\"}}"), any_store);
  EXPECT_EQ(last_opening.url, "redis://f");

  EXPECT_EQ(finding(password(R"("${TENURE_TEST_UNSET}")")),
            "/store/password needs the environment variable TENURE_TEST_UNSET, which is not set");
  EXPECT_EQ(finding(password(R"("${TENURE_TEST_EMPTY}")")),
            "/store/password needs the environment variable TENURE_TEST_EMPTY, which is empty");
  for (const std::string wrong :
       {"x${A}", "${A}x", "${A", "${}", "${A}${B}", "${1A}", "${A B}", "x${", "${${A}}", "${\xc3\xa4}"})
    EXPECT_TRUE(mentions(finding(password("\"" + wrong + "\"")), "/store/password has \"${\" in it")) << wrong;
  EXPECT_TRUE(mentions(finding(password(R"({"file": "relative"})")), "/store/password/file must be an absolute path"));
  EXPECT_TRUE(mentions(finding(password(R"({"file": "/x\u0000y"})")), "/store/password/file must be an absolute path"));
  EXPECT_TRUE(mentions(finding(password(R"({"file": 5})")), "/store/password/file must be a string"));
  EXPECT_TRUE(mentions(finding(password(R"({})")), "/store/password has no \"file\""));
  EXPECT_EQ(findings(password(R"({"fiel": "/x"})")).size(), 2u) << "one key too many, one missing";
  EXPECT_TRUE(mentions(finding(password(R"({"file": "/nonexistent/x"})")), "cannot be found: No such file"));
  EXPECT_TRUE(mentions(finding(password(R"({"file": "/dev/zero"})")), "is not a regular file"));
  EXPECT_TRUE(mentions(finding(password(in_file(""))), "is empty"));
  EXPECT_TRUE(mentions(finding(password(in_file("\n"))), "is empty"));
  EXPECT_TRUE(mentions(finding(password(in_file(std::string("a\0b", 3)))), "has a NUL byte"));
  EXPECT_TRUE(mentions(finding(password(in_file(std::string(max_document_bytes + 1, 'x')))), "is too large"));
  if (::geteuid() != 0) {
    const auto path = in_file("x");
    fs::permissions(scratch / "secret", fs::perms::none);
    EXPECT_TRUE(mentions(finding(password(path)), "cannot be opened: Permission denied"));
  }
}

/// A store that tells everything it was given.
Opened gossip(const Opening& o) {
  std::string all = "cannot open " + o.url + " as " + o.user + " with " + o.password;
  for (const auto& [name, value] : o.properties) all += ", " + name + "=" + value;
  throw std::invalid_argument(all);
}

TEST(Json, TheFileOfAPasswordIsReadAgainAtEachLogin) {
  const Scratch scratch;
  const auto file = scratch.file("password", "first\n");
  from_json(with_store(R"({"url": "memory:", "password": {"file": ")" + file + R"("}})"), any_store);
  ASSERT_TRUE(last_opening.credentials);
  for (const auto* now : {"second", "third"}) {
    scratch.file("password", now);
    EXPECT_EQ(last_opening.credentials().password, now);
  }
  scratch.file("password", "");
  EXPECT_THROW(last_opening.credentials(), std::runtime_error);
}

TEST(Json, NoFindingShowsASecret) {
  const Scratch scratch;
  ::setenv("TENURE_TEST_SECRET", canary.c_str(), 1);
  ::setenv("TENURE_TEST_URL", (std::string("redis://u:") + canary + "@h/%zz").c_str(), 1);
  const std::string c = canary, file = R"({"file": ")" + scratch.file("secret", c + "\n") + "\"}",
                    nul = R"({"file": ")" + scratch.file("nul", c + std::string("\0", 1)) + "\"}";
  std::vector<std::string> documents{
      c,
      "\"" + c + "\"",
      "{\"" + c,
      "{\"" + c + " x\": 1}",
      "{\"store\": \"redis://u:" + c + "@h\" x}",
      "{\"store\": \"" + c,
      "{\"store\": " + c + "}",
      "{\"store\": \"" + c + "\xff\"}",
      R"({"store": ")" + c + "\\x\"}",
      with_store("\"" + c + "\""),
      with_store("\"redis://u:" + c + "@h\""),
      with_store("\"nonsense:" + c + "@h\""),
      with_store("\"" + c + " x:y\""),
      with_store("\"${TENURE_TEST_URL}\""),
      with_store("\"x${" + c + "}\""),
      with_store(R"({"url": "redis://h", "password": "${TENURE_TEST_SECRET} "})"),
      with_store(R"({"url": "redis://h", "password": ["${TENURE_TEST_SECRET}", ")" + c + "\"]}"),
      with_store(R"({"url": "redis://h", "password": {"value": ")" + c + "\"}}"),
      with_store(R"({"url": "redis://h", "password": )" + nul + "}"),
      with_store(R"({"url": "redis://h", "password": ")" + c + "\\u0000\"}"),
      with_store(R"({"url": "redis://h", "password": ")" + c + R"(", "password": ")" + c + "\"}"),
      with_store(R"({"redis://u:)" + c + R"(@h": 1})"),
      with_store(R"({"url": "redis://h", "user": )" + file + R"(, "unknown": ")" + c + "\"}")};
  for (const std::string scheme : {"memory", "file", "kafka", "postgres", "redis", "rediss", "redis+unix", "nonsense"})
    for (const auto& secret : {"\"" + c + "\"", std::string(R"("${TENURE_TEST_SECRET}")"), file})
      for (const std::string rest : {"", "h", "h?a=1&a=2", "h/%zz"}) {
        const auto url = R"({"url": ")" + scheme + "://" + rest + "\", ";
        documents.push_back(with_store(url + "\"password\": " + secret + "}"));
        documents.push_back(with_store(url + "\"user\": " + secret + "}"));
        documents.push_back(with_store(url + R"("properties": {"sasl.password": )" + secret + "}}"));
        documents.push_back(with_store(url + R"("properties": {"nonsense": )" + secret + "}}"));
        documents.push_back(
            with_store(url + R"("user": "u", "password": )" + secret + R"(, "properties": {"nonsense": "1"}})"));
      }
  for (const auto& document : documents)
    for (const Opener opener : {Opener(open), Opener(gossip)}) {
      if (opener == Opener(open) && mentions(document, "file:///")) continue;
      try {
        from_json(document, opener);
      } catch (const std::exception& e) {
        EXPECT_FALSE(mentions(e.what(), canary)) << e.what() << "\n" << document;
      }
    }
}

}  // namespace
}  // namespace tenure::test
