// SPDX-License-Identifier: Apache-2.0
// A transaction of etcd that does nothing once a later leader has claimed. It is written for `etcdctl txn`; whatever
// client you use, it takes the same key and texts.
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>

#include <tenure/fence/etcd.hpp>
#include <tenure/leadership.hpp>

using namespace std::chrono_literals;

std::optional<std::string> put_total(const tenure::Leadership& leadership, int total);

std::optional<std::string> put_total(const tenure::Leadership& leadership, int total) {
  //! [etcd]
  const auto token = leadership.guard(100ms);
  if (!token) return std::nullopt;
  const auto leads = tenure::fence::etcd_leads("jobs", *token);
  std::ostringstream txn;
  txn << "value(" << std::quoted(leads.key) << ") > " << std::quoted(leads.above) << "\n"
      << "value(" << std::quoted(leads.key) << ") < " << std::quoted(leads.below) << "\n\n"
      << "put total " << total << "\n\n\n";
  return txn.str();
  //! [etcd]
}
