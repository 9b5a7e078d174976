// SPDX-License-Identifier: Apache-2.0
// ecpipe: the operator's and requestor's command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "common/process_stats.h"
#include "common/sha256.h"
#include "common/size_text.h"
#include "common/status.h"
#include "requestor/commands.h"
#include "requestor/exit_codes.h"
#include "rpc/rpc_exit.h"

namespace ecpipe {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 failed (I/O, damaged bytes, a check that did not hold); 2 bad arguments "
    "or\n"
    "manifest; 3 no such block or file; 4 coordinator or helper unreachable or silent; 5 fewer\n"
    "survivors than the code needs, or a node that may not take a block; 130 interrupted.";

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
    app_.footer(kExitCodes);
    app_.fallthrough();  // global options may follow the subcommand
    app_.add_option("--coordinator", common_.coordinator, "Address of the coordinator, host:port")
        ->envname("ECPIPE_COORDINATOR")
        ->capture_default_str();
    AddTlsOptions();
    app_.add_flag("--json", common_.json, "Print the result as JSON");
    app_.add_flag("-q,--quiet", common_.quiet, "Show no progress");
    app_.add_option("--timeout", common_.timeout_s,
                    "Give up after so many seconds without progress or answer")
        ->check(CLI::Range(0.05, 86400.0))
        ->capture_default_str();
    app_.set_version_flag("--version", std::string("ecpipe ") + ECPIPE_VERSION);
    AddRepairCommands();
    AddRecoveryCommands();
    AddLimitsCommands();
    AddCatalogCommands();
    AddFileCommands();
  }

  int Run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? kExitOk : kExitUsage;
    }
    const absl::Status status = command_();
    if (!status.ok()) std::fprintf(stderr, "ecpipe: %s\n", StatusText(status).c_str());
    return ExitCodeFor(status);
  }

 private:
  void AddTlsOptions() {
    app_.add_option("--tls-ca", common_.tls.ca, "TLS: certificate of the cluster's CA, PEM")
        ->envname("ECPIPE_TLS_CA");
    app_.add_option("--tls-cert", common_.tls.certificate, "TLS: your certificate")
        ->envname("ECPIPE_TLS_CERT");
    app_.add_option("--tls-key", common_.tls.key, "TLS: its key")->envname("ECPIPE_TLS_KEY");
  }

  CLI::App* Add(CLI::App* parent, const std::string& name, const std::string& help,
                std::function<absl::Status()> command) {
    CLI::App* app = parent->add_subcommand(name, help);
    app->callback([this, command = std::move(command)] { command_ = command; });
    return app;
  }

  enum class Blocks { kOne, kSeveral };

  static void AddTarget(CLI::App* app, RepairTarget& target, Blocks blocks) {
    const bool one = blocks == Blocks::kOne;
    app->add_option("BLOCK", target.block_ids, one ? "Block id" : "Block ids, of one stripe")
        ->required()
        ->expected(one ? 1 : -1);  // -1: any number, from 1 on
    AddSize(app, "--offset", &target.offset, "First byte of the range");
    AddSize(app, "--length", &target.bytes,
            "Length of the range; default: to the end of the block");
    app->add_option(
        "--scheme", target.scheme,
        "conventional, ppr, rp, rp-weighted, rp-rack, rp-cyclic, rp-all, mixed, direct (a "
        "block that is there), pipe-b, pipe-s (baselines), or auto");
    app->add_option("--rack", target.rack, "Rack of this host, for rp-rack and auto");
    app->add_option("--transport", target.transport, "tcp or redis");
    app->add_option("--verify", target.verify,
                    "none; parity: read one more survivor, and use nothing that does not fit "
                    "together; locate: two more, and name the corrupt block");
    AddSliceSize(app, &target.slice_bytes);
  }

  static void AddHosts(CLI::App* app, std::vector<std::string>* nodes) {
    app->add_option("--to", *nodes, "Nodes whose helpers store the blocks, one for each")
        ->delimiter(',')
        ->allow_extra_args(false);  // what follows is a block again
  }

  static void AddSliceSize(CLI::App* app, uint32_t* bytes) {
    const auto positive = [](const std::string& text) {
      return text == "0" ? std::string("a slice must not be 0 bytes long") : std::string();
    };
    AddSize(app, "--slice-size", bytes, "Bytes of a slice, e.g. 32KiB")->check(positive);
  }

  // Helpers that have sent all wait for the requestor to empty its sockets, and take it for dead
  // after ten seconds: half a MiB of each of a dozen helpers must be through by then.
  static constexpr double kLeastLimitMbit = 10;

  static void AddLimit(CLI::App* app, double* mbit) {
    app->add_option("--limit-mbit", *mbit,
                    "Receive at most so many megabits a second, so that other traffic of this host "
                    "has the rest; default: no limit")
        ->check(CLI::Range(kLeastLimitMbit, 1e6));
  }

  static void AddSha256(CLI::App* app, RepairTarget& target) {
    const auto check = [](const std::string& text) {
      return IsSha256Hex(text) ? "" : "must be 64 lower-case hexadecimal digits";
    };
    app->add_option("--sha256", target.sha256,
                    "Fail unless the bytes have this SHA-256; a block's that the catalog knows is "
                    "compared anyway")
        ->expected(1)
        ->check(check);
  }

  void AddRepairCommands() {
    CLI::App* read = Add(&app_, "read", "Read a block or a range of it, rebuilding what is lost",
                         [this] { return RunRead(common_, read_); });
    AddTarget(read, read_.target, Blocks::kOne);
    read->add_option("-o,--output", read_.output, "A file, or - for standard output")
        ->capture_default_str();
    AddLimit(read, &read_.limit_mbit);
    AddSha256(read, read_.target);

    CLI::App* repair =
        Add(&app_, "repair",
            "Rebuild blocks of a stripe, into files or on nodes, each whole and durable or not at "
            "all",
            [this] { return RunRepair(common_, repair_); });
    AddTarget(repair, repair_.target, Blocks::kSeveral);
    CLI::Option_group* where = repair->add_option_group("Where to");
    where->add_option("-o,--output", repair_.output, "The file of a single block");
    where->add_option("-d,--output-dir", repair_.output_directory,
                      "A directory, in which each block is named after its id");
    AddHosts(where, &repair_.to);
    where->require_option(1);
    AddLimit(repair, &repair_.limit_mbit);
    AddSha256(repair, repair_.target);

    CLI::App* plan =
        Add(&app_, "plan", "Show how blocks would be rebuilt now, without doing it", [this] {
          const bool json = common_.json && plan_format_ == PlanFormat::kText;
          return RunPlan(common_, repair_.target, repair_.to,
                         json ? PlanFormat::kJson : plan_format_);
        });
    AddTarget(plan, repair_.target, Blocks::kSeveral);
    AddHosts(plan, &repair_.to);
    const std::map<std::string, PlanFormat> formats{
        {"text", PlanFormat::kText}, {"json", PlanFormat::kJson}, {"dot", PlanFormat::kDot}};
    plan->add_option("--format", plan_format_, "text, json, or dot for Graphviz")
        ->transform(CLI::CheckedTransformer(formats));
  }

  void AddRecoveryCommands() {
    CLI::App* recover =
        Add(&app_, "recover-node",
            "Rebuild all that a lost node had, on other nodes. The coordinator goes on when this "
            "command ends. Of a DataNode: show how far HDFS has rebuilt what it had",
            [this] { return RunRecoverNode(common_, recovery_, even_if_live_, detach_); });
    recover->add_option("NODE", recovery_.node, "The node whose blocks are lost")->required();
    recover->add_option("--to", recovery_.to, "Nodes that take blocks; default: all that live")
        ->delimiter(',')
        ->allow_extra_args(false);
    recover->add_option("--scheme", recovery_.scheme, "As for repair; default: auto");
    recover
        ->add_option("--policy", recovery_.policy,
                     "How helpers and requestors are chosen; default: balanced")
        ->check(CLI::IsMember({"in-order", "least-recent", "balanced"}));
    AddSliceSize(recover, &recovery_.slice_bytes);
    recover->add_option("--transport", recovery_.transport, "tcp or redis");
    recover
        ->add_option("--streams", recovery_.streams_per_node,
                     "Repairs in which a node takes part at once")
        ->check(CLI::Range(1, 1000));
    recover
        ->add_option("--delay", recovery_.delay_seconds,
                     "How many seconds the node must have been silent before anything is rebuilt, "
                     "since most come back; default: the coordinator's, 120")
        ->check(CLI::Range(0.0, 604800.0));
    recover->add_flag("--even-if-live", even_if_live_, "Rebuild although the node is there");
    recover->add_flag("--detach", detach_, "Do not wait for the end");

    CLI::App* recovery = app_.add_subcommand("recovery", "Show and steer recoveries of nodes");
    recovery->require_subcommand(1);
    Add(recovery, "list", "List recoveries, the newest first",
        [this] { return RunRecoveries(common_); });
    AddById(recovery, "show", "Show progress, and what is blocked and why",
            [this] { return RunShowRecovery(common_, recovery_id_); });
    const auto change = [&](const char* name, const char* help, RecoveryChange what) {
      AddById(recovery, name, help,
              [this, what] { return RunChangeRecovery(common_, recovery_id_, what); });
    };
    change("pause", "Start no more repairs; those under way go on", RecoveryChange::kPause);
    change("resume", "Go on with a paused recovery", RecoveryChange::kResume);
    change("cancel", "End it, and the repairs under way", RecoveryChange::kCancel);
  }

  void AddById(CLI::App* parent, const std::string& name, const std::string& help,
               std::function<absl::Status()> command) {
    Add(parent, name, help, std::move(command))
        ->add_option("ID", recovery_id_, "The recovery's number")
        ->required();
  }

  void AddLimitsCommands() {
    CLI::App* limits = app_.add_subcommand(
        "limits", "Show the limits of repairs that hold, or set them: at once, and over restarts");
    limits->require_subcommand(0, 1);
    limits->callback([this, limits] {
      if (limits->get_subcommands().empty()) command_ = [this] { return RunLimits(common_); };
    });
    CLI::App* set = Add(limits, "set", "Change limits; those that are not named stay",
                        [this] { return RunSetLimits(common_, limits_); });
    CLI::App* reset = Add(limits, "reset", "Back to what the configurations say", [this] {
      limits_.reset = true;
      return RunSetLimits(common_, limits_);
    });
    for (CLI::App* app : {set, reset}) {
      app->add_flag("--cluster", limits_.cluster, "The limits of all together");
      app->add_option("--node", limits_.nodes, "The limits of each of these nodes")
          ->delimiter(',')
          ->allow_extra_args(false);
    }
    set->add_option("--repair-mbit", limits_.repair_mbit,
                    "What repairs may send, in Mb/s; 0: as much as they can");
    set->add_option("--max-running", limits_.max_running, "Of the cluster: repairs at once");
    set->add_option("--max-sessions", limits_.max_sessions,
                    "Of a node: repairs in which it takes part at once");
  }

  void AddCatalogCommands() {
    CLI::App* catalog = app_.add_subcommand("catalog", "Load and read the coordinator's catalog");
    catalog->require_subcommand(1);
    CLI::App* load = Add(catalog, "load", "Add the stripes of manifests",
                         [this] { return RunCatalogLoad(common_, manifests_); });
    load->add_option("MANIFEST", manifests_, "Manifests that encode has written")->required();
    CLI::App* list = Add(catalog, "list", "List stripes by id",
                         [this] { return RunCatalogList(common_, list_after_, list_limit_); });
    list->add_option("--after", list_after_, "Begin after this stripe id");
    list->add_option("--limit", list_limit_, "At most so many")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    CLI::App* locate =
        Add(catalog, "locate", "Show the stripe of a block, and where its blocks are",
            [this] { return RunCatalogLocate(common_, located_block_); });
    locate->add_option("BLOCK", located_block_, "Block id")->required();
    CLI::App* probe = Add(&app_, "probe", "Measure the speed of the links between nodes",
                          [this] { return RunProbe(common_, probe_); });
    probe->add_option("--nodes", probe_.nodes, "Only among these; default: all that live")
        ->delimiter(',')
        ->allow_extra_args(false);
    AddSize(probe, "--bytes", &probe_.bytes, "Bytes over each link; default: 8MiB");
    Add(&app_, "links",
        "Show the speeds that plans are made with, as FROM TO MBIT: what topology.links takes",
        [this] { return RunLinks(common_); });
    Add(&app_, "status", "Show nodes, their traffic, and repairs",
        [this] { return RunStatus(common_); });
  }

  void AddFileCommands() {
    CLI::App* encode = Add(&app_, "encode", "Cut a file into coded blocks and write a manifest",
                           [this] { return RunEncode(common_, encode_); });
    encode->add_option("FILE", encode_.input, "The file to encode")->required();
    encode->add_option("-o,--out", encode_.output_directory, "Directory for blocks and manifest")
        ->required();
    encode
        ->add_option("--code", encode_.code,
                     "rs(n,k), rs-vandermonde(n,k), xor(n,k), lrc(k,groups,global) or "
                     "rotated-rs(n,k), whose blocks are multiples of 64KiB")
        ->default_val("rs(14,10)");
    AddSize(encode, "--block-size", &encode_.block_bytes, "Bytes of a block, e.g. 64MiB")
        ->default_val("64MiB");
    encode->add_option("--name", encode_.name, "Begins block ids; default: the file's name");
    encode
        ->add_option("--nodes", encode_.nodes,
                     "Node ids, comma-separated: blocks go to OUT/<node>/, rotated by stripe")
        ->delimiter(',');
    encode->add_flag("--no-checksums", encode_.no_checksums,
                     "Write no checksum files, by which helpers find damaged bytes as they read");

    CLI::App* decode =
        Add(&app_, "decode", "Rebuild the file from a manifest and its blocks",
            [this] { return RunDecode(common_, manifest_, blocks_, decode_output_); });
    CLI::App* verify = Add(&app_, "verify", "Check blocks against their manifest and their code",
                           [this] { return RunVerify(common_, manifest_, blocks_); });
    for (CLI::App* app : {decode, verify}) {
      app->add_option("MANIFEST", manifest_, "The manifest")->required();
      app->add_option("--blocks", blocks_, "Directory of the blocks")->required();
    }
    decode->add_option("-o,--output", decode_output_, "The file to write")->required();
  }

  CLI::App app_{"ECPipe: read and rebuild erasure-coded blocks by repair pipelining."};
  std::function<absl::Status()> command_;
  CommonArguments common_;
  ReadArguments read_{.target = {}, .output = "-"};
  RepairArguments repair_;
  std::string located_block_;
  ProbeArguments probe_;
  LimitsArguments limits_;
  RecoverySpec recovery_;
  bool even_if_live_ = false;
  bool detach_ = false;
  uint64_t recovery_id_ = 0;
  PlanFormat plan_format_ = PlanFormat::kText;
  std::vector<std::string> manifests_;
  std::string list_after_;
  uint32_t list_limit_ = 100;
  EncodeArguments encode_;
  std::string manifest_;
  std::string blocks_;
  std::string decode_output_;
};

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  const int code = ecpipe::CommandLine().Run(argc, argv);
  ecpipe::AwaitRpcExit();
  return code;
}
