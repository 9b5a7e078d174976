// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/bytes/utf8_text.h"
#include "requestor/doctor/findings.h"

namespace ecpipe {

// As findings call the command that asks.
inline constexpr const char* kThisCommand = "this command";

// One check: adds what is wrong, or that all is well. `findings` outlives it.
class CheckReport {
 public:
  CheckReport(std::string check, std::vector<Finding>* findings)
      : check_(std::move(check)), findings_(findings) {}

  // Whatever daemons say, and certificates that strangers made, may be part of these texts.
  void Add(Severity severity, const std::string& where, const std::string& what,
           const std::string& advice) {
    findings_->push_back({severity, check_, CleanText(where), CleanText(what), CleanText(advice)});
    ++added_;
  }
  // If nothing was added.
  void End(const std::string& all_is_well) {
    if (added_ == 0) Add(Severity::kOk, "", all_is_well, "");
  }
  void EndUnchecked(const std::string& why) {
    if (added_ == 0) Add(Severity::kNotChecked, "", why, "");
  }

 private:
  const std::string check_;
  std::vector<Finding>* const findings_;
  size_t added_ = 0;
};

}  // namespace ecpipe
