// SPDX-License-Identifier: Apache-2.0
// Walks through the tree of a document, and collects all findings.
#include "document.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <tenure/kit/suggest.hpp>
#include <tenure/kit/url.hpp>

#include "parse.hpp"
#include "value.hpp"

namespace tenure {
namespace {

constexpr int max_hook_threads = 1000;

using nlohmann::json;
using Names = std::span<const std::string_view>;

/// Walks through a tree and collects all that is wrong. A value that is wrong is replaced by an empty one.
class Decoder {
 public:
  Decoder(std::string_view text, Form form) : form_(form), tree_(parse_json(text, findings_)) {}

  Document decoded() {
    if (const auto* root = object(tree_, "", form_ == Form::one ? Names(keys_of_one) : Names(keys_of_many))) {
      if (const auto* value = required(*root, "", "store")) store(*value);
      if (form_ == Form::one)
        one(*root);
      else
        many(*root);
      if (const auto* value = optional(*root, "candidate")) candidate(*value);
      if (const auto* value = optional(*root, "timing")) timing(*value);
      if (const auto* value = optional(*root, "$schema"); value && !value->is_string())
        wrong("/$schema", "must be a string, not " + kind(*value));
    }
    if (!findings_.empty()) throw InvalidDocument(std::move(findings_));
    return std::move(out_);
  }

 private:
  static constexpr std::string_view keys_of_one[] = {"store", "election", "candidate", "timing", "$schema"};
  static constexpr std::string_view keys_of_many[] = {"store",        "group",     "elections", "spread",
                                                      "hook_threads", "candidate", "timing",    "$schema"};

  void wrong(std::string pointer, std::string message) {
    findings_.push_back({std::move(pointer), std::move(message)});
  }

  static std::string kind(const json& value) {
    return value.is_null() ? "null"
                           : std::string(value.is_array() || value.is_object() ? "an " : "a ") + value.type_name();
  }

  // ---- objects ----

  const json* object(const json& value, const std::string& pointer, Names known) {
    if (!value.is_object()) {
      wrong(pointer, "must be an object, not " + kind(value));
      return nullptr;
    }
    for (const auto& [key, _] : value.items()) {
      if (contains(known, key)) continue;
      if (pointer.empty() && contains(form_ == Form::one ? Names(keys_of_many) : Names(keys_of_one), key))
        wrong(step(pointer, key), of_the_other_form());
      else
        wrong(step(pointer, key), "is not known" + did_you_mean(key, known) + "; known here: " + listed(known));
    }
    return &value;
  }

