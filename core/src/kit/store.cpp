// SPDX-License-Identifier: Apache-2.0
// The errors that stores have in common, and what becomes of a record that is spoilt.
#include <tenure/kit/store.hpp>

#include <string>

#include <tenure/kit/logging.hpp>

#include "kit/thrown.hpp"

namespace tenure {

Error forked_child(std::string_view opened) {
  return {Fault::misconfigured, "this process was forked from the one that opened " + std::string(opened) +
                                    ", so it has no part in that one's elections; open it again after the fork"};
}

Error no_connection_left(const std::exception& why) {
  return {Fault::unreachable, std::string("no further connection can be made: ") + why.what() +
                                  "; raise the limits of descriptors and threads (ulimit -n, -u)"};
}

Error no_record(std::string_view where) {
  return {Fault::corrupt, std::string(where) +
                              " is not a record: it has no token or no beat. Stop all candidates, then "
                              "delete it"};
}

Error other_format(std::string_view where, std::string_view found, int known) {
  return {Fault::corrupt, std::string(where) + " has format " + printable(found, 20) +
                              ", and this release knows format " + std::to_string(known) +
                              " only; use the release that wrote it"};
}

Read unreadable(Read read) {
  Record bare;
  bare.token = read.record->token;
  bare.beat = read.record->beat;
  read.record = std::move(bare);
  read.unreadable = true;
  return read;
}

Credentials credentials_by(const AskCredentials& ask, const Redactor& redacted) {
  try {
    return ask();
  } catch (...) {
    throw NoCredentials("nobody is logged in, because credentials threw: " +
                        printable(redacted(what_was_thrown()), 300));
  }
}

}  // namespace tenure
