// SPDX-License-Identifier: Apache-2.0
#include "coordinator/namenode_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status.h"
#include "common/utf8_text.h"
#include "coordinator/fsck_parser.h"
#include "coordinator/http_get.h"

namespace ecpipe {

namespace {

absl::StatusOr<GroupTable> FetchFrom(const std::string& server, const NameNodeOptions& options,
                                     const std::function<bool()>& stop) {
  // fsck looks whether a key is there and not at its value: "locations=0" would ask for locations.
  const std::string url = server + "/fsck?ugi=" + EscapedForUrl(options.user) +
                          "&files=1&blocks=1&openforwrite=1&path=" + EscapedForUrl(options.path);
  FsckParser parser;
  HttpGetOptions http;
  http.stop = stop;
  ECPIPE_RETURN_IF_ERROR(
      HttpGet(url, http, [&](std::string_view text) { return parser.Add(text); }));
  absl::StatusOr<GroupTable> groups = parser.Finish();
  if (!groups.ok()) return Annotate(groups.status(), server);
  return groups;
}

}  // namespace

absl::StatusOr<GroupTable> FetchGroups(const NameNodeOptions& options,
                                       const std::function<bool()>& stop) {
  absl::Status failed;
  for (const std::string& url : options.urls) {
    absl::StatusOr<GroupTable> groups = FetchFrom(url, options, stop);
    if (groups.ok() || absl::IsCancelled(groups.status())) return groups;
    failed = failed.ok() ? groups.status()
                         : absl::Status(failed.code(), absl::StrCat(failed.message(), "; ",
                                                                    groups.status().message()));
  }
  return failed;
}

NameNodeGroups::NameNodeGroups(Fetch fetch, Duration refresh)
    : fetch_(std::move(fetch)), refresh_(refresh), thread_([this] { Run(); }) {}

NameNodeGroups::~NameNodeGroups() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void NameNodeGroups::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!stopping_) {
        const bool wanted =
            wanted_since_ && (known_.table == nullptr || known_.as_of < *wanted_since_);
        const TimePoint next = wanted ? not_before_ : std::max(due_, not_before_);
        if (Clock::System().Now() >= next) break;
        changed_.WaitUntil(lock, next);
      }
      if (stopping_) return;
    }
    FetchOnce();
  }
}

void NameNodeGroups::FetchOnce() {
  const TimePoint began = Clock::System().Now();
  absl::StatusOr<GroupTable> table = fetch_([this] {
    MutexLock lock(&mutex_);
    return stopping_;
  });
  const TimePoint ended = Clock::System().Now();
  std::shared_ptr<const GroupTable> made;
  if (table.ok()) made = std::make_shared<const GroupTable>(*std::move(table));
  bool told = false;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    const std::string error = table.ok() ? "" : CleanText(StatusText(table.status()));
    // Successes are told of when they are news.
    told = error == known_.last_error && (made == nullptr || known_.table != nullptr);
    known_.last_error = error;
    if (made != nullptr) {
      known_.table = made;
      known_.as_of = began;
    }
    ++attempts_;
    wanted_since_.reset();
    not_before_ = ended + std::max<Duration>(kShortestPause, kPauseOfFetch * (ended - began));
    // After a failure soon again: the answer is as old as it was.
    due_ = ended + (made != nullptr ? refresh_ : std::min<Duration>(refresh_, 10 * kShortestPause));
  }
  changed_.NotifyAll();
  if (made == nullptr && !told) {
    Log(LogLevel::kWarning, "namenode.fetch_failed",
        {{"status", CleanText(StatusText(table.status()))},
         {"hint", "the coordinator keeps using the last answer of the NameNode"}});
  } else if (made != nullptr && !told) {
    Log(LogLevel::kInfo, "namenode.fetched", {{"groups", std::to_string(made->size())}});
  }
}

KnownGroups NameNodeGroups::View() {
  KnownGroups view = known_;
  if (view.table != nullptr) view.age_seconds = Seconds(Clock::System().Now() - view.as_of);
  return view;
}

KnownGroups NameNodeGroups::Get() {
  MutexLock lock(&mutex_);
  return View();
}

KnownGroups NameNodeGroups::GetSince(TimePoint as_of, Duration patience) {
  const TimePoint give_up = Clock::System().Now() + patience;
  MutexLock lock(&mutex_);
  const uint64_t before = attempts_;
  while (!stopping_ && (known_.table == nullptr || known_.as_of < as_of)) {
    wanted_since_ = std::max(wanted_since_.value_or(as_of), as_of);
    changed_.NotifyAll();
    // One attempt that has failed, and one that was under way at first, are enough to know.
    if (attempts_ >= before + 2 || !changed_.WaitUntil(lock, give_up)) break;
  }
  return View();
}

}  // namespace ecpipe
