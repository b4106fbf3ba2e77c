// SPDX-License-Identifier: Apache-2.0
// Walks through the tree of a document, and collects all findings.
#include "document.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
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
using Names = std::vector<std::string_view>;

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string kind(const json& value) {
  return value.is_null() ? "null"
                         : std::string(value.is_array() || value.is_object() ? "an " : "a ") + value.type_name();
}

/// Walks through a tree and collects all that is wrong. A value that is wrong is replaced by an empty one.
class Decoder {
 public:
  Decoder(std::string_view text, Form form) : form_(form), tree_(parse_json(text, findings_)) {}

  Document decoded() {
    object(tree_, "", keys_of(form_));
    if (!findings_.empty()) throw InvalidDocument(std::move(findings_));
    return std::move(out_);
  }

 private:
  /// `pointer`: where the value stands.
  using Read = std::function<void(const json& value, const std::string& pointer)>;
  struct Key {
    std::string_view name;
    Read read;
    bool needed{};
  };
  using Keys = std::vector<Key>;

  void wrong(std::string pointer, std::string message) {
    findings_.push_back({std::move(pointer), std::move(message)});
  }

  /// A function of ours, as a key has it.
  Read by(void (Decoder::*read)(const json&, const std::string&)) {
    return [this, read](const json& value, const std::string& pointer) { (this->*read)(value, pointer); };
  }

  // ---- objects ----

  Keys keys_of(Form form) {
    // What is of the other form, object() tells.
    const bool many_here = tree_.is_object() && (tree_.contains("group") || tree_.contains("elections"));
    Keys keys{{"store", by(&Decoder::store), true}};
    if (form == Form::one)
      keys.push_back({"election", name(out_.opening.election, 1, max_election_bytes), !many_here});
    else
      keys.insert(keys.end(), {{"group", name(out_.opening.election, 1, max_election_bytes), true},
                               {"elections", by(&Decoder::elections), true},
                               {"spread", by(&Decoder::spread)},
                               {"hook_threads", whole_number(out_.hook_threads, 1, max_hook_threads)}});
    keys.insert(
        keys.end(),
        {{"candidate", by(&Decoder::candidate)}, {"timing", by(&Decoder::timing)}, {"$schema", by(&Decoder::schema)}});
    return keys;
  }

  static Names names_of(const Keys& keys) {
    Names out;
    for (const auto& key : keys) out.push_back(key.name);
    return out;
  }

  void object(const json& value, const std::string& pointer, const Keys& keys) {
    if (!value.is_object()) return wrong(pointer, "must be an object, not " + kind(value));
    const auto known = names_of(keys);
    for (const auto& [name, _] : value.items())
      if (!contains(known, name)) wrong(step(pointer, name), unknown(name, pointer, known));
    for (const auto& [name, read, needed] : keys) {
      if (const auto found = value.find(name); found != value.end())
        read(*found, step(pointer, name));
      else if (needed)
        wrong(pointer, "has no \"" + std::string(name) + "\"");
    }
  }

  std::string unknown(std::string_view name, const std::string& pointer, const Names& known) {
    const bool one = form_ == Form::one;
    if (!pointer.empty() || !contains(names_of(keys_of(one ? Form::many : Form::one)), name))
      return "is not known" + did_you_mean(name, known) + "; known here: " + listed(known);
    return one ? "belongs to a document of many elections, which group_from_json() reads; from_json() reads one "
                 "\"election\""
               : "belongs to a document of one election, which from_json() reads; group_from_json() reads a \"group\" "
                 "and its \"elections\"";
  }

  void schema(const json& value, const std::string& pointer) {
    if (!value.is_string()) wrong(pointer, "must be a string, not " + kind(value));
  }

  // ---- texts ----

  template <class T>
  T valued(Result<T> result, const std::string& pointer) {
    if (result) return *std::move(result);
    wrong(pointer, result.error().message);
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
    const auto before = findings_.size();
    if (value.is_object())
      object(value, pointer,
             {{"file",
               [&](const json& path, const std::string& at) {
                 if (!path.is_string()) return wrong(at, "must be a string, not " + kind(path));
                 found = valued(secret_at(path.get_ref<const std::string&>()), at);
               },
               true}});
    else
      text(value, pointer, found);
    if (findings_.size() != before) return false;
    out_.secrets.push_back(found);
    if (found.find('\0') != found.npos) {
      wrong(pointer, "has a NUL character in it");
      return false;
    }
    out = std::move(found);
    return true;
  }

  // ---- the store ----

  void store(const json& value, const std::string& pointer) {
    if (value.is_string()) return url(value, pointer);
    if (!value.is_object()) return wrong(pointer, "must be a URL or an object with a \"url\", not " + kind(value));
    const auto user = [this](const json& name, const std::string& at) { secret(name, at, out_.opening.user); };
    object(value, pointer,
           {{"url", by(&Decoder::url), true},
            {"user", user},
            {"password", by(&Decoder::password)},
            {"properties", by(&Decoder::properties)}});
  }

