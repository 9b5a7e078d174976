// SPDX-License-Identifier: Apache-2.0
// The chunks of a QFS chunkserver, read from its chunk directories. Block
// "qfs.<file>.<chunk>.<version>" (model/systems/qfs_chunk.h) is the file <file>.<chunk>.<version>
// in one of them. Chunks that are being written (dirty/, or version 0 of a chunk under recovery)
// and stale ones (lost+found/) are in subdirectories, or have other names: the store does not have
// them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "helper/store/block_store.h"

namespace ecpipe {

// Opens a directory; tests have others. Invalid, with errno: it cannot be opened.
using DirectoryOpener = std::function<UniqueFd(const std::string& path)>;

// `directories` are those of chunkServer.chunkDir. Symbolic links are not followed below them, and
// no directory is listed to find a chunk. Chunk files are readable by their owner alone, so the
// process has to run as the chunkserver's user. `chunkserver` is where the chunkserver listens, as
// the metaserver names it: the store's storage_id() is made of it. `open` is for tests.
//
// Open() checks chunks as OpenQfsChunk says; it waits RootCalls::kPatience for a directory that
// hangs, and not at all for one that has hung before and hangs still. What a chunk lacks of its
// length counts as zeros: QFS does not write the zeros at the end of a group. Create() fails with
// FAILED_PRECONDITION, because QFS writes its chunks itself. TakeInventory() and Listing() return
// at once: a thread of the store lists the directories every `scan_interval`. TakeInventory() names
// those that have failed or hang; they have what they had when they were listed last, unless they
// are gone. INVALID_ARGUMENT: no directory, or `chunkserver` is not HOST:PORT.
absl::StatusOr<std::unique_ptr<BlockStore>> OpenQfsStore(
    const std::vector<std::string>& directories, const std::string& chunkserver,
    Duration scan_interval, const DirectoryOpener& open = nullptr);

}  // namespace ecpipe
