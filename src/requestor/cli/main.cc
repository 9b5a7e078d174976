// SPDX-License-Identifier: Apache-2.0
// ecpipe: the operator's and requestor's command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>

#include "base/bytes/number_text.h"
#include "base/bytes/sha256.h"
#include "base/bytes/size_text.h"
#include "base/process/process_stats.h"
#include "base/process/version.h"
#include "base/status.h"
#include "codec/kernel_check.h"
#include "model/plan/features.h"
#include "model/systems/hdfs_block.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/exit_codes.h"
#include "requestor/cli/terminal.h"
#include "rpc/rpc_exit.h"

namespace ecpipe {
namespace {

// Help is read in 80 columns, and CLI11 does not wrap it: texts here end their lines themselves. A
// description begins at column 30.
constexpr const char* kCommonOptions =
    "`ecpipe --help` lists the options of all commands, such as --coordinator, --json\n"
    "and the TLS files, and the exit codes.";

// Sizes as people write them: 32KiB, 64MiB.
template <typename Integer>
CLI::Option* AddSize(CLI::App* app, const std::string& name, Integer* bytes,
                     const std::string& help) {
  const auto parse = [bytes](const std::string& text) {
    const absl::StatusOr<uint64_t> parsed = ParseSize(text);
    if (!parsed.ok()) throw CLI::ValidationError(std::string(parsed.status().message()));
    if (*parsed > std::numeric_limits<Integer>::max()) {
      throw CLI::ValidationError("'" + text + "' is too large");
    }
    *bytes = static_cast<Integer>(*parsed);
  };
  return app->add_option_function<std::string>(name, parse, help)->type_name("SIZE");
}

// The arguments of every subcommand, and the one that was asked for.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.footer(kCommonOptions);  // of the subcommands, which inherit it
    app_.fallthrough();           // global options may follow the subcommand
    app_.add_option("--coordinator", common_.coordinator, "Address of the coordinator")
        ->type_name("HOST:PORT")
        ->envname("ECPIPE_COORDINATOR")
        ->capture_default_str();
    AddSecurityOptions();
    app_.add_flag("--json", common_.json, "Print the result as JSON");
    app_.add_flag("-q,--quiet", common_.quiet, "Show no progress");
    app_.add_option("--timeout", common_.timeout_s,
                    "Give up after so many seconds without an answer")
        ->type_name("SECONDS")
        ->check(NumberFrom(0.05, 86400))
        ->capture_default_str();
    app_.add_option("--test-features", common_.test_features)->group("");  // see ActAsOlder
    app_.set_version_flag("--version", std::string("ecpipe ") + Version());
    AddRepairCommands();
    AddRecoverNodeCommand();
    AddRecoveryCommands();
    AddLimitsCommands();
    AddClusterCommands();
    AddUpkeepCommands(&app_, &common_, &command_);
    AddFileCommands();
    app_.footer("`ecpipe COMMAND --help` describes a command. Sizes: 65536, 64KiB, 8MiB, 1GiB.\n" +
                std::string(kExitCodes));
  }

  int Run(int argc, char** argv) {
    absl::Status status = CheckWords(argc, argv);
    try {
      if (status.ok()) app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      std::ostringstream said;
      const int code = app_.exit(error, std::cout, said);
      std::fputs(ErrorText(said.str()).c_str(), stderr);
      return code == 0 ? kExitOk : kExitUsage;
    }
    status.Update(CheckKernel());
    if (!common_.test_features.empty()) status.Update(ActAsOlder(common_.test_features));
    if (status.ok()) status = command_();
    if (!status.ok()) std::fprintf(stderr, "ecpipe: %s\n", ErrorText(StatusText(status)).c_str());
    return ExitCodeFor(status);
  }

 private:
  void AddSecurityOptions() {
    const auto add = [this](auto option, std::string* path, auto variable, auto help) {
      app_.add_option(option, *path, help)->type_name("FILE")->envname(variable);
    };
    add("--tls-ca", &common_.tls.ca, "ECPIPE_TLS_CA",
        "TLS: PEM file with the CA of the cluster. With TLS\nall three files are needed");
    add("--tls-cert", &common_.tls.certificate, "ECPIPE_TLS_CERT",
        "TLS: PEM file with your certificate");
    add("--tls-key", &common_.tls.key, "ECPIPE_TLS_KEY",
        "TLS: PEM file with the key of your certificate");
    add("--redis-password-file", &common_.redis_password_file, "ECPIPE_REDIS_PASSWORD_FILE",
        "File with the password of the redis-servers, for\ntransport redis; default: they want "
        "none");
  }