  /// A file is read again at each login, for the password in it may change while we run.
  void password(const json& value, const std::string& pointer) {
    if (!secret(value, pointer, out_.opening.password) || !value.is_object()) return;
    out_.opening.credentials = [path = value.at("file").get<std::string>()] {
      auto found = secret_at(path);
      if (!found) throw std::runtime_error("/store/password/file " + found.error().message);
      return Credentials{.user = {}, .password = *std::move(found)};
    };
  }

  void url(const json& value, const std::string& pointer) {
    if (!secret(value, pointer, out_.opening.url)) return;
    if (!scheme_of(out_.opening.url))
      wrong(pointer, "must be a URL, which begins with a scheme and a ':', for instance \"file:///directory\"");
  }

  void properties(const json& value, const std::string& pointer) {
    if (!value.is_object()) return wrong(pointer, "must be an object, not " + kind(value));
    for (const auto& [name, part] : value.items()) {
      const auto at = step(pointer, name);
      if (name.empty()) wrong(at, "has an empty name");
      if (part.is_number() || part.is_boolean())
        wrong(at, "must be a string, not " + kind(part) + ": write it in quotes");
      else
        secret(part, at, out_.opening.properties[name]);
    }
  }

  // ---- names and numbers ----

  /// `least` to `most` bytes without NUL.
  Read name(std::string& out, std::size_t least, std::size_t most) {
    return [=, this, &out](const json& value, const std::string& pointer) {
      if (!text(value, pointer, out)) return;
      const bool nul = out.find('\0') != out.npos;
      if (out.size() < least || out.size() > most || nul)
        wrong(pointer, "has " + std::to_string(out.size()) + " bytes" + (nul ? ", and a NUL is one of them" : "") +
                           "; " + std::to_string(least) + " to " + std::to_string(most) +
                           " bytes without NUL are allowed");
    };
  }

  /// A number such as 4.0 is whole too, as a schema has it.
  template <class T>
  Read whole_number(T& out, std::type_identity_t<T> least, std::type_identity_t<T> most) {
    return [=, this, &out](const json& value, const std::string& pointer) {
      const auto given = value.is_number() ? value.get<double>() : -1.0;
      if (given >= static_cast<double>(least) && given <= static_cast<double>(most) && std::floor(given) == given)
        out = static_cast<T>(given);
      else
        wrong(pointer, "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                           (value.is_number() ? "" : ", not " + kind(value)));
    };
  }

  void candidate(const json& value, const std::string& pointer) {
    auto& who = out_.opening.candidate;
    object(value, pointer,
           {{"name", name(who.name, 0, max_candidate_bytes)}, {"address", name(who.address, 0, max_candidate_bytes)}});
  }

  // ---- a group ----

  void elections(const json& value, const std::string& pointer) {
    if (!value.is_array()) return wrong(pointer, "must be an array of names, not " + kind(value));
    std::map<std::string, std::string, std::less<>> places;
    for (const auto& part : value) {
      const auto at = pointer + "/" + std::to_string(out_.elections.size());
      auto& election = out_.elections.emplace_back();
      const auto before = findings_.size();
      name(election, 1, max_election_bytes)(part, at);
      if (findings_.size() != before) continue;
      if (const auto [earlier, fresh] = places.emplace(election, at); !fresh)
        wrong(at, "is the same name as " + earlier->second + "; name each election once");
    }
  }

  void spread(const json& value, const std::string& pointer) {
    auto& out = out_.spread;
    const auto on = [&](const json& given, const std::string& at) {
      if (given.is_boolean())
        out.on = given.get<bool>();
      else
        wrong(at, "must be true or false, not " + kind(given));
    };
    object(value, pointer,
           {{"on", on},
            {"handovers_at_once", whole_number(out.handovers_at_once, 0, UINT32_MAX)},
            {"most", whole_number(out.most, 0, UINT32_MAX)},
            {"weight", whole_number(out.weight, 1, max_weight)}});
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

  void timing(const json& value, const std::string& pointer) {
    if (value.is_string()) return preset(value, pointer);
    if (!value.is_object())
      return wrong(pointer, "must be \"fast\", \"balanced\", \"steady\" or an object, not " + kind(value));
    Keys keys{{"preset", by(&Decoder::preset)}};
    for (const auto& field : duration_fields)
      keys.push_back({field.name, [this, name = field.name](const json& given, const std::string& at) {
                        duration(given, at, name);
                      }});
    keys.push_back({"clock_rate_error_ppm", by(&Decoder::clock_rate_error)});
    object(value, pointer, keys);
  }

  void duration(const json& value, const std::string& pointer, std::string_view field) {
    if (value.is_number())
      return wrong(pointer, "has no unit: write " + (value.is_number_integer() && value.dump().size() < 14
                                                         ? "\"" + value.dump() + "s\" or \"" + value.dump() + "ms\""
                                                         : std::string("for instance \"8s\" or \"750ms\"")));
    if (!value.is_string()) return wrong(pointer, "must be a string such as \"8s\", not " + kind(value));
    const auto before = findings_.size();
    const auto found = valued(duration_of(value.get_ref<const std::string&>()), pointer);
    if (findings_.size() != before) return;
    if (found == Clock::Duration::zero() && field != "drain") return wrong(pointer, "must be more than zero");
    out_.timing.durations[std::string(field)] = found;
  }

  void clock_rate_error(const json& value, const std::string& pointer) {
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
