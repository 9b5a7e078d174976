// SPDX-License-Identifier: Apache-2.0
// A catalog, a journal and helpers that live in memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "coordinator/repairs/helper_gateway.h"
#include "fakes/memory_store.h"

namespace ecpipe {

// Stripe sI of rs(6,4) with blocks of 1000 bytes: block b<6 I + j> on node n<(I + j) mod nodes>.
class MemoryCatalog : public KeptStripes, public CatalogOver {
 public:
  explicit MemoryCatalog(int stripe_count = 1, int nodes = 6) : CatalogOver(this) {
    for (int i = 0; i < stripe_count; ++i) {
      Stripe stripe;
      stripe.stripe_id = "s" + std::to_string(1000 + i);
      stripe.code = "rs(6,4)";
      stripe.block_bytes = 1000;
      for (int j = 0; j < 6; ++j) {
        stripe.blocks.push_back(
            {"b" + std::to_string(6 * i + j), "n" + std::to_string((i + j) % nodes)});
      }
      stripes.emplace(stripe.stripe_id, stripe);
    }
  }

  // Those of the lowest ids stay.
  void KeepStripes(size_t count) {
    while (stripes.size() > count) stripes.erase(std::prev(stripes.end()));
  }
};

class MemoryJournal : public KeptRecords, public JournalOver {
 public:
  MemoryJournal() : JournalOver(this) {}

  absl::StatusOr<std::vector<RepairRecord>> RecentlyEnded(int limit) override {
    if (!trouble.ok()) return trouble;
    return JournalOver::RecentlyEnded(limit);
  }
  absl::Status RecordRecovery(const RecoveryRecord& record) override {
    {
      MutexLock lock(&mutex);
      if (!recoveries_refused.ok()) return recoveries_refused;
      if (record.recovery_id == refused_recovery) return absl::UnavailableError("the disk is full");
    }
    return JournalOver::RecordRecovery(record);
  }
  absl::Status Sync() override {
    std::function<absl::Status()> sync;
    {
      MutexLock lock(&mutex);
      sync = on_sync;
    }
    return sync ? sync() : absl::OkStatus();
  }

