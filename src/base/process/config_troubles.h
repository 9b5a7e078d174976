// SPDX-License-Identifier: Apache-2.0
// What is wrong with a configuration whose values could be read: found by whoever uses the values,
// which does not know the file.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ecpipe {

class ConfigTroubles {
 public:
  struct Trouble {
    std::string key;  // "section.name", of the value that is unacceptable
    absl::Status why;
    // The value may be right: something that it names is not there, or is wrong itself.
    bool of_what_it_names = false;
  };

  // Nothing is added if the status is OK.
  void Add(const std::string& key, const absl::Status& why) {
    if (!why.ok()) all_.push_back({key, why});
  }
  // The same for what is wrong with a file that the value names.
  void AddOfFile(const std::string& key, const absl::Status& why) {
    if (!why.ok()) all_.push_back({key, why, true});
  }
  void Add(const ConfigTroubles& more) {
    all_.insert(all_.end(), more.all_.begin(), more.all_.end());
  }

  bool ok() const { return all_.empty(); }
  // Whether all of them may go without an edit of the configuration: a disk is mounted, a file
  // comes.
  bool MayMend() const {
    return std::all_of(all_.begin(), all_.end(),
                       [](const Trouble& trouble) { return trouble.of_what_it_names; });
  }
  // OK if there is none.
  absl::Status First() const { return ok() ? absl::OkStatus() : all_.front().why; }
  const std::vector<Trouble>& all() const { return all_; }

 private:
  std::vector<Trouble> all_;
};

// How a loader of a configuration finds what is wrong beyond the file itself; null: it does not.
template <typename Values>
using ConfigCheck = std::function<ConfigTroubles(const Values& values)>;

}  // namespace ecpipe
