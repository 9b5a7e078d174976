// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock.h"

namespace ecpipe {

struct HttpGetOptions {
  Duration connect_timeout = std::chrono::seconds(5);
  Duration silence_timeout = std::chrono::seconds(60);  // nothing comes
  Duration timeout = std::chrono::minutes(30);          // of it all
  // Asked now and then; true ends the call.
  std::function<bool()> stop = [] { return false; };
};

// Hands over what a URL gives as it comes; nothing is kept. Only http and https, no redirects, no
// proxies, no passwords. `take` runs on the caller's thread, and what it returns ends the call
// unless it is OK. UNAVAILABLE: no answer, a status other than 200, or an answer that was cut off;
// DEADLINE_EXCEEDED, CANCELLED. Messages name the URL up to its question mark.
absl::Status HttpGet(const std::string& url, const HttpGetOptions& options,
                     const std::function<absl::Status(std::string_view)>& take);

// A text as a part of a URL's query.
std::string EscapedForUrl(const std::string& text);

// INVALID_ARGUMENT unless it is "http://HOST[:PORT]", or https, without anything behind it.
absl::Status ValidateHttpServer(const std::string& url);

}  // namespace ecpipe
