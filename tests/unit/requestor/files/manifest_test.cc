// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/bytes/sha256.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::manifest_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

const std::string kDigest(64, 'a');

// Two stripes of rs(3,2) with blocks of 10 bytes.
Manifest Example() {
  Manifest manifest{"photo", 25, kDigest, "rs-cauchy(3,2)", 10, {}};
  for (const char* stripe_id : {"photo-s00000", "photo-s00001"}) {
    ManifestStripe stripe{stripe_id, {}};
    for (const char* suffix : {"-b00", "-b01", "-b02"}) {
      stripe.blocks.push_back({std::string(stripe_id) + suffix, "node-1", kDigest});
    }
    manifest.stripes.push_back(stripe);
  }
  return manifest;
}

// The complaint about the example after a change.
std::string ErrorAfter(const std::function<void(Json&)>& change) {
  Json json = Json::parse(ManifestText(Example()));
  change(json);
  const auto manifest = ParseManifest(json.dump(), "m.json");
  EXPECT_EQ(manifest.status().code(), absl::StatusCode::kInvalidArgument) << json.dump();
  const std::string message(manifest.status().message());
  EXPECT_THAT(message, StartsWith("m.json: "));
  return message;
}

TEST(Sha256, KnowsItsVectors) {
  EXPECT_EQ(Sha256().FinishHex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 sha256;
  for (const uint8_t byte : {'a', 'b', 'c'}) sha256.Update({&byte, 1});
  EXPECT_EQ(sha256.FinishHex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Manifest, SurvivesARoundTrip) {
  const auto manifest = ParseManifest(ManifestText(Example()), "m.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(*manifest, Example());
  EXPECT_TRUE(ValidateManifest(Example()).ok());
}

TEST(Manifest, SurvivesAFile) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("photo.manifest.json");
  ASSERT_TRUE(WriteManifest(Example(), path).ok());
  EXPECT_EQ(ReadManifest(path).value(), Example());
  EXPECT_TRUE(absl::IsNotFound(ReadManifest(scratch.File("none")).status()));
}

TEST(Manifest, AnEmptyFileHasNoStripes) {
  Manifest manifest = Example();
  manifest.file_bytes = 0;
  manifest.stripes.clear();
  EXPECT_EQ(ParseManifest(ManifestText(manifest), "m.json").value(), manifest);
}

TEST(Manifest, BlocksNeedNoNode) {
  Manifest manifest = Example();
  manifest.stripes[1].blocks[2].node = "";
  EXPECT_EQ(ParseManifest(ManifestText(manifest), "m.json").value(), manifest);
}

TEST(Manifest, TheTextIsTheDocumentedOne) {
  Manifest manifest = Example();
  manifest.stripes.resize(1);
  manifest.stripes[0].blocks.resize(1);
  const char* expected = R"json({
 "format": "ecpipe-manifest-1",
 "name": "photo",
 "file_bytes": 25,
 "file_sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
 "code": "rs-cauchy(3,2)",
 "block_bytes": 10,
 "stripes": [
  {
   "stripe_id": "photo-s00000",
   "blocks": [
    {
     "block_id": "photo-s00000-b00",
     "node": "node-1",
     "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    }
   ]
  }
 ]
}
)json";
  EXPECT_EQ(ManifestText(manifest), expected);
}

TEST(Manifest, RefusesMissingAndUnknownKeys) {
  for (const char* key :
       {"format", "name", "file_bytes", "file_sha256", "code", "block_bytes", "stripes"}) {
    EXPECT_THAT(ErrorAfter([&](Json& json) { json.erase(key); }),
                HasSubstr("the document: the key '" + std::string(key) + "' is missing"));
  }
  EXPECT_THAT(ErrorAfter([](Json& json) { json["comment"] = 1; }),
              HasSubstr("the document: unknown key \"comment\""));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][1].erase("stripe_id"); }),
              HasSubstr("/stripes/1: the key 'stripe_id' is missing"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][1]["x"] = 1; }),
              HasSubstr("/stripes/1: unknown key \"x\""));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][0]["blocks"][2].erase("sha256"); }),
              HasSubstr("/stripes/0/blocks/2: the key 'sha256' is missing"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][0]["blocks"][2]["Node"] = ""; }),
              HasSubstr("/stripes/0/blocks/2: unknown key \"Node\""));
}