  static void AddExample(CLI::App* app, const std::string& example) {
    app->footer("Example: " + example + "\n" + kCommonOptions);
  }

  CLI::App* Add(CLI::App* parent, const std::string& name, const std::string& help,
                std::function<absl::Status()> command) {
    CLI::App* app = parent->add_subcommand(name, help);
    app->callback([this, command = std::move(command)] { command_ = command; });
    return app;
  }

  enum class Blocks { kOne, kSeveral };

  void AddTarget(CLI::App* app, RepairTarget& target, Blocks blocks) {
    const bool one = blocks == Blocks::kOne;
    app->add_option("BLOCK", target.block_ids,
                    one ? "Id of the block" : "Ids of the blocks; all of one stripe")
        ->type_name("ID")
        ->required()
        ->transform(CanonicalBlockId)
        ->expected(one ? 1 : -1);  // -1: any number, from 1 on
    AddSize(app, "--offset", &target.offset, "First byte of the range; default: 0");
    AddSize(app, "--length", &target.bytes,
            one ? "Length of the range; default: to the end of the\n"
                  "block"
                : "Length of the range; default: to the end of the\n"
                  "longest block. A shorter block's file ends where\n"
                  "the block does")
        ->each([this](const std::string& text) { no_bytes_ = ParseSize(text).value_or(1) == 0; });
    AddScheme(app, &target.scheme, "default: the coordinator's");
    app->add_option("--rack", target.rack, "Rack of this host, for schemes that look at racks")
        ->type_name("RACK");
    app->add_option("--link-mbit", target.link_mbit, "Rate of this host's link; default: unknown")
        ->type_name("MBIT")
        ->check(NumberFrom(0, kMostMbit))
        ->envname("ECPIPE_LINK_MBIT");
    AddTransport(app, &target.transport);
    app->add_option("--verify", target.verify,
                    "none: use only checksum files, if there are any;\n"
                    "parity: read one more survivor and refuse slices\n"
                    "whose blocks do not fit together; locate: read two\n"
                    "more and name the corrupt block.\n"
                    "Default: the coordinator's")
        ->type_name("LEVEL");
    AddSliceSize(app, &target.slice_bytes);
  }

  static void AddScheme(CLI::App* app, std::string* scheme, const std::string& fallback) {
    app->add_option("--scheme", *scheme,
                    "How the repair runs: auto (the scheme with the\n"
                    "least expected time), or one of `ecpipe schemes`;\n" +
                        fallback)
        ->type_name("SCHEME");
  }

  static void AddTransport(CLI::App* app, std::string* transport) {
    app->add_option("--transport", *transport, "tcp or redis; default: the coordinator's")
        ->type_name("TRANSPORT");
  }

  static void AddNodes(CLI::App* app, const std::string& name, std::vector<std::string>* nodes,
                       const std::string& help) {
    app->add_option(name, *nodes, help)
        ->option_text("NODE,...")
        ->delimiter(',')
        ->allow_extra_args(false);  // what follows is a block again
  }

  static void AddHosts(CLI::App* app, std::vector<std::string>* nodes) {
    AddNodes(app, "--to", nodes,
             "Nodes whose helpers store the blocks: one node\n"
             "for each block, in the order of the blocks");
  }

  static void AddDryRun(CLI::App* app, bool* dry_run) {
    app->add_flag("--dry-run", *dry_run, "Say what would be done, and do nothing");
  }

  static void AddSliceSize(CLI::App* app, uint32_t* bytes) {
    const auto positive = [](const std::string& text) {
      return text == "0" ? std::string("a slice must not be 0 bytes long") : std::string();
    };
    AddSize(app, "--slice-size", bytes,
            "Bytes in a slice, such as 32KiB; at most 64MiB;\n"
            "default: the coordinator's")
        ->check(positive);
  }

  // Helpers that have sent all wait for the requestor to empty its sockets, and take it for dead
  // after ten seconds: half a MiB of each of a dozen helpers must be through by then.
  static constexpr double kLeastLimitMbit = 10;

  static void AddLimit(CLI::App* app, double* mbit) {
    app->add_option("--limit-mbit", *mbit,
                    "Receive at most so many megabits a second, and\n"
                    "leave the rest to others; default: no limit")
        ->type_name("MBIT")
        ->check(NumberFrom(kLeastLimitMbit, 1e6));
  }

