// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/bytes/size_text.h"
#include "base/file_io.h"
#include "base/process/process_stats.h"
#include "base/status.h"
#include "base/thread.h"
#include "model/block_id.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/exit_codes.h"
#include "requestor/cli/plan_render.h"
#include "requestor/cli/progress.h"
#include "requestor/client/striped_file_client.h"
#include "requestor/files/striped_reader.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// Ctrl-C and SIGTERM end the repair in good order: the helpers are told, the temporary file goes. A
// second one ends the process.
class CancelOnSignal {
 public:
  // In the thread that repairs, before the requestor is made: threads that gRPC starts must inherit
  // the blocked signals.
  CancelOnSignal() : repairing_(::pthread_self()) {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    struct sigaction wake{};
    wake.sa_handler = [](int) {};  // it only interrupts
    ::sigaction(SIGUSR1, &wake, nullptr);
  }

  // Detached: the thread waits for signals until the process ends.
  void Watch(const std::shared_ptr<Requestor>& requestor) {
    auto watch = [signals = signals_, repairing = repairing_, cancelled = cancelled_,
                  watched = std::weak_ptr<Requestor>(requestor)] {
      int signal = 0;
      ::sigwait(&signals, &signal);
      cancelled->store(true);
      if (const std::shared_ptr<Requestor> running = watched.lock()) running->Cancel();
      // The repairing thread may be in a write that nobody reads, or about to be.
      constexpr timespec kWakeInterval = {0, 100'000'000};
      while (::sigtimedwait(&signals, nullptr, &kWakeInterval) < 0) {
        ::pthread_kill(repairing, SIGUSR1);
      }
      ProgressDisplay::EraseForExit();
      ::_exit(kExitCancelled);
    };
    absl::StatusOr<Thread> thread = Thread::Start(std::move(watch));
    if (thread.ok()) {
      thread->detach();
    } else {
      ::pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);  // they end the process, as they do any
    }
  }

  bool cancelled() const { return cancelled_->load(); }

 private:
  const pthread_t repairing_;
  sigset_t signals_{};
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

absl::StatusOr<std::shared_ptr<Requestor>> Connect(const CommonArguments& common,
                                                   double limit_mbit = 0) {
  RequestorOptions options;
  options.coordinator = common.coordinator;
  ECPIPE_ASSIGN_OR_RETURN(options.tls, TlsContext::CreateIfEnabled(common.tls));
  options.redis_password_file = common.redis_password_file;
  options.part.stall_timeout = FromSeconds(common.timeout_s);
  options.sha256_of_files = common.json;
  options.receive_bytes_per_second = BytesPerSecond(limit_mbit);
  return Requestor::Connect(std::move(options));
}

absl::Status WriteAll(int fd, std::span<const uint8_t> bytes, const CancelOnSignal& cancel) {
  while (!bytes.empty()) {
    if (cancel.cancelled()) return absl::CancelledError("the requestor cancelled the repair");
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EPIPE) {  // no peer of the repair: not UNAVAILABLE
      return absl::InternalError("the reader of standard output has closed it");
    }
    if (put < 0) return ErrnoStatus(errno, "write to standard output");
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

// `places` has one for each block.
void PrintJson(const RepairTarget& target, const RepairReport& report,
               const std::vector<std::string>& places, double cpu_seconds) {
  Json blocks = Json::array();
  for (size_t i = 0; i < target.block_ids.size(); ++i) {
    blocks.push_back(
        {{"block_id", target.block_ids[i]}, {"place", places[i]}, {"sha256", report.sha256[i]}});
  }
  const Json json{{"blocks", blocks},
                  {"scheme", report.scheme},
                  {"transport", report.transport},
                  {"seconds", report.seconds},
                  {"commit_seconds", report.commit_seconds},
                  {"offset", report.offset},
                  {"bytes", report.bytes},
                  {"block_bytes", report.block_bytes},
                  {"bytes_received", report.bytes_received},
                  {"cpu_seconds", cpu_seconds},
                  {"expected_seconds", report.cost.seconds},
                  {"busiest_link_bytes", report.cost.busiest_link_bytes},
                  {"total_bytes", report.cost.total_bytes},
                  {"attempts", report.attempts},
                  {"stripe_id", report.stripe_id},
                  {"repair_id", RepairIdText(report.repair_id)}};
  std::printf("%s\n", json.dump().c_str());
}

void PrintText(std::FILE* to, const RepairTarget& target, const RepairReport& report,
               const std::string& where) {
  const double rate = static_cast<double>(report.bytes) / std::max(report.seconds, 1e-9);
  std::fprintf(to, "%s: %s by %s over %s in %.3f s (%s/s) -> %s\n",
               absl::StrJoin(target.block_ids, ", ").c_str(), FormatSize(report.bytes).c_str(),
               report.scheme.c_str(), report.transport.c_str(), report.seconds,
               FormatSize(static_cast<uint64_t>(rate)).c_str(), where.c_str());
}

ProgressOptions ProgressOf(const RepairTarget& target, ProgressStyle style) {
  return {.label = absl::StrJoin(target.block_ids, ", "), .style = style};
}

absl::Status ToFiles(const CommonArguments& common, const RepairTarget& target,
                     const std::vector<std::string>& paths, double limit_mbit) {
  CancelOnSignal cancel;
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<Requestor> requestor, Connect(common, limit_mbit));
  cancel.Watch(requestor);
  std::optional<ProgressDisplay> display(ProgressOf(target, ProgressStyleOf(common)));
  const ProgressFn show = display->Callback();
  double cpu_seconds = 0;  // what the repair took, without what comes after the last byte
  const auto on_progress = [&](uint64_t verified_bytes, uint64_t total_bytes) {
    if (verified_bytes == total_bytes) cpu_seconds = ProcessCpuSeconds();
    show(verified_bytes, total_bytes);
  };
  const absl::StatusOr<RepairReport> report = requestor->RepairToFiles(target, paths, on_progress);
  display.reset();
  if (!report.ok()) return report.status();
  if (common.json) {
    PrintJson(target, *report, paths, cpu_seconds);
  } else {
    PrintText(stdout, target, *report, absl::StrJoin(paths, ", "));
  }
  return absl::OkStatus();
}