TEST(Manifest, RefusesWrongTypes) {
  for (const char* key : {"format", "name", "file_sha256", "code"}) {
    EXPECT_THAT(ErrorAfter([&](Json& json) { json[key] = 7; }),
                HasSubstr("/" + std::string(key) + ": must be a string"));
  }
  for (const char* key : {"file_bytes", "block_bytes"}) {
    for (const Json& value : {Json("10"), Json(-1), Json(10.0), Json(nullptr), Json(true)}) {
      EXPECT_THAT(ErrorAfter([&](Json& json) { json[key] = value; }),
                  HasSubstr("/" + std::string(key) + ": must be an integer of at least 0"));
    }
  }
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"] = "x"; }),
              HasSubstr("/stripes: must be an array"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][0] = 3; }),
              HasSubstr("/stripes/0: must be an object"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][0]["blocks"] = Json::object(); }),
              HasSubstr("/stripes/0/blocks: must be an array"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][0]["blocks"][1]["node"] = nullptr; }),
              HasSubstr("/stripes/0/blocks/1/node: must be a string"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json = Json::array(); }),
              HasSubstr("the document: must be an object"));
}

TEST(Manifest, RefusesWrongValues) {
  const auto set = [](const char* key, const Json& value) {
    return ErrorAfter([&](Json& json) { json[key] = value; });
  };
  EXPECT_THAT(set("format", "ecpipe-manifest-2"), HasSubstr("\"ecpipe-manifest-1\""));
  EXPECT_THAT(set("name", "../photo"), HasSubstr("/name: "));
  EXPECT_THAT(set("name", ""), HasSubstr("/name: "));
  EXPECT_THAT(set("file_sha256", std::string(63, 'a')), HasSubstr("/file_sha256: must be"));
  EXPECT_THAT(set("file_sha256", std::string(64, 'A')), HasSubstr("/file_sha256: must be"));
  EXPECT_THAT(set("file_sha256", std::string(64, 'g')), HasSubstr("/file_sha256: must be"));
  EXPECT_THAT(set("code", "msr(3,2)"), HasSubstr("/code: 'msr(3,2)': unknown code family"));
  EXPECT_THAT(set("block_bytes", 0), HasSubstr("/block_bytes: must be 1 to"));
  EXPECT_THAT(set("block_bytes", uint64_t{1} << 41), HasSubstr("/block_bytes: must be 1 to"));
  EXPECT_THAT(set("block_bytes", UINT64_MAX), HasSubstr("/block_bytes: must be 1 to"));
}

TEST(Manifest, RefusesAFileLengthThatTheStripesDoNotFit) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{20}, uint64_t{41}, UINT64_MAX}) {
    EXPECT_THAT(ErrorAfter([&](Json& json) { json["file_bytes"] = bytes; }),
                HasSubstr("/stripes: there are 2 stripes, but a file of"));
  }
}

TEST(Manifest, RefusesAWrongCountOfBlocks) {
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][1]["blocks"].erase(2); }),
              HasSubstr("/stripes/1/blocks: 2 blocks, but a stripe of rs-cauchy(3,2) has 3"));
  EXPECT_THAT(ErrorAfter([](Json& json) {
                Json extra = json["stripes"][1]["blocks"][0];
                extra["block_id"] = "new";
                json["stripes"][1]["blocks"].push_back(extra);
              }),
              HasSubstr("/stripes/1/blocks: 4 blocks"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["code"] = "rs(4,2)"; }),
              HasSubstr("/stripes/0/blocks: 3 blocks"));
}

