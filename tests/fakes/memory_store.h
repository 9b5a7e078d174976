// SPDX-License-Identifier: Apache-2.0
// A catalog and a journal in memory. What they keep may outlive them, as a disk outlives the
// processes that write to it.
#pragma once

#include <algorithm>
#include <climits>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"

namespace ecpipe {

// Why nothing can be written; OK if it can. Null: always OK.
using Writable = std::function<absl::Status()>;

// What a catalog keeps.
struct KeptStripes {
  Mutex mutex;
  std::map<std::string, Stripe> stripes;  // by id
  std::set<std::string> damaged;          // ids of stripes; set before use
  std::map<std::string, int> moves;       // by block id
  // Called before a block gets its new place; set before use.
  std::function<void(const std::string& block_id, const std::string& node)> on_move;
};

class CatalogOver : public Catalog {
 public:
  explicit CatalogOver(KeptStripes* kept, Writable writable = nullptr)
      : kept_(*kept), writable_(std::move(writable)) {}

  absl::StatusOr<PutCounts> Put(const std::vector<Stripe>& stripes) override {
    if (writable_) ECPIPE_RETURN_IF_ERROR(writable_());
    MutexLock lock(&kept_.mutex);
    for (const Stripe& stripe : stripes) kept_.stripes[stripe.stripe_id] = stripe;
    return PutCounts{};
  }
  absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>&) override { return NotFaked(); }
  absl::StatusOr<std::vector<Stripe>> Remove(const std::vector<std::string>&) override {
    return NotFaked();
  }
  absl::StatusOr<std::vector<Stripe>> TryRemove(const std::vector<std::string>&) override {
    return NotFaked();
  }
  absl::StatusOr<BlockLocation> FindBlock(const std::string& block_id) override {
    MutexLock lock(&kept_.mutex);
    for (const auto& [stripe_id, stripe] : kept_.stripes) {
      for (size_t i = 0; i < stripe.blocks.size(); ++i) {
        if (stripe.blocks[i].block_id != block_id) continue;
        if (kept_.damaged.contains(stripe_id)) return Damage(stripe_id);
        return BlockLocation{stripe, static_cast<int>(i)};
      }
    }
    return absl::NotFoundError("no stripe has block " + block_id);
  }
  absl::StatusOr<Stripe> FindStripe(const std::string& stripe_id) override {
    MutexLock lock(&kept_.mutex);
    const auto found = kept_.stripes.find(stripe_id);
    if (found == kept_.stripes.end()) return absl::NotFoundError("no stripe " + stripe_id);
    return found->second;
  }
  absl::StatusOr<StripePage> List(const std::string& after, int limit) override {
    MutexLock lock(&kept_.mutex);
    StripePage page;
    for (auto it = kept_.stripes.upper_bound(after); it != kept_.stripes.end(); ++it) {
      if (static_cast<int>(page.stripes.size()) == limit) break;
      page.stripes.push_back(it->second);
    }
    return page;
  }
  absl::StatusOr<NodeBlockPage> ListNode(const std::string& node, const std::string& after,
                                         int limit) override {
    ECPIPE_ASSIGN_OR_RETURN(const StripePage stripes, List(after, limit));
    NodeBlockPage page;
    const bool last = std::cmp_less(stripes.stripes.size(), limit);
    for (const Stripe& stripe : stripes.stripes) {
      if (!last) page.next = stripe.stripe_id;
      for (const BlockPlace& place : stripe.blocks) {
        if (place.node != node) continue;
        page.blocks.push_back({place.block_id, stripe});
        if (kept_.damaged.contains(stripe.stripe_id)) {
          page.blocks.back().stripe = Damage(stripe.stripe_id);
        }
      }
    }
    return page;
  }
  absl::StatusOr<uint64_t> CountStripes() override {
    MutexLock lock(&kept_.mutex);
    return kept_.stripes.size();
  }
  absl::StatusOr<std::map<std::string, uint64_t>> CountBlocksBut(
      const std::set<std::string>& but) override {
    MutexLock lock(&kept_.mutex);
    std::map<std::string, uint64_t> counts;
    for (const auto& [stripe_id, stripe] : kept_.stripes) {
      for (const BlockPlace& place : stripe.blocks) {
        if (!but.contains(place.node)) ++counts[place.node];
      }
    }
    return counts;
  }
  absl::Status MoveBlock(const std::string& block_id, const std::string& node,
                         const Stripe& was) override {
    if (writable_) ECPIPE_RETURN_IF_ERROR(writable_());
    if (kept_.on_move) kept_.on_move(block_id, node);
    MutexLock lock(&kept_.mutex);
    for (auto& [stripe_id, stripe] : kept_.stripes) {
      for (BlockPlace& place : stripe.blocks) {
        if (place.block_id != block_id) continue;
        ECPIPE_RETURN_IF_ERROR(CheckMayMove(block_id, node, was, stripe));
        place.node = node;
        ++kept_.moves[block_id];
        return absl::OkStatus();
      }
    }
    return absl::NotFoundError("no stripe has block " + block_id);
  }

