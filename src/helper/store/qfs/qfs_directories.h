// SPDX-License-Identifier: Apache-2.0
// The chunk directories of a chunkserver. Each has a thread here that does all that may wait for
// its disk, so that one that hangs or has vanished costs only itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace ecpipe {

// Thread-safe.
class QfsDirectories {
 public:
  // What is done in a directory. `directory` is open, and closed after the call; nothing outside
  // the work itself may be needed by it, for it may return after everybody has gone.
  using Work = std::function<absl::Status(int directory)>;
  // Opens a directory; tests have others.
  using Opener = std::function<UniqueFd(const std::string& path)>;

  // At most so many wait for one directory; those beyond find that it hangs.
  static constexpr size_t kMaxWaiting = 64;

  explicit QfsDirectories(std::vector<std::string> paths, Opener open = nullptr);
  // Waits for no directory that hangs.
  ~QfsDirectories();

  size_t size() const { return places_.size(); }
  const std::string& path(size_t i) const;

  // Gives each directory its work, and returns when all have done it, when `enough` says so after
  // one has, or after `patience`. `work(i)` makes that of directory i. Returns what each work
  // has returned, or why it was not done: the error of opening the directory, or UNAVAILABLE for
  // one that hangs. One that has hung for a while already is not waited for.
  std::vector<absl::Status> Each(Duration patience, const std::function<Work(size_t i)>& work,
                                 const std::function<bool()>& enough = nullptr);

 private:
  struct Place;
  std::vector<std::shared_ptr<Place>> places_;  // shared with the directory's thread
};

}  // namespace ecpipe