  static void AddSha256(CLI::App* app, RepairTarget& target) {
    const auto check = [](const std::string& text) {
      return IsSha256Hex(text) ? "" : "must be 64 lower-case hexadecimal digits";
    };
    app->add_option("--sha256", target.sha256,
                    "Fail unless the bytes have this SHA-256. Where the\n"
                    "catalog knows the SHA-256 of a block, whole blocks\n"
                    "are compared with that in any case")
        ->type_name("HEX")
        ->expected(1)
        ->check(check);
  }

  void AddRepairCommands() {
    CLI::App* read = Add(&app_, "read",
                         "Degraded read: read a block, or a range of it, or\n"
                         "rebuild it if it is lost, and write its bytes in\n"
                         "order as they arrive",
                         [this] { return (no_bytes_ ? RunReadNothing : RunRead)(common_, read_); });
    read_.target.prefer_direct = true;
    AddTarget(read, read_.target, Blocks::kOne);
    read->add_option("--store", read_.store,
                     "qfs: BLOCK is the path of a file of QFS; blocks\n"
                     "are read where they are, and lost ones rebuilt");
    read->add_option("-o,--output", read_.output, "Output file, or - for standard output")
        ->type_name("FILE")
        ->capture_default_str();
    AddLimit(read, &read_.limit_mbit);
    AddSha256(read, read_.target);
    AddExample(read, "ecpipe read BLOCK --offset 4096 --length 1MiB -o part.bin");

    CLI::App* repair =
        Add(&app_, "repair",
            "Rebuild blocks of one stripe, into files or on\n"
            "nodes; each is stored whole and durable, or not\n"
            "at all",
            [this] {
              if (no_bytes_) return NothingToRebuild();
              return dry_run_ ? RunPlan(common_, repair_.target, repair_.hosts, PlanFormat::kText)
                              : RunRepair(common_, repair_);
            });
    AddTarget(repair, repair_.target, Blocks::kSeveral);
    CLI::Option_group* where = repair->add_option_group("Where to");
    where->add_option("-o,--output", repair_.output, "Output file, for a single block")
        ->type_name("FILE");
    where
        ->add_option("-d,--output-dir", repair_.output_directory,
                     "Output directory; each file is named by the id\n"
                     "of its block")
        ->type_name("DIR");
    AddHosts(where, &repair_.hosts);
    where->require_option(1);
    AddLimit(repair, &repair_.limit_mbit);
    repair->add_flag("--dry-run", dry_run_, "Show the plan, as `ecpipe plan`; repair nothing");
    AddSha256(repair, repair_.target);
    AddExample(repair,
               "ecpipe repair BLOCK -o block.bin\n"
               "         ecpipe repair BLOCK1 BLOCK2 --to node-3,node-7");

    CLI::App* plan = Add(&app_, "plan", "Show how blocks would be rebuilt; repair nothing", [this] {
      if (no_bytes_) return NothingToRebuild();
      if (common_.json && plan_format_ == PlanFormat::kText) plan_format_ = PlanFormat::kJson;
      return RunPlan(common_, repair_.target, repair_.hosts, plan_format_);
    });
    AddTarget(plan, repair_.target, Blocks::kSeveral);
    AddHosts(plan, &repair_.hosts);
    const std::map<std::string, PlanFormat> formats{
        {"text", PlanFormat::kText}, {"json", PlanFormat::kJson}, {"dot", PlanFormat::kDot}};
    plan->add_option("--format", plan_format_, "text, json, or dot for Graphviz; default: text")
        ->option_text("FORMAT")
        ->transform(CLI::CheckedTransformer(formats));
    AddExample(plan, "ecpipe plan BLOCK --scheme rp --format dot | dot -Tsvg >plan.svg");
  }