  static bool contains(Names names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  std::string of_the_other_form() const {
    return form_ == Form::one
               ? "belongs to a document of many elections, which group_from_json() reads; from_json() reads one "
                 "\"election\""
               : "belongs to a document of one election, which from_json() reads; group_from_json() reads a \"group\" "
                 "and its \"elections\"";
  }

  static const json* optional(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }

  const json* required(const json& object, const std::string& pointer, const char* key) {
    const auto* found = optional(object, key);
    if (!found) wrong(pointer, std::string("has no \"") + key + "\"");
    return found;
  }

  // ---- texts ----

  template <class T>
  T valued(Valued<T> result, const std::string& pointer) {
    if (auto* value = std::get_if<T>(&result)) return std::move(*value);
    wrong(pointer, std::move(std::get<Refusal>(result).message));
    return {};
  }

  /// Returns false if there is no text to go on with.
  bool text(const json& value, const std::string& pointer, std::string& out) {
    if (!value.is_string()) {
      wrong(pointer, "must be a string, not " + kind(value));
      return false;
    }
    const auto before = findings_.size();
    out = valued(expanded(value.get_ref<const std::string&>()), pointer);
    return findings_.size() == before;
  }

  /// Reads as text() does, and {"file": path} stands for the file's text.
  bool secret(const json& value, const std::string& pointer, std::string& out) {
    std::string found;
    if (value.is_object()) {
      static constexpr std::string_view keys[] = {"file"};
      const auto before = findings_.size();
      object(value, pointer, keys);
      if (const auto* path = required(value, pointer, "file")) {
        if (!path->is_string())
          wrong(step(pointer, "file"), "must be a string, not " + kind(*path));
        else
          found = valued(secret_at(path->get_ref<const std::string&>()), step(pointer, "file"));
      }
      if (findings_.size() != before) return false;
    } else if (!text(value, pointer, found)) {
      return false;
    }
    out_.secrets.push_back(found);
    if (found.find('\0') != found.npos) {
      wrong(pointer, "has a NUL character in it");
      return false;
    }
    out = std::move(found);
    return true;
  }

  // ---- the store ----

  void store(const json& value) {
    if (!value.is_object()) {
      if (value.is_string())
        url(value, "/store");
      else
        wrong("/store", "must be a URL or an object with a \"url\", not " + kind(value));
      return;
    }
    static constexpr std::string_view keys[] = {"url", "user", "password", "properties"};
    object(value, "/store", keys);
    if (const auto* part = required(value, "/store", "url")) url(*part, "/store/url");
    if (const auto* part = optional(value, "user")) secret(*part, "/store/user", out_.opening.user);
    if (const auto* part = optional(value, "password")) password(*part);
    if (const auto* part = optional(value, "properties")) properties(*part);
  }

  /// A file is read again at each login, for the password in it may change while we run.
  void password(const json& value) {
    if (!secret(value, "/store/password", out_.opening.password) || !value.is_object()) return;
    out_.opening.credentials = [path = value.at("file").get<std::string>()] {
      auto found = secret_at(path);
      if (const auto* refusal = std::get_if<Refusal>(&found))
        throw std::runtime_error("/store/password/file " + refusal->message);
      return Credentials{.user = {}, .password = std::get<std::string>(std::move(found))};
    };
  }

  void url(const json& value, const std::string& pointer) {
    if (!secret(value, pointer, out_.opening.url)) return;
    if (!scheme_of(out_.opening.url))
      wrong(pointer, "must be a URL, which begins with a scheme and a ':', for instance \"file:///directory\"");
  }

  void properties(const json& value) {
    if (!value.is_object()) return wrong("/store/properties", "must be an object, not " + kind(value));
    for (const auto& [name, part] : value.items()) {
      const auto pointer = step("/store/properties", name);
      if (name.empty()) wrong(pointer, "has an empty name");
      if (part.is_number() || part.is_boolean())
        wrong(pointer, "must be a string, not " + kind(part) + ": write it in quotes");
      else
        secret(part, pointer, out_.opening.properties[name]);
    }
  }

  // ---- names ----

  /// `least` to `most` bytes without NUL.
  void name(const json& value, const std::string& pointer, std::size_t least, std::size_t most, std::string& out) {
    if (!text(value, pointer, out)) return;
    if (out.size() < least || out.size() > most || out.find('\0') != out.npos)
      wrong(pointer, "has " + std::to_string(out.size()) + " bytes" +
                         (out.find('\0') == out.npos ? "" : ", and a NUL is one of them") + "; " +
                         std::to_string(least) + " to " + std::to_string(most) + " bytes without NUL are allowed");
  }

  void one(const json& root) {
    if (optional(root, "group") || optional(root, "elections")) return;  // the other form, as object() has told
    if (const auto* value = required(root, "", "election"))
      name(*value, "/election", 1, max_election_bytes, out_.opening.election);
  }

  // ---- a group ----

  void many(const json& root) {
    if (const auto* value = required(root, "", "group"))
      name(*value, "/group", 1, max_election_bytes, out_.opening.election);
    if (const auto* value = required(root, "", "elections")) elections(*value);
    if (const auto* value = optional(root, "spread")) spread(*value);
    if (const auto* value = optional(root, "hook_threads"))
      whole_number(*value, "/hook_threads", 1, max_hook_threads, out_.hook_threads);
  }

  void elections(const json& value) {
    if (!value.is_array()) return wrong("/elections", "must be an array of names, not " + kind(value));
    std::map<std::string, std::string, std::less<>> places;
    for (const auto& part : value) {
      const auto pointer = "/elections/" + std::to_string(out_.elections.size());
      auto& election = out_.elections.emplace_back();
      const auto before = findings_.size();
      name(part, pointer, 1, max_election_bytes, election);
      if (findings_.size() != before) continue;
      if (const auto [earlier, fresh] = places.emplace(election, pointer); !fresh)
        wrong(pointer, "is the same name as " + earlier->second + "; name each election once");
    }
  }

  void spread(const json& value) {
    static constexpr std::string_view keys[] = {"on", "handovers_at_once", "most", "weight"};
    if (!object(value, "/spread", keys)) return;
    auto& out = out_.spread;
    if (const auto* part = optional(value, "on")) {
      if (part->is_boolean())
        out.on = part->get<bool>();
      else
        wrong("/spread/on", "must be true or false, not " + kind(*part));
    }
    if (const auto* part = optional(value, "handovers_at_once"))
      whole_number(*part, "/spread/handovers_at_once", 0, UINT32_MAX, out.handovers_at_once);
    if (const auto* part = optional(value, "most")) whole_number(*part, "/spread/most", 0, UINT32_MAX, out.most);
    if (const auto* part = optional(value, "weight")) whole_number(*part, "/spread/weight", 1, max_weight, out.weight);
  }

  /// A number such as 4.0 is whole too, as a schema has it.
  template <class T>
  void whole_number(const json& value, const std::string& pointer, std::type_identity_t<T> least,
                    std::type_identity_t<T> most, T& out) {
    const auto given = value.is_number() ? value.get<double>() : -1.0;
    if (given >= static_cast<double>(least) && given <= static_cast<double>(most) && std::floor(given) == given)
      out = static_cast<T>(given);
    else
      wrong(pointer, "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                         (value.is_number() ? "" : ", not " + kind(value)));
  }

  void candidate(const json& value) {
    static constexpr std::string_view keys[] = {"name", "address"};
    if (!object(value, "/candidate", keys)) return;
    auto& who = out_.opening.candidate;
    if (const auto* part = optional(value, "name")) name(*part, "/candidate/name", 0, max_candidate_bytes, who.name);
    if (const auto* part = optional(value, "address"))
      name(*part, "/candidate/address", 0, max_candidate_bytes, who.address);
  }

  // ---- the timing ----

  void preset(const json& value, const std::string& pointer) {
    static constexpr std::string_view names[] = {"fast", "balanced", "steady"};
    static constexpr Timing Presets::*members[] = {&Presets::fast, &Presets::balanced, &Presets::steady};
    if (!value.is_string()) return wrong(pointer, "must be a string, not " + kind(value));
    const auto& given = value.get_ref<const std::string&>();
    const auto found = std::find(std::begin(names), std::end(names), given);
    if (found != std::end(names)) {
      out_.timing.preset = members[found - names];
      return;
    }
    wrong(pointer,
          "\"" + shown(given) + "\" is not a preset" + did_you_mean(given, names) + "; known here: " + listed(names));
  }

  void timing(const json& value) {
    if (value.is_string()) return preset(value, "/timing");
    if (!value.is_object())
      return wrong("/timing", "must be \"fast\", \"balanced\", \"steady\" or an object, not " + kind(value));
    static constexpr std::string_view keys[] = {"preset", "term", "renew", "retry",
                                                "margin", "call", "drain", "clock_rate_error_ppm"};
    object(value, "/timing", keys);
    if (const auto* part = optional(value, "preset")) preset(*part, "/timing/preset");
    for (const auto& field : duration_fields)
      if (const auto* part = optional(value, std::string(field.name).c_str())) duration(*part, std::string(field.name));
    if (const auto* part = optional(value, "clock_rate_error_ppm")) clock_rate_error(*part);
  }

  void duration(const json& value, const std::string& field) {
    const auto pointer = "/timing/" + field;
    if (value.is_number())
      return wrong(pointer, "has no unit: write " + (value.is_number_integer() && value.dump().size() < 14
                                                         ? "\"" + value.dump() + "s\" or \"" + value.dump() + "ms\""
                                                         : std::string("for instance \"8s\" or \"750ms\"")));
    if (!value.is_string()) return wrong(pointer, "must be a string such as \"8s\", not " + kind(value));
    const auto before = findings_.size();
    const auto found = valued(duration_of(value.get_ref<const std::string&>()), pointer);
    if (findings_.size() != before) return;
    if (found == Clock::Duration::zero() && field != "drain") return wrong(pointer, "must be more than zero");
    out_.timing.durations[field] = found;
  }

  void clock_rate_error(const json& value) {
    const std::string pointer = "/timing/clock_rate_error_ppm";
    if (!value.is_number()) return wrong(pointer, "must be a number of parts per million, not " + kind(value));
    const auto ppm = value.get<double>();
    if (!(ppm >= 0 && ppm < 250'000)) return wrong(pointer, "must be at least 0 and below 250000 parts per million");
    out_.timing.clock_rate_error = ppm / 1e6;
  }

  const Form form_;
  std::vector<Finding> findings_;
  const json tree_;
  Document out_;
};

}  // namespace

Timing TimingSpec::of(const Presets& presets) const {
  auto out = presets.*preset;
  for (const auto& field : duration_fields)
    if (const auto found = durations.find(field.name); found != durations.end()) out.*field.member = found->second;
  out.clock_rate_error = clock_rate_error.value_or(out.clock_rate_error);
  return out;
}

Document decode(std::string_view text, Form form) { return Decoder(text, form).decoded(); }

}  // namespace tenure
