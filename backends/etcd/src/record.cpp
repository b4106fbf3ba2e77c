// SPDX-License-Identifier: Apache-2.0
// Puts records and requests into etcd's keys.
#include "record.hpp"

#include <tenure/kit/logging.hpp>

#include "web/record.hpp"

namespace tenure::etcd {

std::string text_of(const Record& record) { return web::json_of(record).dump(); }
std::string text_of(const StepDown& request) { return web::json_of(request).dump(); }

Result<Read> read_of(const std::optional<std::string>& record, const std::optional<std::string>& step_down,
                     const std::string& key) {
  auto out = record ? web::read_of(web::parsed(*record), "the value of etcd's key " + printable(key))
                    : Result<Read>(Read{.absence_certain = true});
  if (out && step_down) out->step_down = web::step_down_of(web::parsed(*step_down));
  return out;
}

}  // namespace tenure::etcd
