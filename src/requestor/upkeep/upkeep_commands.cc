// SPDX-License-Identifier: Apache-2.0
// The arguments of the commands with which operators keep a cluster up.
#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes/number_text.h"
#include "model/systems/hdfs_block.h"
#include "requestor/backup/backup_command.h"
#include "requestor/cli/commands.h"
#include "requestor/doctor/doctor_command.h"
#include "requestor/upkeep/config_command.h"
#include "requestor/upkeep/corrupt_command.h"
#include "requestor/upkeep/drain_command.h"
#include "requestor/upkeep/list_commands.h"
#include "requestor/upkeep/node_commands.h"
#include "requestor/upkeep/watch_command.h"

namespace ecpipe {
namespace {

// Adds commands to one app. Arguments live as long as the program, as the app does.
class Adder {
 public:
  Adder(CLI::App* app, const CommonArguments* common, std::function<absl::Status()>* command)
      : app_(app), common_(common), command_(command) {}

  // A command that takes no more than the common arguments.
  CLI::App* Add(CLI::App* parent, const char* name, const char* help,
                absl::Status (*run)(const CommonArguments&)) {
    return Add<int>(parent, name, help,
                    [run](const CommonArguments& common, const int&) { return run(common); })
        .first;
  }

  // One that takes `Arguments`, which are the second of what this returns.
  template <typename Arguments, typename Run>
  std::pair<CLI::App*, Arguments*> Add(CLI::App* parent, const char* name, const char* help,
                                       Run run) {
    CLI::App* const added = parent->add_subcommand(name, help);
    const auto arguments = std::make_shared<Arguments>();
    added->callback([common = common_, command = command_, arguments, run, added] {
      if (!added->get_subcommands().empty()) return;  // that one is asked for
      *command = [common, arguments, run] { return run(*common, *arguments); };
    });
    return {added, arguments.get()};
  }

  void AddCorrupt() {
    CLI::App* corrupt = app_->add_subcommand("corrupt",
                                             "List blocks that are known or called corrupt, have\n"
                                             "them checked, or clear them");
    corrupt->require_subcommand(1);
    Add(corrupt, "list", "List them, the oldest finding first", RunCorruptList);
    const auto [check, checked] =
        Add<std::string>(corrupt, "check",
                         "Have the block's helper read it: a sound block is\n"
                         "used again. Ends with 1 unless it is sound",
                         RunCheckCorrupt);
    AddBlock(check, checked);
    const auto [clear, cleared] = Add<ClearCorruptArguments>(
        corrupt, "clear", "Say that the block is sound, without a check", RunClearCorrupt);
    AddBlock(clear, &cleared->block_id);
    AddDryRun(clear, &cleared->dry_run);
  }

  void AddCatalog() {
    CLI::App* catalog =
        app_->add_subcommand("catalog", "Load, show, check, copy and thin the catalog of stripes");
    catalog->require_subcommand(1);
    const auto [load, loaded] =
        Add<CatalogLoadArguments>(catalog, "load", "Add the stripes of manifests", RunCatalogLoad);
    load->add_option("MANIFEST", loaded->manifests,
                     "Manifest files, as `ecpipe encode` writes them")
        ->type_name("FILE")
        ->required();
    AddDryRun(load, &loaded->dry_run);
    const auto [list, page] = Add<Page>(catalog, "list", "List stripes in the order of their ids",
                                        [](const CommonArguments& common, const Page& from) {
                                          return RunCatalogList(common, from.after, from.limit);
                                        });
    list->add_option("--after", page->after, "Begin after the stripe with this id")
        ->type_name("ID");
    list->add_option("--limit", page->limit, "List at most so many stripes")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    const auto [locate, located] =
        Add<std::string>(catalog, "locate",
                         "Show the stripe of a block, and the node of each\n"
                         "of its blocks",
                         RunCatalogLocate);
    locate->add_option("BLOCK", *located, "Id of the block")->type_name("ID")->required();
    AddCatalogLife(catalog);
  }

  void AddCatalogLife(CLI::App* catalog) {
    const auto [out, exported] = Add<std::string>(
        catalog, "export", "Write all stripes to a file, a line of JSON each", RunCatalogExport);
    out->add_option("FILE", *exported, "File to write, or - for standard output")
        ->type_name("PATH")
        ->required();
    const auto [in, imported] =
        Add<CatalogImportArguments>(catalog, "import",
                                    "Add the stripes of such a file, or replace those\n"
                                    "whose ids are known",
                                    RunCatalogImport);
    in->add_option("FILE", imported->file, "File to read, no pipe: it is read twice")
        ->type_name("PATH")
        ->required();
    AddDryRun(in, &imported->dry_run);
    Add(catalog, "check",
        "Ask helpers for each block of the catalog. Ends\n"
        "with 1 if some are missing or have another length",
        RunCatalogCheck);
    const auto [remove, removed] =
        Add<CatalogRemoveArguments>(catalog, "remove",
                                    "Remove stripes; their blocks stay on their nodes,\n"
                                    "and nobody repairs them any more",
                                    RunCatalogRemove);
    remove->add_option("STRIPE", removed->stripes, "Ids of the stripes")
        ->type_name("ID")
        ->required();
    AddDryRun(remove, &removed->dry_run);
  }