// Whether one target may have failed while others would not.
bool MayBeOneTarget(const absl::Status& failure) {
  return absl::IsAborted(failure) || absl::IsFailedPrecondition(failure) ||
         absl::IsUnavailable(failure) || absl::IsResourceExhausted(failure);
}

// By the catalog; empty: it does not know the block.
std::vector<std::string> PlacesOf(CoordinatorApi* coordinator,
                                  const std::vector<std::string>& block_ids) {
  std::vector<std::string> places;
  for (const std::string& id : block_ids) {
    const absl::StatusOr<BlockLocation> at = coordinator->LocateBlock(id);
    const size_t index = at.ok() ? static_cast<size_t>(at->block_index) : 0;
    const bool known = at.ok() && index < at->stripe.blocks.size();
    places.push_back(known ? at->stripe.blocks[index].node : "");
  }
  return places;
}

// After all together have failed: a bad target must not cost the others theirs. Blocks that have
// come to their nodes since `before` are stored.
absl::StatusOr<RepairReport> EachByItself(Requestor* requestor, const RepairTarget& target,
                                          const std::vector<std::string>& nodes,
                                          const std::vector<std::string>& before,
                                          const absl::Status& together) {
  const std::vector<std::string> now = PlacesOf(&requestor->coordinator(), target.block_ids);
  RepairReport all;
  std::string failures;
  size_t stored = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::string& id = target.block_ids[i];
    if (now[i] == nodes[i] && before[i] != nodes[i]) {
      ++stored;
      continue;
    }
    RepairTarget one = target;
    one.block_ids = {id};
    absl::StatusOr<RepairReport> report = requestor->RepairToNodes(one, {nodes[i]});
    if (absl::IsCancelled(report.status())) return report.status();
    if (!report.ok()) {
      failures += "; " + id + " on " + nodes[i] + ": " + std::string(report.status().message());
      continue;
    }
    ++stored;
    report->bytes += all.bytes;
    report->seconds += all.seconds;
    all = *std::move(report);
  }
  all.sha256.resize(target.block_ids.size());
  if (failures.empty()) return all;
  if (stored == 0) return together;
  return absl::AbortedError("stored " + std::to_string(stored) + " of " +
                            std::to_string(nodes.size()) + " blocks" + failures);
}

