// SPDX-License-Identifier: Apache-2.0
// The chunks of a QFS chunkserver, read from its chunk directories. Block
// "qfs.<file>.<chunk>.<version>" (model/systems/qfs_chunk.h) is the file <file>.<chunk>.<version>
// in one of them. Chunks that are being written (dirty/, or version 0 of a chunk under recovery)
// and stale ones (lost+found/) are in subdirectories, or have other names: the store does not have
// them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "helper/store/block_store.h"
#include "helper/store/qfs/qfs_directories.h"

namespace ecpipe {

// `directories` are those of chunkServer.chunkDir. Symbolic links are not followed below them, and
// no directory is listed to find a chunk. Chunk files are readable by their owner alone, so the
// process has to run as the chunkserver's user. `chunkserver` is where the chunkserver listens, as
// the metaserver names it: the store's storage_id() is made of it. `open` is for tests.
//
// Open() checks chunks as OpenQfsChunk says; it waits for a directory that hangs for a second at
// most, and not at all if another has the chunk. Create() fails with FAILED_PRECONDITION, because
// QFS writes its chunks itself. TakeInventory() and Listing() return at once: a thread of the store
// lists the directories every `scan_interval`. TakeInventory() names those that have failed or
// hang; they have what they had when they were listed last, unless they are gone. INVALID_ARGUMENT:
// no directory, or `chunkserver` is not HOST:PORT.
absl::StatusOr<std::unique_ptr<BlockStore>> OpenQfsStore(std::vector<std::string> directories,
                                                         const std::string& chunkserver,
                                                         Duration scan_interval,
                                                         QfsDirectories::Opener open = nullptr);

}  // namespace ecpipe