  void AddBackup() {
    const auto [backup, arguments] =
        Add<BackupArguments>(app_, "backup",
                             "Copy what the coordinator keeps into a tar archive,\n"
                             "while it works: catalog, journal, limits, marks",
                             RunBackup);
    backup->add_option("FILE", arguments->file, "Archive to write, for its owner alone to read")
        ->type_name("PATH")
        ->required();
    backup->add_flag("--force", arguments->force, "Replace a file that is there");
  }

  void AddConfig() {
    const auto [config, node] =
        Add<std::string>(app_, "config",
                         "Print the configuration by which the helper of a\n"
                         "node runs, or the coordinator, as its file would\n"
                         "have it",
                         RunConfig);
    config->add_option("NODE", *node, "Id of the node; default: the coordinator")->type_name("ID");
  }

  void AddLists() {
    const auto [nodes, node_order] =
        Add<SortOrder>(app_, "nodes",
                       "List nodes: state, blocks and their bytes, and what\n"
                       "their helpers send and receive now",
                       RunNodes);
    AddSort(nodes, NodeSortKeys(), "node", node_order);
    nodes->require_subcommand(0, 1);
    const auto [forget, forgotten] =
        Add<ForgetNodeArguments>(nodes, "forget",
                                 "Forget a node that will not come back, and its\n"
                                 "limits",
                                 RunForgetNode);
    forget->add_option("NODE", forgotten->node, "Id of the node")->type_name("ID")->required();
    forget->add_flag("--force", forgotten->force,
                     "Also if it lives (its helper registers again), or\n"
                     "if the catalog has blocks on it");
    AddDryRun(forget, &forgotten->dry_run);
    const auto [clean, cleaned] =
        Add<CleanArguments>(nodes, "clean",
                            "Remove a node's copies of blocks that are on other\n"
                            "nodes by the catalog, if those live and their copies\n"
                            "are good; they read each first, but not in a dry run",
                            RunClean);
    clean->add_option("NODE", cleaned->node, "Id of the node")->type_name("ID")->required();
    clean
        ->add_option("--older-than", cleaned->least_age_seconds,
                     "Only files that were not changed for so long: 0s, 45m,\n"
                     "2h, 1d; default: 1h")
        ->option_text("TIME")
        ->transform(TimeInSeconds())
        ->check(NumberFrom(0, 1e9));
    AddDryRun(clean, &cleaned->dry_run);
    AddKeptOut(nodes);
    const auto [repairs, arguments] =
        Add<RepairsArguments>(app_, "repairs",
                              "List repairs: those that run, then the latest\n"
                              "others, the newest first",
                              RunRepairs);
    AddSort(repairs, RepairSortKeys(), "", &arguments->order);
    repairs->add_flag("--running", arguments->running, "Only those that run");
  }

  static CLI::AsNumberWithUnit TimeInSeconds() {
    return CLI::AsNumberWithUnit(
        std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}},
        CLI::AsNumberWithUnit::UNIT_REQUIRED);
  }

  void AddKeptOut(CLI::App* nodes) {
    const auto [maintain, maintained] =
        Add<MaintainArguments>(nodes, "maintain",
                               "Announce that a node may be away. It takes no\n"
                               "blocks, and nobody is alarmed; after that time\n"
                               "what it does not have is rebuilt. A second call\n"
                               "sets a new end",
                               RunMaintain);
    maintain->add_option("NODE", maintained->node, "Id of the node")->type_name("ID")->required();
    maintain->add_option("--for", maintained->seconds, "For so long: 90s, 45m, 2h, 1d; at most 7d")
        ->option_text("TIME")
        ->required()
        ->transform(TimeInSeconds())
        ->check(NumberFrom(1, 604800));
    AddDryRun(maintain, &maintained->dry_run);
    const auto [readmit, readmitted] =
        Add<ReadmitArguments>(nodes, "readmit",
                              "Let a node that was drained, or is in maintenance,\n"
                              "take blocks again",
                              RunReadmit);
    readmit->add_option("NODE", readmitted->node, "Id of the node")->type_name("ID")->required();
    AddDryRun(readmit, &readmitted->dry_run);
  }