TEST(Manifest, RefusesIdsThatComeTwice) {
  EXPECT_THAT(ErrorAfter([](Json& json) {
                json["stripes"][1]["blocks"][2]["block_id"] = "photo-s00000-b01";
              }),
              HasSubstr("/stripes/1/blocks/2/block_id: 'photo-s00000-b01' comes twice"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["stripes"][1]["stripe_id"] = "photo-s00000"; }),
              HasSubstr("/stripes/1/stripe_id: 'photo-s00000' comes twice"));
}

TEST(Manifest, RefusesIdsThatAreNoFileNames) {
  for (const char* bad : {"../x", "a/b", ".x", "a b"}) {
    EXPECT_THAT(ErrorAfter([&](Json& json) { json["stripes"][0]["blocks"][1]["block_id"] = bad; }),
                HasSubstr("/stripes/0/blocks/1/block_id: "));
    EXPECT_THAT(ErrorAfter([&](Json& json) { json["stripes"][0]["blocks"][1]["node"] = bad; }),
                HasSubstr("/stripes/0/blocks/1/node: "));
    EXPECT_THAT(ErrorAfter([&](Json& json) { json["stripes"][0]["stripe_id"] = bad; }),
                HasSubstr("/stripes/0/stripe_id: "));
  }
}

std::string ParseError(const std::string& text) {
  const auto manifest = ParseManifest(text, "m.json");
  EXPECT_EQ(manifest.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(manifest.status().message());
}

TEST(Manifest, SaysWhereTheJsonIsBroken) {
  EXPECT_THAT(ParseError("{\n \"format\": oops\n}"), HasSubstr("line 2, column 12"));
  EXPECT_THAT(ParseError(""), HasSubstr("line 1"));
  EXPECT_THAT(ParseError("{} {}"), HasSubstr("line 1"));
  EXPECT_THAT(ParseError("{\"name\": \"\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(ParseError(ManifestText(Example()).substr(0, 300)), HasSubstr("line"));
  EXPECT_THAT(ParseError("// no comments\n{}"), HasSubstr("line 1"));
}

TEST(Manifest, RefusesAKeyThatComesTwice) {
  EXPECT_THAT(ParseError(R"({"name": "a", "name": "b"})"),
              HasSubstr("the key \"name\" comes twice"));
  std::string text = ManifestText(Example());
  text.insert(text.find("\"node\""), "\"node\": \"other\", ");
  EXPECT_THAT(ParseError(text), HasSubstr("the key \"node\" comes twice"));
}

TEST(Manifest, RefusesDeepNestingAtOnce) {
  EXPECT_THAT(ParseError(std::string(1'000'000, '[')), HasSubstr("nested too deeply"));
}

TEST(Manifest, RefusesAnAbsurdCountOfBlocks) {
  EXPECT_THAT(ErrorAfter([](Json& json) {
                json["stripes"] = Json::array();
                for (size_t s = 0; s <= kMaxManifestBlocks / 3; ++s) json["stripes"].push_back(0);
              }),
              HasSubstr("/stripes: more than 400000 blocks"));
}

TEST(Manifest, RefusesAFileThatIsTooLong) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("huge.json");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, kMaxManifestBytes + 1);  // a hole, no blocks on disk
  const auto manifest = ReadManifest(path);
  EXPECT_EQ(manifest.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(manifest.status().message()), HasSubstr("over the limit"));
}

TEST(Manifest, DoesNotWriteWhatItCouldNotRead) {
  const ScratchDirectory scratch;
  Manifest manifest = Example();
  manifest.stripes[0].blocks[0].block_id = "\xff/";
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateManifest(manifest)));
  EXPECT_TRUE(absl::IsInvalidArgument(WriteManifest(manifest, scratch.File("m.json"))));
  EXPECT_FALSE(std::filesystem::exists(scratch.File("m.json")));
}

}  // namespace
}  // namespace ecpipe::manifest_test
