// SPDX-License-Identifier: Apache-2.0
// A store of your own in 80 lines: elections in objects that have ETags and whose PUT takes If-Match. Here a directory
// stands in for the bucket: version n of the object is the file "n", and n is its ETag (0: there is no object).
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <tenure/conditional_store.hpp>

/// Hand it to tenure::lock_table(), which makes a Backend of it.
class ObjectStore final : public tenure::ConditionalStore {
 public:
  explicit ObjectStore(std::filesystem::path directory) : directory_(std::move(directory)) {
    create_directories(directory_);
  }

  tenure::Result<tenure::Read> read(const tenure::Limit& limit) override {
    if (limit.passed()) return late();
    return decoded(get().second, limit);
  }

  tenure::Result<tenure::Swap> compare_and_set(const std::optional<tenure::Expected>& expected,
                                               const tenure::Record& next, const tenure::Limit& limit) override {
    if (limit.passed()) return late();
    const auto [etag, body] = get();
    const auto stands = decoded(body, limit);
    const bool applied = matches(expected, stands.record) && put(etag, encoded(next, stands.now_ms), next.beat);
    return tenure::Swap{applied, decoded(get().second, limit)};
  }

 private:
  using milliseconds = std::chrono::milliseconds;
  static tenure::Error late() { return {tenure::Fault::timed_out, "the limit had passed before the call"}; }
  static std::string encoded(const tenure::Record& r, std::int64_t now_ms) {
    std::ostringstream out;
    out << r.token.value << ' ' << r.beat << ' ' << r.released << ' ' << ceil<milliseconds>(r.term).count() << ' '
        << r.asked.count() << ' ' << now_ms << ' ' << r.who;
    return out.str();
  }

  static tenure::Read decoded(const std::string& body, const tenure::Limit& limit) {
    tenure::Read out{.now_ms = limit.clock.unix_ms(), .absence_certain = true};
    if (body.empty()) return out;
    auto& r = out.record.emplace();
    tenure::Clock::rep term_ms = 0, asked = 0;
    std::istringstream in(body);
    in >> r.token.value >> r.beat >> r.released >> term_ms >> asked >> r.written_ms >> r.who;
    out.unreadable = !in;
    r.term = milliseconds(term_ms);
    r.asked = tenure::Clock::Duration(asked);
    return out;
  }

  std::pair<std::uint64_t, std::string> get() const {
    for (;;) {  // again if it was replaced between the listing and the reading
      const auto etag = newest();
      if (std::ifstream in(file(etag)); in || etag == 0) return {etag, {std::istreambuf_iterator<char>(in), {}}};
    }
  }

  bool put(std::uint64_t if_match, const std::string& body, std::uint64_t unique) const {
    const auto upload = file(unique) += ".upload";
    std::ofstream(upload) << body << std::flush;
    std::error_code exists;
    create_hard_link(upload, file(if_match + 1), exists);
    remove(upload);
    const bool applied = !exists && newest() == if_match + 1;  // A late writer may fill a gap that was cleared.
    if (!exists) remove(file(applied ? if_match : if_match + 1));
    return applied;
  }

  std::filesystem::path file(std::uint64_t etag) const { return directory_ / std::to_string(etag); }
  std::uint64_t newest() const {
    std::uint64_t out = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      if (!entry.path().has_extension()) out = std::max<std::uint64_t>(out, std::stoull(entry.path().filename()));
    return out;
  }

  const std::filesystem::path directory_;
};
