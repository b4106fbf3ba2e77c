// SPDX-License-Identifier: Apache-2.0
// Every public struct can be made by naming a member or two, and no compiler warns: built with all warnings as errors,
// not run. By its first member and by its last, so that each member must have a default of its own.
// House.EveryPublicStructIsMadeByName compares this list with the headers.
#include <tenure/conditional_store.hpp>
#include <tenure/credentials.hpp>
#include <tenure/fence/etcd.hpp>
#include <tenure/fence/redis.hpp>
#include <tenure/file.hpp>
#include <tenure/group_observer.hpp>
#include <tenure/group_store.hpp>
#include <tenure/hooks.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/leader_task.hpp>
#include <tenure/memory.hpp>
#include <tenure/metrics.hpp>
#include <tenure/open.hpp>
#include <tenure/prometheus.hpp>
#include <tenure/spread.hpp>
#if __has_include(<tenure/etcd.hpp>)
#include <tenure/etcd.hpp>
#endif
#if __has_include(<tenure/http_server.hpp>)
#include <tenure/http_server.hpp>
#endif
#if __has_include(<tenure/json_group.hpp>)
#include <tenure/json_group.hpp>
#endif
#if __has_include(<tenure/kafka.hpp>)
#include <tenure/kafka.hpp>
#endif
#if __has_include(<tenure/object.hpp>)
#include <tenure/object.hpp>
#endif
#if __has_include(<tenure/postgres.hpp>)
#include <tenure/postgres.hpp>
#endif
#if __has_include(<tenure/redis.hpp>)
#include <tenure/redis.hpp>
#endif

namespace tenure {

template <class... T>
void made(const T&...) {}

void of_core(Clock& clock) {
  made(Token{.value = 1});
  made(Candidate{.name = "a"}, Candidate{.address = "a:1"});
  made(Credentials{.user = "a"}, Credentials{.password = "p"});
  made(Incumbent{.name = "a"}, Incumbent{.remaining = {}});
  made(Error{.fault = Fault::forbidden}, Error{.message = "m"});
  made(LogLine{.level = Level::info}, LogLine{.fields = {}});
  made(ObservedElection{.election = "e"}, ObservedElection{.renewed = true}, GroupObserverOptions{.elections = {}},
       GroupObserverOptions{.log = no_log});
  made(Spread{.on = false}, Spread{.most = 1});
  made(ListedElection{.election = "e"}, ListedElection{.age = {}}, ElectionPage{.elections = {}},
       ElectionPage{.last = true});
  made(Check{.what = "w"}, Check{.remedy = "r"}, Check::fine("f"), Check::doubtful("d", "r"), Check::wrong("w", "r"));
  made(OpenedGroup{.store = nullptr}, OpenedGroup{.presets = {}});
  made(Timing{.term = max_term}, Timing{.clock_rate_error = 1e-6});
  made(Presets{.fast = {}}, Presets{.steady = {}});
  made(Elected{.election = "e"}, Elected{.stop = {}});
  made(Ousting{.election = "e"}, Ousting{.expired = {}});
  made(LeaderTask::OnReturn{.then = {}}, LeaderTask::OnReturn{.pause = {}});
  made(Histogram{.counts = {}}, Histogram{.sum = {}});
  made(CallMetrics{.durations = {}}, CallMetrics{.errors = {}});
  made(Metrics{.election = "e"}, Metrics{.hooks = {}});
  made(GroupMetrics{.group = "g"}, GroupMetrics{.session = {}});
  made(Hooks{.elected = {}}, Hooks{.log = no_log}, Hooks{.abort_on_overrun = true});
  made(Opening{.url = "memory:"}, Opening{.log = no_log});
  made(Opened{.backend = {}}, Opened{.presets = {}});
  made(Limit{.clock = clock}, Limit{.clock = clock, .stop = {}});
  made(Unknown{.error = {}}, Granted{.token = {}}, Denied{.holder = {}}, StepDownRequested{.token = {}},
       StepDownRequested{.why = "w"});
  made(Record{.token = {}}, Record{.written_ms = 1}, Version{.token = {}}, Version{.beat = 1});
  made(Expected{.token = {}}, Expected{.released = true}, StepDown{.token = {}}, StepDown{.why = "w"});
  made(SessionId{.value = 1}, Session{.record = {}}, Session{.names = 1}, Lead{.token = {}}, Lead{.step_down = {}});
  made(Look{.now_ms = 1}, Look{.cursor = "c"}, Claim{.election = "e"}, Claim{.expected = {}}, Release{.election = "e"},
       Release{.heir = {}}, Commit{.session = {}}, Commit{.cursor = "c"}, Committed{.granted = true},
       Committed{.look = {}});
  made(Read{.record = {}}, Read{.unreadable = true}, Swap{.applied = true}, Swap{.found = {}});
  made(Url{.scheme = "memory"}, Url{.query = {}}, Url::Host{.name = "h"}, Url::Host{.port = 1});
  made(memory::Traits{.push = true}, memory::Traits{.same_clock = true});
}

void of_prometheus() {
  made(prometheus::Sample{.labels = {}}, prometheus::Sample{.value = 1.0});
  made(prometheus::Family{.name = "n"}, prometheus::Family{.samples = {}});
}

#if __has_include(<tenure/http_server.hpp>)
void of_http() {
  made(http::SiteOptions{.self = {}}, http::SiteOptions{.stuck_after = {}});
  made(http::Request{.method = "GET"}, http::Request{.query = "q"});
  made(http::Response{.status = 200}, http::Response{.events = nullptr});
  made(http::ServerOptions{.address = "127.0.0.1:0"}, http::ServerOptions{.patience = {}});
}
#endif

#if __has_include(<tenure/json_group.hpp>)
void of_json() {
  made(Finding{.pointer = "/store"}, Finding{.message = "m"}, Configured{.backend = {}}, Configured{.timing = {}},
       ConfiguredGroup{.store = {}}, ConfiguredGroup{.elections = {}});
}
#endif

void of_fences() {
  made(fence::EtcdComparison{.key = "k"}, fence::EtcdComparison{.above = "a"});
  made(fence::RedisRecord{.key = "k"}, fence::RedisRecord{.field = "f"});
}

#if __has_include(<tenure/kafka.hpp>)
void of_kafka() {
  made(kafka::CreateTopic{.partitions = 2}, kafka::CreateTopic{.replication_factor = 3});
  made(kafka::Options{.brokers = "b1:9092", .group = "reports"}, kafka::Options{.log = no_log});
  made(kafka::OauthToken{.value = "abc", .lasts = std::chrono::minutes(5)}, kafka::OauthToken{.principal = "me"});
}
#endif

#if __has_include(<tenure/postgres.hpp>)
void of_postgres() { made(postgres::Options{.conninfo = "host=h"}, postgres::Options{.leads = "l"}); }
#endif

#if __has_include(<tenure/redis.hpp>)
void of_redis() {
  made(redis::Address{.host = "h"}, redis::Address{.port = 1});
  made(redis::Options{.servers = {{.host = "h"}}}, redis::Options{.prefix = "p"});
}
#endif

#if __has_include(<tenure/etcd.hpp>)
void of_etcd() {
  made(etcd::Address{.host = "h"}, etcd::Address{.port = 1});
  made(etcd::Options{.servers = {{.host = "h"}}}, etcd::Options{.prefix = "p"});
}
#endif

#if __has_include(<tenure/object.hpp>)
void of_object() { made(object::Options{.service = object::Service::gcs}, object::Options{.ca_file = "c"}); }
#endif

}  // namespace tenure