 private:
  static absl::Status NotFaked() { return absl::UnimplementedError("not faked"); }
  static absl::Status Damage(const std::string& stripe_id) {
    return absl::DataLossError("stripe " + stripe_id + " is damaged");
  }

  KeptStripes& kept_;
  const Writable writable_;
};

// What a journal keeps.
struct KeptRecords {
  Mutex mutex;
  std::map<RepairId, RepairRecord> records;
  std::map<RecoveryId, RecoveryRecord> recoveries;
  // Called before a repair is recorded for the first time; set before use.
  std::function<void(const RepairRecord&)> on_record;
};

class JournalOver : public Journal {
 public:
  explicit JournalOver(KeptRecords* kept, Writable writable = nullptr)
      : kept_(*kept), writable_(std::move(writable)) {}

  absl::Status Record(const RepairRecord& record) override {
    if (writable_) ECPIPE_RETURN_IF_ERROR(writable_());
    if (kept_.on_record && !Find(record.repair_id).ok()) kept_.on_record(record);
    MutexLock lock(&kept_.mutex);
    kept_.records[record.repair_id] = record;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<RepairRecord>> ClaimInterrupted(int64_t now_unix_ms) override {
    MutexLock lock(&kept_.mutex);
    std::vector<RepairRecord> taken;
    for (auto& [repair_id, record] : kept_.records) {
      if (record.state != RepairState::kRunning) continue;
      record.state = RepairState::kInterrupted;
      record.ended_unix_ms = now_unix_ms;
      taken.push_back(record);
    }
    return taken;
  }
  absl::StatusOr<RepairRecord> Find(RepairId repair_id) override {
    MutexLock lock(&kept_.mutex);
    const auto found = kept_.records.find(repair_id);
    if (found == kept_.records.end()) return absl::NotFoundError("no such repair");
    return found->second;
  }
  absl::StatusOr<std::vector<RepairRecord>> Recent(int limit) override {
    MutexLock lock(&kept_.mutex);
    std::vector<RepairRecord> recent;
    for (const auto& [repair_id, record] : kept_.records) recent.push_back(record);
    std::stable_sort(recent.begin(), recent.end(), [](const auto& a, const auto& b) {
      const bool a_runs = a.state == RepairState::kRunning;
      const bool b_runs = b.state == RepairState::kRunning;
      return a_runs != b_runs ? a_runs : a.started_unix_ms > b.started_unix_ms;
    });
    recent.resize(std::min(recent.size(), static_cast<size_t>(limit)));
    return recent;
  }
  absl::StatusOr<std::vector<RepairRecord>> RecentlyEnded(int limit) override {
    ECPIPE_ASSIGN_OR_RETURN(std::vector<RepairRecord> ended, Recent(INT_MAX));
    std::erase_if(ended, [](const auto& record) { return record.state == RepairState::kRunning; });
    ended.resize(std::min(ended.size(), static_cast<size_t>(limit)));
    return ended;
  }
  absl::Status RecordRecovery(const RecoveryRecord& record) override {
    if (writable_) ECPIPE_RETURN_IF_ERROR(writable_());
    MutexLock lock(&kept_.mutex);
    kept_.recoveries[record.recovery_id] = record;
    return absl::OkStatus();
  }
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<RecoveryRecord>> Recoveries(int limit) override {
    MutexLock lock(&kept_.mutex);
    std::vector<RecoveryRecord> newest;
    for (auto it = kept_.recoveries.rbegin(); it != kept_.recoveries.rend(); ++it) {
      if (static_cast<int>(newest.size()) == limit) break;
      newest.push_back(it->second);
    }
    return newest;
  }
  absl::Status Trim(int) override { return absl::OkStatus(); }

 private:
  KeptRecords& kept_;
  const Writable writable_;
};

}  // namespace ecpipe
