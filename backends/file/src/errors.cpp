// SPDX-License-Identifier: Apache-2.0
// The remedies for failed system calls.
#include "errors.hpp"

#include <cerrno>
#include <system_error>

namespace tenure::file {

Error system_error(const std::string& doing, const std::string& path, int error_number) {
  auto fault = Fault::unreachable;
  std::string remedy;
  switch (error_number) {
    case EACCES:
    case EPERM:
      fault = Fault::forbidden;
      remedy = "; a candidate needs to read and write the directory, an observer to read it";
      break;
    case EROFS:
      fault = Fault::forbidden;
      remedy = "; candidates need a directory that can be written";
      break;
    case ENOSPC:
    case EDQUOT: remedy = "; free some space: until then no new leader can be elected"; break;
    case EMFILE:
    case ENFILE: remedy = "; close some descriptors or raise the limit (ulimit -n)"; break;
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      fault = Fault::misconfigured;
      remedy = "; name a directory whose parent exists";
      break;
    default: break;
  }
  return {fault, doing + " " + path + ": " + std::generic_category().message(error_number) + remedy};
}

}  // namespace tenure::file
