// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/progress_fn.h"
#include "net/tls/tls.h"
#include "requestor/backup/backup_archive.h"

namespace ecpipe {

// Has the coordinator copy what it keeps, and puts the files into the archive, which is finished
// when this returns OK. UNAVAILABLE: another backup is being made, or the coordinator was silent
// for `patience`. UNIMPLEMENTED: the coordinator is too old. It takes an hour at most. `progress`
// is told of bytes without a total.
absl::Status FetchBackup(const std::string& coordinator, Duration patience,
                         const std::shared_ptr<TlsContext>& tls, BackupArchive* archive,
                         const ProgressFn& progress);

}  // namespace ecpipe
