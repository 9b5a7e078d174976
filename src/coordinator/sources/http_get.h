// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"

namespace ecpipe {

struct HttpGetOptions {
  Duration connect_timeout = std::chrono::seconds(5);
  Duration silence_timeout = std::chrono::seconds(60);  // without a byte
  Duration timeout = std::chrono::minutes(30);          // for the whole call
  // Called from time to time; true ends the call.
  std::function<bool()> stop = [] { return false; };
};

// Fetches a URL and passes the bytes to `take` as they come. It supports only http and https,
// without redirects, proxies and passwords. `take` runs on the caller's thread; an error that it
// returns ends the call. UNAVAILABLE: no answer, a status other than 200, or an answer that was cut
// off. DEADLINE_EXCEEDED: a timeout. CANCELLED: `stop` said so. Messages name the URL up to its
// question mark.
absl::Status HttpGet(const std::string& url, const HttpGetOptions& options,
                     const std::function<absl::Status(std::string_view)>& take);

// Escapes a text for the query of a URL.
std::string EscapedForUrl(const std::string& text);

// INVALID_ARGUMENT unless the text is "http://HOST[:PORT]" or "https://HOST[:PORT]" with nothing
// after it.
absl::Status ValidateHttpServer(const std::string& url);

}  // namespace ecpipe
