// SPDX-License-Identifier: Apache-2.0
// The providers' variables as a test sets them, and no others.
#pragma once
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace tenure::object::test {

/// While it lives, the environment has these variables of the providers and no others, and nobody asks an
/// instance's real metadata. REQUIRES: no other thread reads the environment when it begins or ends.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables = {}) {
    for (const auto* name : {"AWS_ACCESS_KEY_ID",
                             "AWS_SECRET_ACCESS_KEY",
                             "AWS_SESSION_TOKEN",
                             "AWS_REGION",
                             "AWS_DEFAULT_REGION",
                             "AWS_PROFILE",
                             "AWS_SHARED_CREDENTIALS_FILE",
                             "AWS_WEB_IDENTITY_TOKEN_FILE",
                             "AWS_ROLE_ARN",
                             "AWS_ROLE_SESSION_NAME",
                             "AWS_ENDPOINT_URL_STS",
                             "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                             "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                             "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                             "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                             "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                             "GOOGLE_APPLICATION_CREDENTIALS",
                             "AZURE_STORAGE_KEY",
                             "AZURE_STORAGE_SAS_TOKEN",
                             "AZURE_TENANT_ID",
                             "AZURE_CLIENT_ID",
                             "AZURE_CLIENT_SECRET",
                             "AZURE_FEDERATED_TOKEN_FILE",
                             "AZURE_AUTHORITY_HOST",
                             "IDENTITY_ENDPOINT",
                             "IDENTITY_HEADER"})
      set(name, variables);
    set("HOME", {{"HOME", "/nowhere"}});
    for (const auto& [name, nobody] : {std::pair("GCE_METADATA_HOST", "127.0.0.1:1"),
                                       std::pair("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:1")}) {
      const auto given = variables.find(name);
      set(name, {{name, given == variables.end() ? nobody : given->second}});
    }
    set("AWS_EC2_METADATA_DISABLED", variables.contains("AWS_EC2_METADATA_SERVICE_ENDPOINT")
                                         ? std::map<std::string, std::string>{}
                                         : std::map<std::string, std::string>{{"AWS_EC2_METADATA_DISABLED", "true"}});
  }
  ~Environment() {
    for (const auto& [name, value] : before_)
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const std::string& name, const std::map<std::string, std::string>& variables) {
    const char* const was = std::getenv(name.c_str());
    before_[name] = was == nullptr ? std::nullopt : std::optional<std::string>(was);
    const auto found = variables.find(name);
    if (found != variables.end())
      ::setenv(name.c_str(), found->second.c_str(), 1);
    else
      ::unsetenv(name.c_str());
  }

  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace tenure::object::test