  absl::Status trouble;  // when it is asked for what has ended
  std::function<absl::Status()> on_sync;
  absl::Status recoveries_refused;  // what RecordRecovery says, unless it is OK
  RecoveryId refused_recovery = 0;  // the only one that it refuses; 0: none
};

// Helpers that take every part, but those on `down` or `wrong`, which refuse, and those on
// `silent`, which do not answer, and those on `late`, which do if they are waited for.
class FakeHelpers : public HelperGateway {
 public:
  std::vector<absl::StatusOr<Started>> StartParts(
      const std::vector<Handout>& handouts, Duration timeout,
      std::optional<Duration> straggler_after) override {
    if (on_start) on_start();
    if (on_handouts) on_handouts(handouts);
    MutexLock lock(&mutex);
    timeouts.push_back(timeout);
    std::vector<absl::StatusOr<Started>> statuses;
    for (const Handout& handout : handouts) {
      const bool is_down = down.contains(handout.helper.node);
      const bool lacks = std::any_of(
          handout.part.hops.begin(), handout.part.hops.end(),
          [&](const HopSpec& hop) { return hop.block && missing.contains(hop.block->block_id); });
      const bool is_another =
          std::any_of(handout.part.hops.begin(), handout.part.hops.end(), [&](const HopSpec& hop) {
            const auto stored = stored_sha256.find(hop.block ? hop.block->block_id : "");
            return stored != stored_sha256.end() && stored->second != hop.block->sha256;
          });
      EXPECT_TRUE(ValidatePart(handout.part).ok()) << ValidatePart(handout.part);
      if (busy.contains(handout.helper.node)) {
        statuses.emplace_back(absl::ResourceExhaustedError(handout.helper.node + ": at its limit"));
      } else if (wrong.contains(handout.helper.node)) {
        statuses.emplace_back(absl::OutOfRangeError(handout.helper.node + ": another length"));
      } else if (silent.contains(handout.helper.node)) {
        statuses.emplace_back(absl::DeadlineExceededError("no answer"));
      } else if (straggler_after && late.contains(handout.helper.node)) {
        statuses.emplace_back(absl::CancelledError("not waited for"));
      } else if (is_down) {
        statuses.emplace_back(absl::UnavailableError(handout.helper.node + ": refused"));
      } else if (is_another) {
        statuses.emplace_back(absl::DataLossError(handout.helper.node + ": another block"));
      } else if (lacks) {
        statuses.emplace_back(absl::NotFoundError(handout.helper.node + ": no such block"));
      } else {
        statuses.emplace_back(Started{checksum});
      }
    }
    ++rounds;
    last = handouts;
    const bool taken = std::all_of(statuses.begin(), statuses.end(),
                                   [](const auto& status) { return status.ok(); });
    if (taken) all.push_back(handouts);
    return statuses;
  }
  // Those on `down` do not answer, and the others' parts run, unless `answers` says otherwise.
  std::vector<absl::StatusOr<PartProgress>> AskParts(RepairId, uint32_t,
                                                     const std::vector<HelperAddress>& helpers,
                                                     Duration,
                                                     std::optional<Duration> straggler) override {
    if (on_ask) on_ask();
    MutexLock lock(&mutex);
    stragglers_of_asks.push_back(straggler);
    std::vector<absl::StatusOr<PartProgress>> given;
    for (const HelperAddress& helper : helpers) {
      asked.insert(helper.node);
      const auto answer = answers.find(helper.node);
      if (silent.contains(helper.node) || (straggler && late.contains(helper.node))) {
        given.emplace_back(absl::DeadlineExceededError("no answer"));
      } else if (down.contains(helper.node)) {
        given.emplace_back(absl::UnavailableError("connection refused"));
      } else if (answer != answers.end()) {
        given.emplace_back(answer->second);
      } else {
        given.emplace_back(PartProgress{.running = true, .ended = {}, .hops = {}});
      }
    }
    return given;
  }
  std::vector<absl::Status> CancelRepair(RepairId, uint32_t attempt,
                                         const std::vector<HelperAddress>& helpers) override {
    MutexLock lock(&mutex);
    cancelled.push_back(attempt);
    return AnswersOf(helpers);
  }
  std::vector<absl::Status> EndAttempt(RepairId, uint32_t attempt,
                                       const std::vector<HelperAddress>& helpers) override {
    MutexLock lock(&mutex);
    ended.push_back(attempt);
    if (on_end) on_end();
    return AnswersOf(helpers);
  }
  // All have all blocks, of 1000 bytes, but those on `down`, and but what `missing` says.
  std::vector<absl::StatusOr<FoundBlocks>> FindBlocks(const std::vector<BlockQuestion>& questions,
                                                      Duration) override {
    MutexLock lock(&mutex);
    ++asked_for_blocks;
    std::vector<absl::StatusOr<FoundBlocks>> given;
    for (const BlockQuestion& question : questions) {
      if (down.contains(question.helper.node)) {
        given.emplace_back(absl::UnavailableError(question.helper.node + ": refused"));
        continue;
      }
      FoundBlocks found;
      for (const std::string& block_id : question.block_ids) {
        const auto lacks = missing.find(block_id);
        const auto stored = stored_sha256.find(block_id);
        const std::string sha256 = stored == stored_sha256.end() ? "" : stored->second;
        if (lacks == missing.end()) {
          found.emplace_back(FoundBlock{1000, sha256});
        } else if (lacks->second.ok()) {
          found.emplace_back(FoundBlock{*lacks->second, sha256});
        } else {
          found.emplace_back(lacks->second.status());
        }
      }
      given.emplace_back(std::move(found));
    }
    return given;
  }
  void ForgetConnection(const std::string&) override {}

  Mutex mutex;
  std::set<std::string> down;
  std::map<std::string, absl::StatusOr<uint64_t>>
      missing;  // what is found of these; no part can read them
  std::map<std::string, std::string> stored_sha256;  // of blocks that are found
  std::set<std::string> wrong;                       // have a block of another length
  std::set<std::string> busy;                        // at a limit of their own
  std::set<std::string> silent;
  std::set<std::string> late;
  std::vector<std::string> waited_for;  // silent nodes that were told to end a part
  std::vector<Duration> timeouts;       // of handouts
  std::function<void()> on_start;
  std::function<void(const std::vector<Handout>&)> on_handouts;  // set before use
  std::map<std::string, PartProgress> answers;                   // by node
  std::set<std::string> asked;
  std::vector<std::optional<Duration>> stragglers_of_asks;
  std::function<void()> on_ask;
  std::function<void()> on_end;          // of an attempt that another one follows; locked
  std::optional<ChecksumKind> checksum;  // that all say
  int rounds = 0;                        // of StartParts
  int asked_for_blocks = 0;              // calls of FindBlocks
  std::vector<Handout> last;
  std::vector<std::vector<Handout>> all;  // of rounds that nobody refused
  std::vector<uint32_t> cancelled;
  std::vector<uint32_t> ended;  // for another attempt

 private:
  std::vector<absl::Status> AnswersOf(const std::vector<HelperAddress>& helpers) {
    std::vector<absl::Status> answers_of;
    for (const HelperAddress& helper : helpers) {
      const bool is_silent = silent.contains(helper.node);
      if (is_silent) waited_for.push_back(helper.node);
      answers_of.push_back(is_silent ? absl::DeadlineExceededError("no answer") : absl::OkStatus());
    }
    return answers_of;
  }
};

inline NodeRecord FakeNode(const std::string& node) {
  NodeRecord record;
  record.node_id = node;
  record.control_address = node + ":1";
  record.data_address = node + ":2";
  record.incarnation = 1;
  return record;
}

}  // namespace ecpipe
