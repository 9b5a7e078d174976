// SPDX-License-Identifier: Apache-2.0
// A catalog, a journal and helpers that live in memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"

namespace ecpipe {

// Stripe sI of rs(6,4) with blocks of 1000 bytes: block b<6 I + j> on node n<(I + j) mod nodes>.
class MemoryCatalog : public Catalog {
 public:
  explicit MemoryCatalog(int stripe_count = 1, int nodes = 6) {
    for (int i = 0; i < stripe_count; ++i) {
      Stripe& stripe = stripes.emplace_back();
      stripe.stripe_id = "s" + std::to_string(1000 + i);
      stripe.code = "rs(6,4)";
      stripe.block_bytes = 1000;
      for (int j = 0; j < 6; ++j) {
        stripe.blocks.push_back(
            {"b" + std::to_string(6 * i + j), "n" + std::to_string((i + j) % nodes)});
      }
    }
  }

  absl::StatusOr<PutCounts> Put(const std::vector<Stripe>&) override { return PutCounts{}; }
  absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>&) override {
    return absl::UnimplementedError("not faked");
  }
  absl::StatusOr<std::vector<Stripe>> Remove(const std::vector<std::string>&) override {
    return absl::UnimplementedError("not faked");
  }
  absl::StatusOr<std::vector<Stripe>> TryRemove(const std::vector<std::string>&) override {
    return absl::UnimplementedError("not faked");
  }
  absl::StatusOr<BlockLocation> FindBlock(const std::string& block_id) override {
    MutexLock lock(&mutex);
    for (const Stripe& stripe : stripes) {
      for (int i = 0; i < 6; ++i) {
        if (stripe.blocks[static_cast<size_t>(i)].block_id == block_id) {
          if (damaged.contains(stripe.stripe_id)) return Damage(stripe);
          return BlockLocation{stripe, i};
        }
      }
    }
    return absl::NotFoundError("no stripe has block " + block_id);
  }
  absl::StatusOr<Stripe> FindStripe(const std::string&) override { return stripes[0]; }
  absl::StatusOr<StripePage> List(const std::string& after, int limit) override {
    MutexLock lock(&mutex);
    StripePage page;
    for (const Stripe& stripe : stripes) {
      if (stripe.stripe_id <= after || static_cast<int>(page.stripes.size()) == limit) continue;
      page.stripes.push_back(stripe);
    }
    return page;
  }
  absl::StatusOr<NodeBlockPage> ListNode(const std::string& node, const std::string& after,
                                         int limit) override {
    NodeBlockPage page;
    const std::vector<Stripe> stripes_after = List(after, limit).value().stripes;
    const bool last = std::cmp_less(stripes_after.size(), limit);
    for (const Stripe& stripe : stripes_after) {
      if (!last) page.next = stripe.stripe_id;
      const bool is_damaged = damaged.contains(stripe.stripe_id);
      for (const BlockPlace& place : stripe.blocks) {
        if (place.node != node) continue;
        page.blocks.push_back({place.block_id, stripe});
        if (is_damaged) page.blocks.back().stripe = Damage(stripe);
      }
    }
    return page;
  }
  absl::StatusOr<uint64_t> CountStripes() override { return stripes.size(); }
  absl::StatusOr<std::map<std::string, uint64_t>> CountBlocksBut(
      const std::set<std::string>& but) override {
    MutexLock lock(&mutex);
    std::map<std::string, uint64_t> counts;
    for (const Stripe& stripe : stripes) {
      for (const BlockPlace& place : stripe.blocks) {
        if (!but.contains(place.node)) ++counts[place.node];
      }
    }
    return counts;
  }
  absl::Status MoveBlock(const std::string& block_id, const std::string& node,
                         const Stripe& was) override {
    if (on_move) on_move();
    MutexLock lock(&mutex);
    for (Stripe& stripe : stripes) {
      for (BlockPlace& place : stripe.blocks) {
        if (place.block_id != block_id) continue;
        const absl::Status may = CheckMayMove(block_id, node, was, stripe);
        if (!may.ok()) return may;
        place.node = node;
      }
    }
    ++moves[block_id];
    return absl::OkStatus();
  }

  static absl::Status Damage(const Stripe& stripe) {
    return absl::DataLossError("stripe " + stripe.stripe_id + " is damaged");
  }

  Mutex mutex;
  std::vector<Stripe> stripes;
  std::set<std::string> damaged;     // ids of stripes; set before use
  std::map<std::string, int> moves;  // by block id
  std::function<void()> on_move;
};

class MemoryJournal : public Journal {
 public:
  absl::Status Record(const RepairRecord& record) override {
    MutexLock lock(&mutex);
    records[record.repair_id] = record;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<RepairRecord>> ClaimInterrupted(int64_t) override {
    MutexLock lock(&mutex);
    std::vector<RepairRecord> taken;
    for (const auto& [id, record] : records) {
      if (record.state == RepairState::kRunning) taken.push_back(record);
    }
    return taken;
  }
  absl::StatusOr<RepairRecord> Find(RepairId repair_id) override {
    MutexLock lock(&mutex);
    const auto found = records.find(repair_id);
    if (found == records.end()) return absl::NotFoundError("no such repair");
    return found->second;
  }
  absl::StatusOr<std::vector<RepairRecord>> Recent(int) override {
    return std::vector<RepairRecord>{};
  }
  absl::StatusOr<std::vector<RepairRecord>> RecentlyEnded(int limit) override {
    MutexLock lock(&mutex);
    if (!trouble.ok()) return trouble;
    std::vector<RepairRecord> ended;
    for (const auto& [id, record] : records) {
      if (record.state == RepairState::kRunning || static_cast<int>(ended.size()) == limit)
        continue;
      ended.push_back(record);
    }
    return ended;
  }
  absl::Status RecordRecovery(const RecoveryRecord& record) override {
    MutexLock lock(&mutex);
    if (!recoveries_refused.ok()) return recoveries_refused;
    if (record.recovery_id == refused_recovery) return absl::UnavailableError("the disk is full");
    recoveries[record.recovery_id] = record;
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    std::function<absl::Status()> sync;
    {
      MutexLock lock(&mutex);
      sync = on_sync;
    }
    return sync ? sync() : absl::OkStatus();
  }
  absl::StatusOr<std::vector<RecoveryRecord>> Recoveries(int) override {
    MutexLock lock(&mutex);
    std::vector<RecoveryRecord> all;
    for (const auto& [id, record] : recoveries) all.push_back(record);
    return all;
  }
  absl::Status Trim(int) override { return absl::OkStatus(); }

  Mutex mutex;
  absl::Status trouble;  // when it is asked for what has ended
  std::map<RepairId, RepairRecord> records;
  std::map<RecoveryId, RecoveryRecord> recoveries;
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
        if (lacks == missing.end()) {
          found.emplace_back(1000);
        } else {
          found.emplace_back(lacks->second);
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
      missing;                  // what is found of these; no part can read them
  std::set<std::string> wrong;  // have a block of another length
  std::set<std::string> busy;   // at a limit of their own
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
