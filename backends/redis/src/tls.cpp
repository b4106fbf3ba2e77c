// SPDX-License-Identifier: Apache-2.0
// The TLS handshake by OpenSSL, or the refusal where hiredis has none.
#include "tls.hpp"

#ifdef TENURE_REDIS_TLS
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <tenure/kit/c_handle.hpp>
#endif

namespace tenure::redis {

#ifndef TENURE_REDIS_TLS

std::optional<std::string> secure(redisContext&, const Options& options, const std::string&) {
  if (options.tls) return "this build has no TLS";
  return std::nullopt;
}

#else

namespace {

std::string reason() {
  const auto code = ERR_get_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text ? text : "no reason given";
}

/// Trusts ca_file, or the system's authorities.
bool trust(SSL_CTX* settings, const std::string& ca_file) {
  return (ca_file.empty() ? SSL_CTX_set_default_verify_paths(settings)
                          : SSL_CTX_load_verify_locations(settings, ca_file.c_str(), nullptr)) == 1;
}

/// Expects an address if `host` is one, else a name: certificates tell the two apart.
bool expect(SSL* ssl, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1) return true;
  return SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

}  // namespace

std::optional<std::string> secure(redisContext& context, const Options& options, const std::string& host) {
  if (!options.tls || context.privctx != nullptr) return std::nullopt;
  ERR_clear_error();
  const auto settings = owned<SSL_CTX_free>(SSL_CTX_new(TLS_client_method()));
  if (!settings || SSL_CTX_set_min_proto_version(settings.get(), TLS1_2_VERSION) != 1)
    return "TLS cannot be set up: " + reason();
  if (!trust(settings.get(), options.ca_file)) return "the authorities in ca_file cannot be read: " + reason();
  SSL_CTX_set_verify(settings.get(), SSL_VERIFY_PEER, nullptr);
  SSL* const ssl = SSL_new(settings.get());
  if (ssl == nullptr || !expect(ssl, host)) {
    SSL_free(ssl);
    return "TLS cannot be set up: " + reason();
  }
  if (redisInitiateSSL(&context, ssl) == REDIS_OK) return std::nullopt;  // owns ssl from here on, also if it failed
  return "TLS was refused: " + std::string(context.errstr);
}

#endif

}  // namespace tenure::redis
