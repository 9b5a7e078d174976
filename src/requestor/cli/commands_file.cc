// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/bytes/size_text.h"
#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/progress.h"
#include "requestor/files/block_verifier.h"
#include "requestor/files/file_coder.h"
#include "requestor/files/manifest.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

void PrintReport(const VerifyReport& report) {
  size_t good = 0;
  size_t blocks = 0;
  for (const VerifiedStripe& stripe : report.stripes) {
    for (const VerifiedBlock& block : stripe.blocks) {
      ++blocks;
      if (block.state == BlockState::kOk) {
        ++good;
        continue;
      }
      std::printf("%s on %s: %s%s%s\n", block.block_id.c_str(),
                  block.node.empty() ? "-" : block.node.c_str(), BlockStateName(block.state),
                  block.detail.empty() ? "" : ", ", block.detail.c_str());
    }
    if (stripe.parity != ParityState::kMatches) {
      std::printf("%s: parity %s\n", stripe.stripe_id.c_str(), ParityStateName(stripe.parity));
    }
  }
  std::printf("%zu of %zu blocks are good; %s\n", good, blocks,
              report.ok() ? "all parity matches" : "NOT all is well");
}

Json ReportJson(const VerifyReport& report) {
  Json json{{"ok", report.ok()}, {"stripes", Json::array()}};
  for (const VerifiedStripe& stripe : report.stripes) {
    Json stripe_json{{"stripe_id", stripe.stripe_id},
                     {"parity", ParityStateName(stripe.parity)},
                     {"blocks", Json::array()}};
    for (const VerifiedBlock& block : stripe.blocks) {
      stripe_json["blocks"].push_back({{"block_id", block.block_id},
                                       {"node", block.node},
                                       {"state", BlockStateName(block.state)},
                                       {"detail", block.detail}});
    }
    json["stripes"].push_back(stripe_json);
  }
  return json;
}

ProgressOptions ProgressOf(const CommonArguments& common, const std::string& name) {
  return {.label = name, .style = ProgressStyleOf(common)};
}

absl::StatusOr<Manifest> EncodeShown(const CommonArguments& common, EncodeOptions options) {
  ProgressDisplay display(ProgressOf(common, options.name));
  options.progress = display.Callback();
  return EncodeFile(options);
}

// What encoding would write.
absl::Status ShowEncoding(const CommonArguments& common, const EncodeOptions& options) {
  ECPIPE_ASSIGN_OR_RETURN(const Manifest manifest, PlanEncoding(options));
  size_t blocks = 0;
  for (const ManifestStripe& stripe : manifest.stripes) blocks += stripe.blocks.size();
  return PrintEffects(common,
                      std::vector<std::string>{absl::StrFormat(
                          "would write %d blocks of %s in %d stripes of %s, and %s/%s", blocks,
                          FormatSize(manifest.block_bytes), manifest.stripes.size(), manifest.code,
                          options.output_dir, ManifestFileName(manifest.name))});
}

absl::Status DecodeShown(const CommonArguments& common, const Manifest& manifest,
                         DecodeOptions options) {
  ProgressDisplay display(ProgressOf(common, manifest.name));
  options.progress = display.Callback();
  return DecodeFile(manifest, options);
}

absl::StatusOr<VerifyReport> VerifyShown(const CommonArguments& common, const Manifest& manifest,
                                         const std::string& blocks_dir) {
  ProgressDisplay display(ProgressOf(common, manifest.name));
  return VerifyBlocks(manifest, blocks_dir, display.Callback());
}

}  // namespace

absl::Status RunEncode(const CommonArguments& common, const EncodeArguments& arguments) {
  EncodeOptions options;
  options.input_path = arguments.input;
  options.output_dir = arguments.output_directory;
  options.code = arguments.code;
  options.block_bytes = arguments.block_bytes;
  options.nodes = arguments.nodes;
  options.checksum_files = arguments.no_checksums ? ChecksumFiles::kOmit : ChecksumFiles::kWrite;
  options.name = arguments.name.empty() ? std::filesystem::path(arguments.input).filename().string()
                                        : arguments.name;
  if (arguments.no_checksums) {
    std::fputs(
        "ecpipe: warning: without checksum files a range of a block is compared with nothing: "
        "damaged or exchanged blocks give wrong bytes; only whole blocks are compared\n",
        stderr);
  }
  if (arguments.dry_run) return ShowEncoding(common, options);
  ECPIPE_ASSIGN_OR_RETURN(const Manifest manifest, EncodeShown(common, std::move(options)));
  const std::string path = arguments.output_directory + "/" + ManifestFileName(manifest.name);
  if (common.json) {
    const Json json{{"manifest", path},
                    {"file_bytes", manifest.file_bytes},
                    {"code", manifest.code},
                    {"block_bytes", manifest.block_bytes},
                    {"stripes", manifest.stripes.size()}};
    std::printf("%s\n", json.dump().c_str());
  } else {
    std::printf("%s in %zu stripes of %s, %s a block -> %s\n",
                FormatSize(manifest.file_bytes).c_str(), manifest.stripes.size(),
                manifest.code.c_str(), FormatSize(manifest.block_bytes).c_str(), path.c_str());
  }
  return absl::OkStatus();
}

absl::Status RunDecode(const CommonArguments& common, const std::string& manifest_path,
                       const std::string& blocks, const std::string& output) {
  ECPIPE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(manifest_path));
  DecodeOptions options;
  options.blocks_dir = blocks;
  options.output_path = output;
  ECPIPE_RETURN_IF_ERROR(DecodeShown(common, manifest, std::move(options)));
  if (common.json) {
    std::printf("%s\n", Json{{"output", output},
                             {"file_bytes", manifest.file_bytes},
                             {"file_sha256", manifest.file_sha256}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%s, SHA-256 as in the manifest -> %s\n", FormatSize(manifest.file_bytes).c_str(),
                output.c_str());
  }
  return absl::OkStatus();
}

absl::Status RunVerify(const CommonArguments& common, const std::string& manifest_path,
                       const std::string& blocks) {
  ECPIPE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(manifest_path));
  ECPIPE_ASSIGN_OR_RETURN(const VerifyReport report, VerifyShown(common, manifest, blocks));
  if (common.json) {
    std::printf("%s\n", ReportJson(report).dump(2).c_str());
  } else {
    PrintReport(report);
  }
  return report.ok() ? absl::OkStatus() : absl::DataLossError("the blocks do not all verify");
}

}  // namespace ecpipe
