// SPDX-License-Identifier: Apache-2.0
// Checks and completes options, and turns them into properties.
#include "settings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string words(Clock::Duration d) { return std::to_string(std::chrono::ceil<milliseconds>(d).count()) + " ms"; }

// ---- properties that the election owns ----

struct Owned {
  std::string_view names, reason;
};

constexpr Owned owned_properties[] = {
    {"bootstrap.servers metadata.broker.list", "use Options::brokers"},
    {"group.id", "the group names the election: use Options::group"},
    {"client.id", "it carries the candidate's rank, by which the leader keeps partition 0"},
    {"group.instance.id", "a static member is replaced within a generation, so it could not be fenced"},
    {"group.protocol group.remote.assignor",
     "only the classic protocol fences offset commits by an assignor that we choose"},
    {"group.protocol.type", "the group is one of consumers"},
    {"partition.assignment.strategy", "range gives partition 0 to the lowest rank, so that a leader stays"},
    {"client.rack", "nothing is fetched, and from librdkafka 2.2 on it decides who owns partition 0"},
    {"session.timeout.ms max.poll.interval.ms", "it follows from the Timing's term: use Options::session"},
    {"heartbeat.interval.ms", "it follows from the Timing's renew: use Options::heartbeat"},
    {"isolation.level", "reads must wait for commits in flight"},
    {"api.version.request api.version.fallback.ms broker.version.fallback",
     "reads must wait for open transactions, and older versions of the request cannot ask for that"},
    {"enable.auto.commit auto.commit.interval.ms auto.commit.enable enable.auto.offset.store offset.store.method "
     "offset.store.sync.interval.ms",
     "an offset commit is the claim to lead"},
    {"auto.offset.reset enable.partition.eof", "nothing is consumed"},
    {"allow.auto.create.topics", "use Options::create_topic"},
    {"socket.max.fails", "a request that was given up must end its connection, which tells that it was sent again"},
    {"log.queue log.thread.name", "use Options::log"},
    {"enabled_events", "the library serves the client itself"},
    {"test.mock.num.brokers", "an election on brokers inside this process would elect everybody"},
};

bool has_word(std::string_view words, const std::string& word) {
  return (" " + std::string(words) + " ").find(" " + word + " ") != std::string::npos;
}

/// The client must give up well before a lease ends.
constexpr std::string_view bounded_properties =
    "socket.timeout.ms api.version.request.timeout.ms socket.connection.setup.timeout.ms reconnect.backoff.max.ms "
    "reconnect.backoff.ms";
constexpr int max_patience_ms = 2000;

constexpr std::size_t most_properties = 500;  ///< More than any client library has.

constexpr Clock::Duration least_session = milliseconds(100);  ///< Shorter ones end by the scheduler's delays.
constexpr Clock::Duration least_heartbeat = milliseconds(25), most_heartbeat = seconds(3);

[[noreturn]] void refuse_property(const std::string& name, const std::string& why) {
  refuse("properties[\"" + printable(name, 80) + "\"]" + why);
}

}  // namespace

void check_not_owned(const Properties& properties) {
  for (const auto& [name, value] : properties) {
    for (const auto& owned : owned_properties)
      if (has_word(owned.names, lower(name)))
        refuse_property(name, " is decided by the election: " + std::string(owned.reason));
    if (name.ends_with("_cb") || name == "opaque" || name == "default_topic_conf" || name == "interceptors")
      refuse_property(name, " cannot be given as text");
    const auto ms = number<int>(value);  // librdkafka reads other forms, too, such as 0x7530.
    if (has_word(bounded_properties, name) && (!ms || *ms > max_patience_ms))
      refuse_property(name, " may be at most " + std::to_string(max_patience_ms) +
                                " ms, in decimal digits, because a client that waits longer outlives the lease");
  }
}

