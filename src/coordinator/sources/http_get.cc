// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/http_get.h"

#include <curl/curl.h>

#include <memory>
#include <new>

#include "base/status.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

struct FreeCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

struct Transfer {
  const HttpGetOptions* options;
  const std::function<absl::Status(std::string_view)>* take;
  absl::Status taken;  // what `take` ended the call with
};

size_t OnBytes(char* bytes, size_t size, size_t count, void* user) {
  auto* const transfer = static_cast<Transfer*>(user);
  transfer->taken = (*transfer->take)(std::string_view(bytes, size * count));
  return transfer->taken.ok() ? size * count : 0;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->options->stop() ? 1 : 0;
}

absl::Status StatusOf(CURLcode code, CURL* curl, const char* detail, const std::string& where) {
  long answer = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer);
  const std::string why = detail[0] != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_OK:
      if (answer == 200) return absl::OkStatus();
      return absl::UnavailableError(where + " answered with HTTP status " + std::to_string(answer));
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(where + ": " + why);
    case CURLE_ABORTED_BY_CALLBACK:
      return absl::CancelledError(where + ": the request was cancelled");
    default:
      return absl::UnavailableError(where + ": " + why);
  }
}

void SetOptions(CURL* curl, const std::string& url, Transfer* transfer, char* detail) {
  const HttpGetOptions& options = *transfer->options;
  const auto millis = [](Duration duration) {
    return static_cast<long>(
        std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  };
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, millis(options.connect_timeout));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, millis(options.timeout));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, millis(options.silence_timeout) / 1000);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnBytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
}

}  // namespace

absl::Status HttpGet(const std::string& url, const HttpGetOptions& options,
                     const std::function<absl::Status(std::string_view)>& take) {
  static const CURLcode prepared = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, FreeCurl> curl(prepared == CURLE_OK ? curl_easy_init() : nullptr);
  if (curl == nullptr) return absl::InternalError("libcurl could not be initialised");
  Transfer transfer{&options, &take, absl::OkStatus()};
  char detail[CURL_ERROR_SIZE] = "";
  SetOptions(curl.get(), url, &transfer, detail);
  const CURLcode code = curl_easy_perform(curl.get());
  ECPIPE_RETURN_IF_ERROR(transfer.taken);
  return StatusOf(code, curl.get(), detail, url.substr(0, url.find('?')));
}

std::string EscapedForUrl(const std::string& text) {
  const std::unique_ptr<char, decltype(&curl_free)> escaped(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), &curl_free);
  if (escaped == nullptr) throw std::bad_alloc();
  return escaped.get();
}

absl::Status ValidateHttpServer(const std::string& url) {
  for (const std::string scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    const std::string rest = url.substr(scheme.size());
    if (rest.find_first_of("/?#@\\%") != std::string::npos) break;
    const bool has_port = ParseHostPort(rest).ok();
    if (has_port || ParseHostPort(rest + ":80").ok()) return absl::OkStatus();
  }
  return absl::InvalidArgumentError("'" + url +
                                    "' is not of the form http://HOST:PORT or https://HOST:PORT");
}

}  // namespace ecpipe
