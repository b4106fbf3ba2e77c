// SPDX-License-Identifier: Apache-2.0
// A service account with a key of the test's own.
#pragma once
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <tenure/kit/c_handle.hpp>

namespace tenure::object::test {

inline EVP_PKEY* test_key() {
  static const CHandle<EVP_PKEY, EVP_PKEY_free> key(EVP_RSA_gen(2048));
  return key.get();
}

/// Its file, as Google gives it out.
inline std::string account_json(const std::string& token_uri) {
  const auto memory = owned<BIO_free>(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(memory.get(), test_key(), nullptr, nullptr, 0, nullptr, nullptr);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &text);
  return nlohmann::json{{"type", "service_account"},
                        {"client_email", "tenure@project.invalid"},
                        {"private_key", std::string(text, static_cast<std::size_t>(size))},
                        {"token_uri", token_uri}}
      .dump();
}

inline std::string from_base64url(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  const auto padding = (4 - text.size() % 4) % 4;
  text.append(padding, '=');
  std::vector<unsigned char> out(text.size());
  const auto size =
      EVP_DecodeBlock(out.data(), reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  return {out.begin(), out.begin() + std::max<int>(size - static_cast<int>(padding), 0)};
}

/// Whether it is a JSON Web Token by RS256 that this key has signed.
inline bool signed_by_test_key(const std::string& token) {
  const auto dot = token.rfind('.');
  const auto said = token.substr(0, dot), signature = from_base64url(token.substr(dot + 1));
  const auto context = owned<EVP_MD_CTX_free>(EVP_MD_CTX_new());
  const auto bytes = [](const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); };
  return EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, test_key()) == 1 &&
         EVP_DigestVerify(context.get(), bytes(signature), signature.size(), bytes(said), said.size()) == 1 &&
         from_base64url(said.substr(0, said.find('.'))) == R"({"alg":"RS256","typ":"JWT"})";
}

}  // namespace tenure::object::test