  void AddRecoverNodeCommand() {
    CLI::App* recover = Add(&app_, "recover-node",
                            "Rebuild all blocks of a lost node on other nodes,\n"
                            "and verify that they are there. The coordinator\n"
                            "goes on if this command is stopped. For a node of\n"
                            "HDFS or QFS: show how many of its blocks that\n"
                            "system has rebuilt",
                            [this] { return RunRecoverNode(common_, recovery_); });
    recover->add_option("NODE", recovery_.request.node, "Id of the node whose blocks are lost")
        ->type_name("ID")
        ->required();
    AddNodes(recover, "--to", &recovery_.request.hosts,
             "Nodes that may store rebuilt blocks; default: all");
    recover
        ->add_option("--scheme", recovery_.request.scheme,
                     "As for `ecpipe repair`; default: the coordinator's")
        ->type_name("SCHEME");
    recover
        ->add_option_function<std::string>(
            "--policy",
            [this](const std::string& name) {
              recovery_.request.policy = *RecoveryPolicyNamed(name);
            },
            "How the nodes of each repair are chosen: balanced\n"
            "(evens out the load of links), least-recent (the\n"
            "paper's greedy rule), in-order (a baseline);\n"
            "default: balanced")
        ->type_name("POLICY")
        ->check(CLI::IsMember({"in-order", "least-recent", "balanced"}));
    AddSliceSize(recover, &recovery_.request.slice_bytes);
    AddTransport(recover, &recovery_.transport);
    recover
        ->add_option("--streams", recovery_.request.streams_per_node,
                     "Most repairs in which one node takes part at once;\n"
                     "default: the coordinator's streams_per_node")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 1000));
    recover
        ->add_option("--delay", recovery_.request.delay_seconds,
                     "Rebuild nothing before the node has been silent\n"
                     "so long; default: delay_seconds of the coordinator")
        ->type_name("SECONDS")
        ->check(NumberFrom(0, 604800));
    CLI::Option* const all = recover->add_flag("--even-if-live", recovery_.even_if_live,
                                               "Rebuild even if the node's helper runs");
    recover->add_flag("--missing", recovery_.missing, "Rebuild what a live node has not")
        ->excludes(all);
    recover->add_flag("--detach", recovery_.detach,
                      "Start the recovery and do not wait for its end");
    AddDryRun(recover, &recovery_.dry_run);
    AddExample(recover, "ecpipe recover-node node-5 --delay 0");
  }

  void AddRecoveryCommands() {
    CLI::App* recovery =
        app_.add_subcommand("recovery", "List, show, pause, resume or cancel recoveries");
    recovery->require_subcommand(1);
    Add(recovery, "list", "List recoveries, newest first",
        [this] { return RunRecoveries(common_); });
    AddById(recovery, "show", "Show the progress, and which blocks wait and why",
            [this] { return RunShowRecovery(common_, recovery_id_); });
    const auto change = [&](const char* name, const char* help, RecoveryChange what) {
      AddById(recovery, name, help,
              [this, what] { return RunChangeRecovery(common_, recovery_id_, what, dry_run_); });
      AddDryRun(recovery->get_subcommand(name), &dry_run_);
    };
    change("pause", "Start no more repairs; running repairs go on", RecoveryChange::kPause);
    change("resume", "Go on with a paused recovery", RecoveryChange::kResume);
    change("cancel", "End a recovery and its running repairs", RecoveryChange::kCancel);
  }

  void AddById(CLI::App* parent, const std::string& name, const std::string& help,
               std::function<absl::Status()> command) {
    Add(parent, name, help, std::move(command))
        ->add_option("ID", recovery_id_, "Number of the recovery; see `ecpipe recovery list`")
        ->required();
  }

  void AddLimitsCommands() {
    CLI::App* limits = app_.add_subcommand("limits",
                                           "Show the limits on repairs, or set them. New\n"
                                           "limits hold at once and outlast restarts");
    limits->require_subcommand(0, 1);
    limits->callback([this, limits] {
      if (limits->get_subcommands().empty()) command_ = [this] { return RunLimits(common_); };
    });
    CLI::App* set = Add(limits, "set", "Change the limits that are named; others stay",
                        [this] { return RunSetLimits(common_, limits_); });
    CLI::App* reset = Add(limits, "reset", "Go back to the limits in the configurations", [this] {
      limits_.reset = true;
      return RunSetLimits(common_, limits_);
    });
    for (CLI::App* app : {set, reset}) {
      app->add_flag("--cluster", limits_.cluster, "For the cluster as a whole");
      AddNodes(app, "--node", &limits_.nodes, "For each of these nodes");
      AddDryRun(app, &limits_.dry_run);
    }
    set->add_option("--repair-mbit", limits_.repair_mbit,
                    "Most that repairs may send, in Mb/s; 0: no limit")
        ->type_name("MBIT")
        ->check(NumberFrom(0, kMostMbit));
    set->add_option("--max-running", limits_.max_running,
                    "Most repairs at once; only with --cluster")
        ->type_name("COUNT");
    set->add_option("--max-sessions", limits_.max_sessions,
                    "Most repairs in which the node takes part at once;\n"
                    "only with --node")
        ->type_name("COUNT");
    AddExample(set, "ecpipe limits set --cluster --repair-mbit 2000");
    AddExample(reset, "ecpipe limits reset --node node-1,node-2");
  }

  void AddClusterCommands() {
    CLI::App* probe = Add(&app_, "probe", "Measure the speed of the links between nodes",
                          [this] { return RunProbe(common_, probe_); });
    AddNodes(probe, "--nodes", &probe_.nodes,
             "Only links among these nodes; default: all live\n"
             "nodes");
    AddSize(probe, "--bytes", &probe_.bytes, "Bytes to send over each link; default: 8MiB");
    Add(&app_, "links",
        "Show the link speeds that plans use, as lines\n"
        "FROM TO MBIT, the format of [topology] links",
        [this] { return RunLinks(common_); });
    Add(&app_, "schemes", "List the schemes by which repairs can run",
        [this] { return RunSchemes(common_); });
    Add(&app_, "status", "Show nodes, their traffic, and recent repairs",
        [this] { return RunStatus(common_); });
  }

  void AddFileCommands() {
    CLI::App* encode = Add(&app_, "encode", "Encode a file into blocks and a manifest",
                           [this] { return RunEncode(common_, encode_); });
    encode->add_option("FILE", encode_.input, "File to encode")->type_name("PATH")->required();
    encode
        ->add_option("-o,--out", encode_.output_directory,
                     "Directory for the blocks and the manifest")
        ->type_name("DIR")
        ->required();
    encode
        ->add_option("--code", encode_.code,
                     "rs(n,k), rs-vandermonde(n,k), rs-legacy(n,k),\n"
                     "xor(n,k), hdfs:RS-6-3 (or another of HDFS's names),\n"
                     "qfs-rs(k,3), qfs-jerasure(6,3), rotated-rs(n,k) in\n"
                     "blocks of a multiple of 64KiB, lrc(k,groups,global).\n"
                     "n counts all blocks of a stripe, k its data blocks")
        ->type_name("CODE")
        ->capture_default_str();
    // A default_val() would be shown and would not reach the function that parses sizes.
    AddSize(encode, "--block-size", &encode_.block_bytes, "Bytes in a block")->default_str("64MiB");
    encode
        ->add_option("--name", encode_.name,
                     "How the ids of blocks begin; default: the name of\n"
                     "the file")
        ->type_name("NAME");
    encode
        ->add_option("--nodes", encode_.nodes,
                     "Nodes, at least n. Each block of a stripe goes to\n"
                     "another node, into DIR/NODE/, and the order\n"
                     "rotates from stripe to stripe")
        ->option_text("NODE,...")
        ->delimiter(',');
    encode->add_flag("--no-checksums", encode_.no_checksums,
                     "Write no checksum files. Helpers then do not\n"
                     "notice damaged bytes when they read blocks");
    AddDryRun(encode, &encode_.dry_run);
    AddExample(encode, "ecpipe encode f -o blocks --code \"rs(6,4)\" --block-size 8MiB");

    CLI::App* decode =
        Add(&app_, "decode", "Rebuild a file from its manifest and its blocks",
            [this] { return RunDecode(common_, manifest_, blocks_, decode_output_); });
    CLI::App* verify = Add(&app_, "verify", "Check blocks against their manifest and their code",
                           [this] { return RunVerify(common_, manifest_, blocks_); });
    for (CLI::App* app : {decode, verify}) {
      app->add_option("MANIFEST", manifest_, "Manifest file")->type_name("FILE")->required();
      app->add_option("--blocks", blocks_, "Directory that `ecpipe encode` wrote the blocks to")
          ->type_name("DIR")
          ->required();
    }
    decode->add_option("-o,--output", decode_output_, "File to write")
        ->type_name("FILE")
        ->required();
    AddExample(decode, "ecpipe decode blocks/f.manifest.json --blocks blocks -o f");
    AddExample(verify, "ecpipe verify blocks/f.manifest.json --blocks blocks");
  }

  CLI::App app_{
      "ECPipe rebuilds lost blocks of erasure-coded data by repair pipelining. This\n"
      "is its command for operators and for scripts."};
  std::function<absl::Status()> command_;
  CommonArguments common_;
  ReadArguments read_{.target = {}, .output = "-"};
  RepairArguments repair_;
  ProbeArguments probe_;
  LimitsArguments limits_;
  RecoverNodeArguments recovery_;
  uint64_t recovery_id_ = 0;
  bool dry_run_ = false;
  bool no_bytes_ = false;  // --length 0
  PlanFormat plan_format_ = PlanFormat::kText;
  EncodeArguments encode_;
  std::string manifest_;
  std::string blocks_;
  std::string decode_output_;
};

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::PrepareRpcExit();
  const int code = ecpipe::CommandLine().Run(argc, argv);
  ecpipe::AwaitRpcExit();
  return code;
}