absl::Status ToNodes(const CommonArguments& common, const RepairTarget& target,
                     const std::vector<std::string>& nodes) {
  CancelOnSignal cancel;
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<Requestor> requestor, Connect(common));
  cancel.Watch(requestor);
  const bool several = nodes.size() > 1 && nodes.size() == target.block_ids.size();
  std::vector<std::string> before;
  if (several) before = PlacesOf(&requestor->coordinator(), target.block_ids);
  absl::StatusOr<RepairReport> ended = requestor->RepairToNodes(target, nodes);
  if (several && MayBeOneTarget(ended.status())) {
    ended = EachByItself(requestor.get(), target, nodes, before, ended.status());
  }
  ECPIPE_ASSIGN_OR_RETURN(const RepairReport report, std::move(ended));
  if (common.json) {
    PrintJson(target, report, nodes, ProcessCpuSeconds());
  } else {
    PrintText(stdout, target, report, absl::StrJoin(nodes, ", "));
  }
  return absl::OkStatus();
}

// Fills `out` with a range of a block, read as `target` says.
absl::Status ReadBlock(Requestor* requestor, RepairTarget target, const std::string& block_id,
                       uint64_t offset, std::span<uint8_t> out) {
  target.block_ids = {block_id};
  target.offset = offset;
  target.bytes = out.size();
  size_t taken = 0;
  const auto sink = [&](std::span<const uint8_t> bytes) -> absl::Status {
    if (bytes.size() > out.size() - taken) return absl::InternalError("more bytes than wanted");
    std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(taken));
    taken += bytes.size();
    return absl::OkStatus();
  };
  const absl::StatusOr<RepairReport> report = requestor->Read(target, sink);
  if (!report.ok()) return Annotate(report.status(), "block " + block_id);
  if (taken == out.size()) return absl::OkStatus();
  return absl::InternalError("block " + block_id + " brought " + std::to_string(taken) + " of " +
                             std::to_string(out.size()) + " bytes");
}

ReadBlockFn ReadBy(Requestor* requestor, RepairTarget options) {
  return [requestor, options = std::move(options)](const std::string& block_id, uint64_t offset,
                                                   std::span<uint8_t> out) {
    return ReadBlock(requestor, options, block_id, offset, out);
  };
}

absl::Status RunReadFile(const CommonArguments& common, const ReadArguments& arguments) {
  const bool to_stdout = arguments.output == "-";
  if (common.json && to_stdout) {
    return absl::InvalidArgumentError(
        "--json and the file's bytes cannot both go to standard output; use -o FILE");
  }
  if (!arguments.target.sha256.empty()) {
    return absl::InvalidArgumentError("--sha256 is for a block; leave it out for a file");
  }
  ::signal(SIGPIPE, SIG_IGN);
  CancelOnSignal cancel;
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<Requestor> requestor,
                          Connect(common, arguments.limit_mbit));
  cancel.Watch(requestor);
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(common.tls));
  ECPIPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<StripedFileClient> files,
      MakeStripedFileClient(common.coordinator, FromSeconds(common.timeout_s), tls));
  std::optional<AtomicFile> output;
  if (!to_stdout) {
    ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(arguments.output));
    output.emplace(std::move(file));
  }
  RepairTarget direct = arguments.target;
  direct.scheme = kDirectScheme;
  direct.verify.clear();
  DirectOrRebuilt blocks(ReadBy(requestor.get(), direct),
                         ReadBy(requestor.get(), arguments.target));
  const FileRange range{arguments.target.block_ids[0], arguments.target.offset,
                        arguments.target.bytes};
  uint64_t written = 0;
  const auto take = [&](std::span<const uint8_t> bytes) -> absl::Status {
    if (to_stdout) return WriteAll(STDOUT_FILENO, bytes, cancel);
    ECPIPE_RETURN_IF_ERROR(output->WriteAt(written, bytes));
    written += bytes.size();
    return absl::OkStatus();
  };
  const auto file_at = [&](uint64_t offset) {
    return files->FileAt(arguments.store, range.path, offset);
  };
  const auto read = [&](const std::string& block_id, uint64_t offset, std::span<uint8_t> out) {
    return blocks.Read(block_id, offset, out);
  };
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t taken, ReadFileRange(range, file_at, read, take));
  if (output) ECPIPE_RETURN_IF_ERROR(output->Commit());
  if (common.json) {
    std::printf("%s\n", Json{{"path", range.path},
                             {"offset", range.offset},
                             {"bytes", taken},
                             {"rebuilt_blocks", blocks.rebuilt()}}
                            .dump(2)
                            .c_str());
  } else if (!common.quiet) {
    std::fprintf(stderr, "read %s of %s; %zu blocks rebuilt\n", FormatSize(taken).c_str(),
                 range.path.c_str(), blocks.rebuilt());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRepair(const CommonArguments& common, const RepairArguments& arguments) {
  const RepairTarget& target = arguments.target;
  if (target.block_ids.size() > 1 && !(arguments.output.empty() && target.sha256.empty())) {
    return absl::InvalidArgumentError(
        "--output and --sha256 take a single block; for several use --output-dir or --to");
  }
  if (!arguments.hosts.empty()) {
    if (arguments.limit_mbit > 0) {
      return absl::InvalidArgumentError(
          "--limit-mbit limits what this command receives, and with --to helpers receive the "
          "bytes: limit those with `ecpipe limits set`");
    }
    if (target.sha256.empty()) return ToNodes(common, target, arguments.hosts);
    return absl::InvalidArgumentError(
        "--sha256 cannot be used with --to: the bytes go to the nodes and do not come here");
  }
  if (!arguments.output.empty()) {
    return ToFiles(common, target, {arguments.output}, arguments.limit_mbit);
  }
  std::vector<std::string> paths;
  for (const std::string& id : target.block_ids) {
    // Before it becomes a path.
    ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(id), "block id '" + id + "'"));
    paths.push_back(arguments.output_directory + "/" + id);
  }
  return ToFiles(common, target, paths, arguments.limit_mbit);
}

