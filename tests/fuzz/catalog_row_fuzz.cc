// SPDX-License-Identifier: Apache-2.0
// Rows of the catalog that no ecpipe has written, or that a disk has damaged: what was stored, or
// DATA_LOSS. The packed column of the losses likewise.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/check.h"
#include "coordinator/sources/sqlite_losses.h"
#include "coordinator/store/sqlite_catalog.h"
#include "fuzz_input.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {
namespace {

const std::map<int64_t, std::string> kNodes = {{3, "n3"}, {4, "n4"}, {5, "n5"}};

// A catalog, and a connection past it to the same file.
struct Catalogs {
  ScratchDirectory directory;
  std::unique_ptr<SqliteCatalog> catalog = SqliteCatalog::Open(Path(), {}).value();
  std::unique_ptr<SqliteDb> rows =
      SqliteDb::Open(Path(), {.sync = CommitSync::kProcessSafe}).value();

  std::string Path() const { return directory.File("catalog.db"); }
};

void RunOn(SqliteDb* db, const std::string& sql) { ECPIPE_CHECK(db->Run(sql.c_str()).ok()); }

// Stores blocks of stripe 1; the places as the catalog should read them, by position.
std::map<int64_t, BlockPlace> StoreBlocks(SqliteDb* db, FuzzInput* input) {
  std::map<int64_t, BlockPlace> places;
  std::set<std::string> ids;
  auto add = db->Prepare("INSERT INTO blocks VALUES(1, ?1, ?2, ?3, ?4)");
  ECPIPE_CHECK(add.ok());
  while (!input->empty() && places.size() < 20) {
    const auto shape = input->Take<uint8_t>();
    const auto position = shape < 8 ? int64_t{shape} - 4 : static_cast<int64_t>(places.size());
    const auto node = static_cast<int64_t>(input->Take<uint8_t>() % 4 + 3);  // 6 is nobody
    const auto text = [&] {
      const std::span<const uint8_t> bytes = input->Bytes(input->Take<uint8_t>() % 64);
      return std::string(bytes.begin(), bytes.end());
    };
    BlockPlace place{text(), node == 6 ? "" : kNodes.at(node), shape % 2 == 0 ? "" : text()};
    if (places.contains(position) || !ids.insert(place.block_id).second) continue;
    add->Bind(1, position);
    add->BindText(2, place.block_id);
    add->Bind(3, node);
    add->BindText(4, place.sha256);
    ECPIPE_CHECK(add->Execute().ok());
    places.emplace(position, std::move(place));
  }
  return places;
}

void CheckRows(Catalogs* catalogs, Stripe stripe, const std::string& bytes) {
  SqliteDb* const db = catalogs->rows.get();
  FuzzInput input(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const auto crc_error = input.Take<uint8_t>() % 4 == 0 ? 1 : 0;
  RunOn(db,
        "BEGIN; DELETE FROM blocks; DELETE FROM stripes; DELETE FROM nodes;"
        "INSERT INTO nodes VALUES(3, 'n3'), (4, 'n4'), (5, 'n5')");
  const std::map<int64_t, BlockPlace> places = StoreBlocks(db, &input);
  for (const auto& [position, place] : places) stripe.blocks.push_back(place);
  {
    auto store = db->Prepare("INSERT INTO stripes VALUES(1, ?1, ?2, ?3, ?4)");
    ECPIPE_CHECK(store.ok());
    store->BindText(1, stripe.stripe_id);
    store->BindText(2, stripe.code);
    store->Bind(3, static_cast<int64_t>(stripe.block_bytes));
    store->Bind(4, int64_t{StripeCrc(stripe)} + crc_error);
    ECPIPE_CHECK(store->Execute().ok());
  }
  RunOn(db, "COMMIT");

  const bool good = crc_error == 0 && !places.empty() && places.begin()->first == 0 &&
                    places.rbegin()->first == static_cast<int64_t>(places.size()) - 1;
  SqliteCatalog& catalog = *catalogs->catalog;
  const auto found = catalog.FindStripe(stripe.stripe_id);
  ECPIPE_CHECK(good ? found.ok() && *found == stripe : absl::IsDataLoss(found.status()));
  for (const BlockPlace& place : stripe.blocks) {
    const auto location = catalog.FindBlock(place.block_id);
    ECPIPE_CHECK(good ? location.ok() && location->stripe == stripe
                      : absl::IsDataLoss(location.status()));
    const auto page = catalog.ListNode(place.node, "", 10);
    ECPIPE_CHECK(page.ok() && !page->blocks.empty() == !place.node.empty());
    for (const NodeBlock& block : page->blocks) ECPIPE_CHECK(block.stripe.ok() == good);
  }
  const auto listed = catalog.List("", 10);
  const bool is_listed = good && !stripe.stripe_id.empty();
  ECPIPE_CHECK(listed.ok() && listed->stripes.size() == (is_listed ? 1 : 0));
  // Damaged or not, a stripe with nothing wrong can be put again.
  if (catalog.Put({stripe}).ok())
    ECPIPE_CHECK(catalog.FindStripe(stripe.stripe_id).value() == stripe);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ecpipe::Catalogs catalogs;
  ecpipe::FuzzInput input(data, size);
  ecpipe::Stripe stripe;
  stripe.stripe_id = input.Text();
  stripe.code = input.Text();
  stripe.block_bytes = input.Take<uint64_t>();
  const std::string bytes = input.Rest();
  ecpipe::CheckRows(&catalogs, stripe, bytes);
  if (const auto blocks = ecpipe::UnpackBlocks(bytes); blocks.ok()) {
    ECPIPE_CHECK(ecpipe::PackBlocks(ecpipe::BlockList(*blocks)) == bytes);
  } else {
    ECPIPE_CHECK(absl::IsDataLoss(blocks.status()));
  }
  return 0;
}