  void AddDrain() {
    const auto [drain, arguments] =
        Add<DrainArguments>(app_, "drain",
                            "Move all blocks off a node that lives, and verify\n"
                            "that they are there: copied, and rebuilt by others\n"
                            "at once. It then takes no blocks, until `ecpipe\n"
                            "nodes readmit`. The coordinator goes on if this\n"
                            "command is stopped; `ecpipe recovery` controls it",
                            RunDrain);
    RecoveryRequest* const request = &arguments->request;
    drain->add_option("NODE", request->node, "Id of the node")->type_name("ID")->required();
    drain->add_option("--to", request->hosts, "Nodes that may store the blocks; default: all")
        ->option_text("NODE,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    drain
        ->add_option("--scheme", request->scheme,
                     "How blocks are rebuilt, as for `ecpipe repair`;\n"
                     "direct: only what cannot be copied is rebuilt;\n"
                     "default: the coordinator's")
        ->type_name("SCHEME");
    drain
        ->add_option("--policy", arguments->policy,
                     "How nodes are chosen, as for `ecpipe recover-node`;\n"
                     "default: balanced")
        ->type_name("POLICY")
        ->check(CLI::IsMember({"in-order", "least-recent", "balanced"}));
    drain
        ->add_option("--transport", arguments->transport,
                     "tcp or redis; default: the coordinator's")
        ->type_name("TRANSPORT");
    drain
        ->add_option("--streams", request->streams_per_node,
                     "Most repairs in which one node takes part at once;\n"
                     "default: the coordinator's streams_per_node")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 1000));
    drain->add_flag("--detach", arguments->detach, "Start the drain and do not wait for its end");
    AddDryRun(drain, &arguments->dry_run);
  }

  void AddDoctor() {
    Add(app_, "doctor",
        "Check the deployment: versions, ports, roots, disks,\n"
        "descriptors, clocks, certificates; and say what to\n"
        "do about each trouble. Ends with 1 if there is one",
        RunDoctor);
  }

  void AddWatch() {
    const auto [watch, arguments] =
        Add<WatchArguments>(app_, "watch",
                            "Show nodes, repairs and recoveries on one screen,\n"
                            "until ^C; one print where output is no terminal.\n"
                            "With --json an object a line, until ^C",
                            RunWatch);
    AddSort(watch, NodeSortKeys(), "node", &arguments->order);
    watch
        ->add_option("--interval", arguments->interval_s,
                     "Ask the coordinator so often; default: 2")
        ->type_name("SECONDS")
        ->check(NumberFrom(0.2, 3600));
    watch->add_option("--count", arguments->frames, "End after so many screens, or objects")
        ->type_name("COUNT")
        ->check(CLI::PositiveNumber);
  }

 private:
  struct Page {
    std::string after;
    uint32_t limit = 100;
  };

  static void AddBlock(CLI::App* app, std::string* block_id) {
    app->add_option("BLOCK", *block_id, "Id of the block")
        ->type_name("ID")
        ->required()
        ->transform(CanonicalBlockId);
  }

  static void AddDryRun(CLI::App* app, bool* dry_run) {
    app->add_flag("--dry-run", *dry_run, "Say what would be done, and do nothing");
  }

  static void AddSort(CLI::App* app, const std::vector<std::string>& keys,
                      const std::string& otherwise, SortOrder* order) {
    std::string help = "Sort by this column, numbers from the largest on:\n";
    size_t line = 0;
    for (const std::string& key : keys) {
      constexpr size_t kLine = 48;
      if (line + key.size() > kLine) help += "\n", line = 0;
      help += key + (key == keys.back() ? "" : ", ");
      line += key.size() + 2;
    }
    if (!otherwise.empty()) help += "; default: " + otherwise;
    app->add_option("--sort", order->key, help)->option_text("KEY")->check(CLI::IsMember(keys));
    app->add_flag("--reverse", order->reverse, "In the other direction");
  }

  CLI::App* const app_;
  const CommonArguments* const common_;
  std::function<absl::Status()>* const command_;
};

}  // namespace

void AddUpkeepCommands(CLI::App* app, const CommonArguments* common,
                       std::function<absl::Status()>* command) {
  Adder adder(app, common, command);
  adder.AddBackup();
  adder.AddCatalog();
  adder.AddConfig();
  adder.AddCorrupt();
  adder.AddDoctor();
  adder.AddDrain();
  adder.AddLists();
  adder.AddWatch();
}

}  // namespace ecpipe
