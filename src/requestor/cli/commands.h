// SPDX-License-Identifier: Apache-2.0
// The subcommands of `ecpipe`. Each prints its result to standard output and returns why it failed;
// main.cc parses arguments and turns the status into an exit code.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/tls/tls_files.h"
#include "requestor/catalog/block_verification.h"
#include "requestor/catalog/catalog_client.h"
#include "requestor/cli/progress.h"
#include "requestor/cli/table.h"
#include "requestor/client/coordinator_api.h"
#include "requestor/client/requestor.h"
#include "requestor/limits/limits_text.h"

namespace CLI {
class App;
}  // namespace CLI

namespace ecpipe {

struct CommonArguments {
  std::string coordinator = "127.0.0.1:7700";
  TlsFiles tls;
  std::string redis_password_file;  // empty: no password
  bool json = false;
  bool quiet = false;     // no progress
  double timeout_s = 10;  // without progress
  std::string test_features;
};

struct ReadArguments {
  // Of one block. With `store`, the range is of a file, and the only block id is its path.
  RepairTarget target;
  std::string store;      // a storage system, such as "qfs"; empty: a block is read
  std::string output;     // a path; "-" is standard output
  double limit_mbit = 0;  // of what comes over the network; 0: no limit
};

// Exactly one of `output`, `output_directory` and `to` is given.
struct RepairArguments {
  RepairTarget target;
  std::string output;              // the file of a single block
  std::string output_directory;    // each block under its id
  std::vector<std::string> hosts;  // nodes that store the blocks, one for each
  double limit_mbit = 0;           // as in ReadArguments; not with `to`
};

struct EncodeArguments {
  std::string input;
  std::string output_directory;
  std::string name;  // empty: the input's file name
  std::string code = "rs(14,10)";
  uint64_t block_bytes = 64 << 20;
  std::vector<std::string> nodes;
  bool no_checksums = false;
  bool dry_run = false;
};

enum class PlanFormat { kText, kJson, kDot };

// For progress on standard error.
inline ProgressStyle ProgressStyleOf(const CommonArguments& common) {
  return common.quiet || common.json ? ProgressStyle::kNone : StyleFor(STDERR_FILENO);
}

absl::StatusOr<std::unique_ptr<CoordinatorApi>> ConnectCoordinator(const CommonArguments& common);
absl::StatusOr<std::unique_ptr<CatalogApi>> ConnectCatalog(const CommonArguments& common);

// Prints what a call would do; the error of the call is returned.
absl::Status PrintEffects(const CommonArguments& common, const CatalogApi::Effects& effects);

// DATA_LOSS names the damaged stripes.
absl::Status CheckUndamaged(const ListedStripes& listed);

absl::Status PrintPutCounts(const CommonArguments& common, const CatalogApi::PutCounts& counts);

// Blocks that are not as they should be, as a table.
Table WrongBlocks(const std::vector<BlockCheck>& wrong);
nlohmann::ordered_json ClusterLimitsJson(const ClusterLimitsView& limits);
nlohmann::ordered_json WrongBlocksJson(const std::vector<BlockCheck>& wrong);

absl::Status RunRead(const CommonArguments& common, const ReadArguments& arguments);
// A range of no bytes: it must be there, and an output file is made empty.
absl::Status RunReadNothing(const CommonArguments& common, const ReadArguments& arguments);
// What other commands make of such a range.
absl::Status NothingToRebuild();
absl::Status RunRepair(const CommonArguments& common, const RepairArguments& arguments);
// `to` as in RepairArguments.
absl::Status RunPlan(const CommonArguments& common, const RepairTarget& target,
                     const std::vector<std::string>& hosts, PlanFormat format);

struct RecoverNodeArguments {
  RecoveryRequest request;  // its transport is below
  std::string transport;    // empty: the coordinator's default
  bool even_if_live = false;
  bool missing = false;
  bool detach = false;
  bool dry_run = false;
};
// If the node belongs to a storage system, shows what became of its blocks and returns true; unless
// `detach` is set it follows that until no block is outstanding. Otherwise prints nothing and
// returns false.
absl::StatusOr<bool> ShowIfSystemNode(const CommonArguments& common,
                                      const RecoverNodeArguments& arguments);
// Follows the recovery to its end unless `detach` is set, and has helpers asked for each block:
// DATA_LOSS unless all are there. For a node of a storage system it calls
// ShowIfSystemNode.
absl::Status RunRecoverNode(const CommonArguments& common, const RecoverNodeArguments& arguments);
// Follows a recovery, or a drain, to its end, and has helpers asked for each of these blocks, as
// RunRecoverNode does. An error instead of the blocks: they are not known.
absl::Status FollowAndVerify(const CommonArguments& common, CoordinatorApi* coordinator,
                             CatalogApi* catalog, uint64_t recovery_id,
                             const absl::StatusOr<std::vector<std::string>>& blocks);
// For --detach.
void PrintRecoveryBegun(const CommonArguments& common, uint64_t recovery_id);
// As `ecpipe recovery list --json` has it.
nlohmann::ordered_json RecoveryJson(const RecoveryView& recovery);
absl::Status RunRecoveries(const CommonArguments& common);
absl::Status RunShowRecovery(const CommonArguments& common, uint64_t recovery_id);
absl::Status RunChangeRecovery(const CommonArguments& common, uint64_t recovery_id,
                               RecoveryChange change, bool dry_run);

struct ProbeArguments {
  std::vector<std::string> nodes;  // empty: all live nodes
  uint64_t bytes = 8u << 20;       // bytes to send over each link
};

// Measures each link among the nodes, both ways.
absl::Status RunProbe(const CommonArguments& common, const ProbeArguments& arguments);
absl::Status RunLinks(const CommonArguments& common);
absl::Status RunSchemes(const CommonArguments& common);

// The limits of the cluster, or of each named node. Only limits that are set here change. A rate of
// 0 is no limit.
struct LimitsArguments {
  bool cluster = false;
  std::vector<std::string> nodes;
  bool reset = false;  // go back to the limits in the configurations
  bool dry_run = false;
  std::optional<double> repair_mbit;
  std::optional<uint32_t> max_running;
  std::optional<uint32_t> max_sessions;
};

absl::Status RunLimits(const CommonArguments& common);
// Prints nothing; with --json all limits, as RunLimits does: what is set holds at once, and a
// helper says within a second that it keeps to it.
absl::Status RunSetLimits(const CommonArguments& common, const LimitsArguments& arguments);

struct CatalogLoadArguments {
  std::vector<std::string> manifests;
  bool dry_run = false;
};
absl::Status RunCatalogLoad(const CommonArguments& common, const CatalogLoadArguments& arguments);
absl::Status RunCatalogList(const CommonArguments& common, const std::string& after,
                            uint32_t limit);
absl::Status RunCatalogLocate(const CommonArguments& common, const std::string& block_id);
// Writes all stripes as lines of JSON (catalog_lines.h) to a file, which appears whole or not at
// all; "-": standard output.
absl::Status RunCatalogExport(const CommonArguments& common, const std::string& file);

struct CatalogImportArguments {
  std::string file;
  bool dry_run = false;
};
// Adds the stripes of such lines, or replaces those whose id is known, a thousand in a transaction.
// It reads the file twice: a line that is wrong is found before the first stripe is put.
absl::Status RunCatalogImport(const CommonArguments& common,
                              const CatalogImportArguments& arguments);

struct CatalogRemoveArguments {
  std::vector<std::string> stripes;
  bool dry_run = false;
};
absl::Status RunCatalogRemove(const CommonArguments& common,
                              const CatalogRemoveArguments& arguments);

// Asks helpers for each block of the catalog. DATA_LOSS: some are not as they should be.
// UNAVAILABLE: of some nobody knows.
absl::Status RunCatalogCheck(const CommonArguments& common);

absl::Status RunStatus(const CommonArguments& common);

absl::Status RunEncode(const CommonArguments& common, const EncodeArguments& arguments);
absl::Status RunDecode(const CommonArguments& common, const std::string& manifest,
                       const std::string& blocks, const std::string& output);
absl::Status RunVerify(const CommonArguments& common, const std::string& manifest,
                       const std::string& blocks);

// Adds what operators keep a cluster up with, requestor/upkeep. The command that is asked for goes
// to `command`. Both pointers outlive the app.
void AddUpkeepCommands(CLI::App* app, const CommonArguments* common,
                       std::function<absl::Status()>* command);

}  // namespace ecpipe
