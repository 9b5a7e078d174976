// SPDX-License-Identifier: Apache-2.0
#include "fakes/memory_transport.h"

#include <map>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "fakes/framed_stream.h"
#include "fakes/memory_stream.h"

namespace ecpipe {
namespace {

class MemoryTransport : public Transport {
 public:
  explicit MemoryTransport(const MemoryTransportOptions& options) : options_(options) {}

  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput& input,
                                                         const StreamShape&) override {
    ECPIPE_ASSIGN_OR_RETURN(auto stream, Join({input.edge, input.token}, MemoryStream::kReceiver,
                                              /*wakeup=*/nullptr));
    return MakeFramedReceiver(input, std::move(stream));
  }

  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput& output, const StreamShape&,
                                                     std::shared_ptr<Wakeup> wakeup) override {
    ECPIPE_ASSIGN_OR_RETURN(
        auto stream, Join({output.edge, output.token}, MemoryStream::kSender, std::move(wakeup)));
    return MakeFramedSender(output, std::move(stream));
  }

 private:
  using Key = std::pair<EdgeId, EdgeToken>;

  // The stream of this edge: a new one for the end that comes first.
  absl::StatusOr<std::shared_ptr<MemoryStream>> Join(const Key& key, MemoryStream::End end,
                                                     std::shared_ptr<Wakeup> wakeup) {
    MutexLock lock(&mutex_);
    auto [found, is_new] = half_open_.try_emplace(key);
    if (is_new) found->second = std::make_shared<MemoryStream>(options_.stream_bytes);
    const std::shared_ptr<MemoryStream> stream = found->second;
    if (!stream->Attach(end, std::move(wakeup))) {
      return absl::AlreadyExistsError("this end of the edge is in use");
    }
    if (!is_new) half_open_.erase(found);
    return stream;
  }

  const MemoryTransportOptions options_;
  Mutex mutex_;
  // Streams of which one end has come. Shared with that end.
  std::map<Key, std::shared_ptr<MemoryStream>> half_open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Transport> MakeMemoryTransport(const MemoryTransportOptions& options) {
  return std::make_unique<MemoryTransport>(options);
}

}  // namespace ecpipe
