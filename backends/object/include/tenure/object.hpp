// SPDX-License-Identifier: Apache-2.0
// Elections through a bucket of an object store: Amazon S3, or a server that speaks its protocol and honours
// conditional writes; Google Cloud Storage; or Azure Blob Storage.
#pragma once
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/check.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/credentials.hpp>
#include <tenure/log.hpp>
#include <tenure/object_export.hpp>
#include <tenure/open.hpp>

namespace tenure::object {

enum class Service { s3, gcs, azure };

/// Where the bucket is and how to talk to it. REQUIRES: every candidate of an election names the same bucket and
/// prefix.
struct Options {
  Service service{};
  std::string account{};           ///< Azure's alone.
  std::string bucket{};            ///< Azure calls it a container.
  std::string prefix{"tenure"};    ///< The record of an election is the object PREFIX/ELECTION. It may have '/' within.
  std::string region{};            ///< If empty, it is AWS_REGION or AWS_DEFAULT_REGION; with an endpoint, us-east-1.
  std::string endpoint{};          ///< "https://host:port" of another server than the provider's own.
  std::string user{}, password{};  ///< A key's name and secret. If empty, they are found as open() says.
  AskCredentials credentials{};    ///< It replaces these two, and is called again when the server refuses them.
  std::string profile{};           ///< In the shared credentials file. If empty, it is AWS_PROFILE or "default".
  std::string ca_file{};           ///< The authorities to trust, in PEM. If empty, they are the system's.
};

/// Reads Options from a URL:
///   s3://[access key id:secret@]bucket[/prefix]   gs://bucket[/prefix]
///   az://[account:key@]account/container[/prefix]
/// A query may follow: ?region=r&endpoint=e&profile=p&ca_file=f. Each name means the field of Options; region and
/// profile are S3's alone. %XX may stand anywhere. Throws std::invalid_argument, which says what is wrong and what
/// would be right. No secret is in it.
TENURE_OBJECT_EXPORT Options from_url(const std::string& url);

/// Returns a backend of the election of that name, for one LeaderManager or one Observer.
///
/// The record is an object of some 400 bytes of JSON, which is never deleted. A PUT with If-Match replaces it if it has
/// the ETag that was read; one with If-None-Match makes it. The beat is in the body, so that no ETag of an earlier
/// lease comes again. The service's clock decides nothing.
///
/// Nothing is pushed. A follower looks once per Timing::renew, so a hand-over takes up to that. A request to step down
/// is written into the record, and comes back with the next renewal.
///
/// Credentials: those of Options; or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; or a web identity
/// (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN); or the profile in ~/.aws/credentials; or those of the container
/// (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, _FULL_URI); or those of the EC2 instance (IMDSv2). They are found again
/// five minutes before they expire, and when the server refuses them. Rights:
///   s3:GetObject and s3:PutObject on BUCKET/PREFIX/*, s3:ListBucket on BUCKET
/// Without the last one S3 answers that a missing object is forbidden, so that nobody can be elected first. An observer
/// needs no s3:PutObject.
///
/// Google Cloud Storage: The version is the object's generation. A token is the `password` that `credentials` returns;
/// or that of a service account, whose file GOOGLE_APPLICATION_CREDENTIALS names; or that of the machine's metadata.
/// Rights: storage.objects.get, .list, .create and .delete, as in the role Storage Object User. One object may be
/// written once a second, so keep Timing::renew above that.
///
/// Azure Blob Storage: The version is the blob's ETag. Keys and tokens, in this order: those of Options, where `user`
/// is the account and `password` its key, or `user` is empty and `password` is a token; AZURE_STORAGE_KEY;
/// AZURE_STORAGE_SAS_TOKEN; an application's (AZURE_TENANT_ID, AZURE_CLIENT_ID, and AZURE_CLIENT_SECRET or
/// AZURE_FEDERATED_TOKEN_FILE); the app's identity (IDENTITY_ENDPOINT); the machine's. Rights: to read and write blobs,
/// as in the role Storage Blob Data Contributor.
///
/// Lost data: within a region none loses an acknowledged write, so the first leader of an election begins at once. A
/// lifecycle rule or a person that deletes the object does lose it: a candidate that did not see it may then lead at
/// once, beside the old leader, until that one's next renewal.
///
/// What it costs: one PUT for a renewal, and for a follower one GET per Timing::renew. See README.md beside
/// this.
///
/// A server that ignores If-Match would let everybody lead. check_url() finds it by trying.
///
/// Throws std::invalid_argument for what can never work. The verbs return as an Error what is wrong at the server.
TENURE_OBJECT_EXPORT std::shared_ptr<Backend> open(const Options& options, const std::string& election,
                                                   Candidate candidate = {}, Log log = {});

/// Returns the store on which such a backend is built, for backends of your own. Throws as open() does.
TENURE_OBJECT_EXPORT std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election);

/// Opens a backend by URL; `properties` are its query's names. Throws as from_url() and open().
TENURE_OBJECT_EXPORT Opened open_url(const Opening& opening);
/// For check_up(). It writes the object PREFIX/.doctor, which it leaves, to see whether conditions are honoured.
TENURE_OBJECT_EXPORT Result<Checks> check_url(const Opening& opening, const Limit& limit);

/// The terms are 15, 30 and 60 s, and a call may take 2 s: a PUT takes 20 to 100 ms, and now and then a second.
TENURE_OBJECT_EXPORT Presets presets();

}  // namespace tenure::object