namespace {

// ---- names ----

std::string program_name() {
  std::ifstream comm("/proc/self/cmdline");
  std::string path;
  std::getline(comm, path, '\0');
  return path.substr(path.find_last_of('/') + 1);
}

constexpr std::string_view of_requests = ".requests";

void check_topic(const std::string& topic) {
  const auto legal = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
  if (!topic.empty() && topic.size() <= 249 && topic != "." && topic != ".." &&
      std::all_of(topic.begin(), topic.end(), legal))
    return;
  refuse("topic \"" + printable(topic, 80) +
         "\" is no name for a Kafka topic: 1 to 249 characters of a-z A-Z 0-9 . _ - are allowed. Set Options::topic");
}

void check_group(const std::string& group) {
  check_election(group);
  // Brokers replace bytes that are not UTF-8, so that two groups could become one.
  const bool controls = std::ranges::any_of(group, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (controls || utf8(group) != group)
    refuse("group \"" + printable(group, 80) +
           "\" is not UTF-8, or has control characters. Set Options::group to a name without them");
  if (group.ends_with(of_requests))
    refuse("group \"" + printable(group, 80) + "\" is where requests to the election of the name before " +
           std::string(of_requests) + " to step down are kept. Set Options::group to another name");
}

void check_topic_to_create(const std::optional<CreateTopic>& topic) {
  if (topic && topic->partitions < 2)
    refuse("create_topic.partitions is " + std::to_string(topic->partitions) +
           "; at least 2 are needed: partition 1 proves that what is read of partition 0 is current");
  if (topic && (topic->replication_factor == 0 || topic->replication_factor < -1))
    refuse("create_topic.replication_factor is " + std::to_string(topic->replication_factor) +
           "; 1 or more is allowed, or -1 for the broker's default");
}

void check_durations(const Options& o) {
  const auto check = [](const char* name, const std::optional<Clock::Duration>& d, Clock::Duration least) {
    if (d && (*d < least || *d > max_term))
      refuse(std::string("Options::") + name + " is " + words(*d) + "; " + words(least) + " to an hour is allowed");
  };
  check("session", o.session, least_session);
  check("min_session", o.min_session, least_session);
  check("heartbeat", o.heartbeat, least_heartbeat);
  check("observe_every", o.observe_every, least_heartbeat / 2);
}

// ---- the client's language ----

/// ", did you mean ...?" by the names that this librdkafka documents.
std::string suggestion(const std::string& name) {
  char* text = nullptr;
  std::size_t size = 0;
  if (std::FILE* const file = ::open_memstream(&text, &size)) {
    rd_kafka_conf_properties_show(file);
    std::fclose(file);
  }
  const auto owner = owned<std::free>(text);
  std::vector<std::string_view> names;  // A table: each line begins with a name and a blank.
  for (std::string_view rest(text ? text : "", size); !rest.empty();) {
    names.push_back(rest.substr(0, rest.find_first_of(" \n")));
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  return did_you_mean(name, names);
}

/// librdkafka must know each property and its value.
void check_properties(const Properties& properties) {
  const Conf conf(rd_kafka_conf_new());
  const auto redacted = redactor_of(properties);
  for (const auto& [name, value] : properties) {
    char why[512] = "";
    const auto result = rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why);
    if (result == RD_KAFKA_CONF_OK) continue;
    if (result == RD_KAFKA_CONF_UNKNOWN) refuse_property(name, ": No such configuration property" + suggestion(name));
    // Some releases repeat the value, and whoever mistakes a name may have written a secret.
    const auto told = name.starts_with("sasl.oauthbearer.") ? Redactor({value})(why) : std::string(why);
    refuse_property(
        name, secret(name) ? ": librdkafka does not accept its value (not shown)" : ": " + printable(redacted(told)));
  }
}

std::string_view value_of(const Properties& properties, const std::string& name) {
  const auto found = properties.find(name);
  return found == properties.end() ? std::string_view() : std::string_view(found->second);
}

/// How long a request may take before its connection is given up.
milliseconds in_flight(const Options& options) {
  const auto given = number<int>(value_of(options.properties, "socket.timeout.ms"));
  return milliseconds(given.value_or(max_patience_ms));
}

/// Without a source of tokens or passwords a handle would wait for one for ever, and blame something else.
void check_login(const Options& o) {
  std::map<std::string, std::string> given;
  for (const auto& [name, value] : o.properties) given[lower(name)] = lower(value);
  const bool signs_in = given["security.protocol"].starts_with("sasl_");
  const bool by_token =
      signs_in && (given["sasl.mechanism"] == "oauthbearer" || given["sasl.mechanisms"] == "oauthbearer");
  if (o.credentials && (!signs_in || by_token))
    refuse(
        "credentials are given, so properties need security.protocol=sasl_ssl (or sasl_plaintext) and a sasl.mechanism "
        "with user and password, such as PLAIN; for OAUTHBEARER give Options::oauth_token");
  if (o.credentials && (given.contains("sasl.username") || given.contains("sasl.password")))
    refuse("credentials and properties[\"sasl.username\"] or [\"sasl.password\"] are both given; give one of them");
  if (o.oauth_token && !by_token)
    refuse(
        "oauth_token is given, so properties need sasl.mechanism=OAUTHBEARER and security.protocol=sasl_ssl (or "
        "sasl_plaintext)");
  if (given["enable.sasl.oauthbearer.unsecure.jwt"] == "true")
    refuse(
        "properties[\"enable.sasl.oauthbearer.unsecure.jwt\"] is for development alone, and librdkafka 2.0 dies when "
        "such a token is renewed: give Options::oauth_token");
  if (by_token && !o.oauth_token && given["sasl.oauthbearer.method"] != "oidc")
    refuse(
        "sasl.mechanism is OAUTHBEARER, and nothing gives a token: give Options::oauth_token, or set "
        "sasl.oauthbearer.method=oidc with its sasl.oauthbearer.token.endpoint.url, client.id and client.secret");
  if (o.oauth_token && given["sasl.oauthbearer.method"] == "oidc")
    refuse("oauth_token is given, and sasl.oauthbearer.method=oidc as well; give one of them");
}

}  // namespace

void refuse(const std::string& what) { throw std::invalid_argument("kafka: " + what); }

std::string requests_group(const std::string& group) { return group + std::string(of_requests); }

Options completed(Options o) {
  if (o.brokers.empty()) refuse("Options::brokers is empty: give \"host:port,...\"");
  if (o.group.empty()) o.group = program_name();
  check_group(o.group);
  if (o.topic.empty()) o.topic = o.group + ".neli";
  check_topic(o.topic);
  o.candidate = checked(std::move(o.candidate));
  check_durations(o);
  check_topic_to_create(o.create_topic);
  if (o.properties.size() > most_properties)
    refuse(std::to_string(o.properties.size()) + " properties are given; " + std::to_string(most_properties) +
           " are allowed");
  check_not_owned(o.properties);
  check_login(o);
  check_properties(common_properties(o, o.group));
  return o;
}

// ---- the pace ----

namespace {

Clock::Duration heartbeat_of(const Timing& timing, const Options& options) {
  return options.heartbeat.value_or(std::clamp(timing.renew / 2, least_heartbeat, most_heartbeat));
}

/// A term that the session allows, or a session that the term allows.
std::string advice(const Timing& timing, const Pace& pace, const Options& options) {
  if (options.session || pace.session <= Options{}.min_session)
    return std::string(
               "These work: tenure::kafka::presets().fast with term 6250 ms and margin 250 ms, or a shorter "
               "Options::") +
           (options.session ? "session" : "min_session, if the brokers allow that");
  const auto term = std::chrono::ceil<seconds>(pace.session + pace.session / 20 + timing.margin);
  return "This works: term " + words(term) + ", renew " + words(term / 11) + " and margin " + words(timing.margin) +
         ", or a shorter Options::min_session, if the brokers allow that";
}

Error unfit(std::string message) { return {Fault::misconfigured, "kafka: " + std::move(message)}; }

/// What holds for both protocols.
Result<Pace> checked_pace(const Pace& pace) {
  if (pace.heartbeat * 4 > pace.session)
    return unfit("the heartbeat (" + words(pace.heartbeat) + ") must be at most a quarter of the session (" +
                 words(pace.session) + ")");
  return pace;
}

}  // namespace

Result<Pace> pace_of(const Timing& timing, const Options& options) {
  const auto lead = timing.term - timing.margin;
  const auto heartbeat = heartbeat_of(timing, options);
  // A lease is waited for from when its last renewal was seen: with a short one, half a heartbeat of delay counts.
  const auto observe_every = heartbeat < milliseconds(500) ? heartbeat / 2 : heartbeat;
  const Pace pace{.session = options.session.value_or(std::max(options.min_session, lead - heartbeat)),
                  .heartbeat = heartbeat,
                  .observe_every = options.observe_every.value_or(observe_every)};
  if (lead < pace.session)
    return unfit(
        "term - margin (" + words(lead) + ") must be at least the session (" + words(pace.session) +
        (options.session ? "" : ", the least by Options::min_session: the brokers' group.min.session.timeout.ms") +
        "), or the leader loses the lead before a dead member is noticed. " + advice(timing, pace, options));
  if (timing.renew > timing.term / 6)
    return unfit("renew (" + words(timing.renew) + ") must be at most term / 6 (" + words(timing.term / 6) +
                 "), so that a leader outlives lost answers and rebalances");
  return checked_pace(pace);
}

Clock::Duration least_presumption(const Pace& pace, const Options& options) {
  return 2 * pace.session + rebalance_of(pace) + in_flight(options);
}

Result<Pace> group_pace_of(const Timing& timing, const Options& options, Exclusive exclusive) {
  if (exclusive == Exclusive::yes) return pace_of(timing, options);
  const auto presumed = timing.term - timing.margin;
  const auto session = std::chrono::floor<milliseconds>((presumed - in_flight(options)) / 4);
  const auto heartbeat = heartbeat_of(timing, options);
  const Pace pace{.session = options.session.value_or(std::max<Clock::Duration>(options.min_session, session)),
                  .heartbeat = heartbeat,
                  .observe_every = options.observe_every.value_or(heartbeat)};
  if (const auto least = least_presumption(pace, options); presumed < least)
    return unfit("term - margin (" + words(presumed) + ") must be at least " + words(least) +
                 " with Exclusive::no: two sessions (" + words(pace.session) + " each), a rebalance (" +
                 words(rebalance_of(pace)) + "), and what a request may still take (socket.timeout.ms, " +
                 words(in_flight(options)) +
                 "). Else a role could be without a leader. These work: "
                 "tenure::kafka::group_presets(Exclusive::no).fast with term 26500 ms and margin 500 ms, or a shorter "
                 "Options::session where the brokers allow it (group.min.session.timeout.ms)");
  if (timing.renew * 3 > pace.session)
    return unfit("renew (" + words(timing.renew) + ") must be at most a third of the session (" + words(pace.session) +
                 ") with Exclusive::no, so that a lost answer does not cost the membership");
  return checked_pace(pace);
}

Properties common_properties(const Options& options, const std::string& group) {
  Properties out{
      {"socket.timeout.ms", "2000"},
      {"api.version.request.timeout.ms", "2000"},
      {"socket.connection.setup.timeout.ms", "2000"},
      {"reconnect.backoff.ms", "50"},
      {"reconnect.backoff.max.ms", "500"},
      {"socket.keepalive.enable", "true"},
      {"socket.nagle.disable", "true"},
      {"topic.metadata.refresh.interval.ms", "60000"},
      {"log.connection.close", "false"},
      // So much a hostile broker can make us keep. All records of 256 units have less than 1 MB, and the names of 100
      // 000 groups, among which owners are looked for, less than 10 MB.
      {"receive.message.max.bytes", "16777216"},
      {"queued.max.messages.kbytes", "1024"},  // Nothing is fetched, but librdkafka wants less than that bound here.
      {"session.timeout.ms", "2000"},          // of a handle that joins no group: how long it waits for a coordinator
  };
  for (const auto& [name, value] : options.properties) out[name] = value;
  out["bootstrap.servers"] = options.brokers;
  out["group.id"] = group;
  out["client.id"] = observer_client_id;
  out["isolation.level"] = "read_committed";
  out["enable.auto.commit"] = "false";
  out["enable.auto.offset.store"] = "false";
  out["allow.auto.create.topics"] = "false";
  return out;
}

Properties member_properties(const Options& options, const Pace& pace, const std::string& client_id) {
  const auto ms = [](Clock::Duration d) { return std::to_string(std::chrono::ceil<milliseconds>(d).count()); };
  auto out = common_properties(options, options.group);
  out["client.id"] = client_id;
  out["partition.assignment.strategy"] = "range";
  out["session.timeout.ms"] = ms(pace.session);
  out["heartbeat.interval.ms"] = ms(pace.heartbeat);
  out["max.poll.interval.ms"] = ms(rebalance_of(pace));  // It is the rebalance time-out, too.
  return out;
}

bool secret(std::string_view property) {
  const auto name = lower(property);
  return name.find("password") != name.npos || name.find("secret") != name.npos || name.find("token") != name.npos ||
         (name.starts_with("sasl.oauthbearer.") && name != "sasl.oauthbearer.method") || name == "ssl.key.pem" ||
         name == "ssl_key" || name == "sasl.kerberos.kinit.cmd" || name == "ssl.certificate.pem";
}

std::vector<std::string> secrets_of(const Properties& properties) {
  std::vector<std::string> secrets;
  for (const auto& [name, value] : properties)
    if (secret(name)) secrets.push_back(value);
  return secrets;
}

Redactor redactor_of(const Properties& properties) { return Redactor(secrets_of(properties)); }

std::string tls_remedy(const Options& options) {
  const auto is_one_of = [&](std::string_view values, const char* property) {
    return has_word(values, lower(value_of(options.properties, property)));
  };
  if (!is_one_of("ssl sasl_ssl", "security.protocol")) return "Set the property security.protocol to ssl or sasl_ssl";
  for (const auto* check : {"enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm"})
    if (is_one_of("false f 0 none", check))
      return std::string("Leave out the property ") + check + ": without that check anybody can be the broker";
  return {};
}

std::vector<std::string> hosts_of_a_network(const Options& options) {
  std::vector<std::string> out;
  std::istringstream brokers(options.brokers);
  for (std::string host; std::getline(brokers >> std::ws, host, ',');) {
    if (const auto scheme = host.find("://"); scheme != host.npos) host.erase(0, scheme + 3);
    if (const auto port = host.rfind(':'); port != host.npos && host.find(']', port) == host.npos) host.erase(port);
    if (!loopback(host)) out.push_back(host);
  }
  return out;
}

}  // namespace tenure::kafka