absl::Status RunRead(const CommonArguments& common, const ReadArguments& arguments) {
  if (!arguments.store.empty()) return RunReadFile(common, arguments);
  if (arguments.output != "-") {
    return ToFiles(common, arguments.target, {arguments.output}, arguments.limit_mbit);
  }
  if (common.json) {
    return absl::InvalidArgumentError(
        "--json and the block's bytes cannot both go to standard output; write the bytes to a file "
        "with -o FILE");
  }
  // Who takes the bytes may end first: an error then, so that the coordinator hears of the end.
  ::signal(SIGPIPE, SIG_IGN);
  CancelOnSignal cancel;
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<Requestor> requestor,
                          Connect(common, arguments.limit_mbit));
  cancel.Watch(requestor);
  // On a terminal the bytes are what people look at.
  const bool shown = ::isatty(STDOUT_FILENO) == 0;
  std::optional<ProgressDisplay> display(
      ProgressOf(arguments.target, shown ? ProgressStyleOf(common) : ProgressStyle::kNone));
  const auto to_stdout = [&cancel](std::span<const uint8_t> bytes) {
    return WriteAll(STDOUT_FILENO, bytes, cancel);
  };
  const absl::StatusOr<RepairReport> report =
      requestor->Read(arguments.target, to_stdout, display->Callback());
  display.reset();
  if (!report.ok()) return report.status();
  if (!common.quiet) PrintText(stderr, arguments.target, *report, "standard output");
  return absl::OkStatus();
}

absl::Status RunReadNothing(const CommonArguments& common, const ReadArguments& arguments) {
  const std::string& name = arguments.target.block_ids[0];
  if (arguments.store.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<Requestor> requestor, Connect(common));
    ECPIPE_RETURN_IF_ERROR(
        requestor->coordinator().Explain({.block_ids = {name}}, {}, "ecpipe read").status());
  } else {
    ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                            TlsContext::CreateIfEnabled(common.tls));
    ECPIPE_ASSIGN_OR_RETURN(
        const std::unique_ptr<StripedFileClient> files,
        MakeStripedFileClient(common.coordinator, FromSeconds(common.timeout_s), tls));
    ECPIPE_RETURN_IF_ERROR(files->FileAt(arguments.store, name, 0).status());
  }
  if (arguments.output != "-") {
    ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(arguments.output));
    ECPIPE_RETURN_IF_ERROR(file.Commit());
  }
  if (!common.quiet) std::fprintf(stderr, "%s: 0 bytes -> %s\n", name.c_str(),
                                  arguments.output == "-" ? "standard output"
                                                          : arguments.output.c_str());
  return absl::OkStatus();
}

absl::Status NothingToRebuild() {
  return absl::InvalidArgumentError(
      "--length 0: in no bytes there is nothing to rebuild; leave it out for all bytes");
}

absl::Status RunPlan(const CommonArguments& common, const RepairTarget& target,
                     const std::vector<std::string>& hosts, PlanFormat format) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<Requestor> requestor, Connect(common));
  ECPIPE_ASSIGN_OR_RETURN(const ExplainedRepair repair,
                          requestor->coordinator().Explain(target, hosts, "ecpipe plan"));
  const std::string text = format == PlanFormat::kJson  ? PlanAsJson(repair)
                           : format == PlanFormat::kDot ? PlanAsDot(repair)
                                                        : PlanAsText(repair);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace ecpipe
