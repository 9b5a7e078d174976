// SPDX-License-Identifier: Apache-2.0
// Lists directories.
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <memory>

#include "base/unique_fd.h"

namespace ecpipe {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// A directory below an open one, with a position of its own. Links are not followed. Null with
// errno if there is none.
inline Directory OpenDirectory(int parent, const char* name) {
  UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return nullptr;
  Directory directory(::fdopendir(fd.get()));
  if (directory != nullptr) fd.release();  // the DIR owns it now
  return directory;
}

}  // namespace ecpipe
