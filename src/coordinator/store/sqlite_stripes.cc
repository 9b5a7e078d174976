// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_stripes.h"

#include <span>
#include <string_view>

#include "base/bytes/crc32c.h"
#include "base/status.h"

namespace ecpipe {
namespace {

void AppendNumber(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendText(std::string_view text, std::string* out) {
  AppendNumber(text.size(), 4, out);
  out->append(text);
}

absl::Status DamageOf(const Stripe& stripe, std::string_view why) {
  return absl::DataLossError("stripe \"" + stripe.stripe_id + "\" is damaged in the catalog (" +
                             std::string(why) + "); load its manifest again");
}

}  // namespace

uint32_t StripeCrc(const Stripe& stripe) {
  std::string bytes;
  AppendText(stripe.stripe_id, &bytes);
  AppendText(stripe.code, &bytes);
  AppendNumber(stripe.block_bytes, 8, &bytes);
  for (const BlockPlace& place : stripe.blocks) {
    AppendText(place.block_id, &bytes);
    AppendText(place.node, &bytes);
    AppendText(place.sha256, &bytes);
  }
  return Crc32c(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

absl::StatusOr<std::optional<StoredStripe>> StripeRows::Next() {
  if (!begun_) {
    ECPIPE_ASSIGN_OR_RETURN(at_row_, query_->Step());
  }
  begun_ = true;
  if (!at_row_) return std::nullopt;
  StoredStripe stored{query_->Int(0), {}, {}};
  Stripe& stripe = stored.stripe;
  const bool no_row = query_->IsNull(1);
  stripe.stripe_id = query_->Bytes(1);
  stripe.code = query_->Bytes(2);
  stripe.block_bytes = static_cast<uint64_t>(query_->Int(3));
  const int64_t crc = query_->Int(4);
  bool in_order = !query_->IsNull(5);
  do {
    const auto position = static_cast<int64_t>(stripe.blocks.size());
    in_order = in_order && query_->Int(5) == position && position < int64_t{kMaxStripeBlocks};
    if (stripe.blocks.size() <= kMaxStripeBlocks) {
      stripe.blocks.push_back({std::string(query_->Bytes(6)), std::string(query_->Bytes(7)),
                               std::string(query_->Bytes(8))});
    }
    ECPIPE_ASSIGN_OR_RETURN(at_row_, query_->Step());
  } while (at_row_ && query_->Int(0) == stored.number);
  if (no_row) {
    stripe.stripe_id = "number " + std::to_string(stored.number);
    stored.damage = DamageOf(stripe, "it has blocks, but no row of its own");
  } else if (!in_order) {
    stored.damage = DamageOf(stripe, "a block of it is missing or too many");
  } else if (crc != StripeCrc(stripe)) {
    stored.damage = DamageOf(stripe, "its checksum does not match");
  }
  return stored;
}

absl::Status StripeWriter::RemoveFrom(const char* statement, int64_t number) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement remove, db_->Prepare(statement));
  remove.Bind(1, number);
  return remove.Execute();
}

absl::Status StripeWriter::Remove(int64_t number) {
  ECPIPE_RETURN_IF_ERROR(RemoveFrom(kDeleteBlocks, number));
  return RemoveFrom("DELETE FROM stripes WHERE stripe = ?1", number);
}

absl::Status StripeWriter::Replace(int64_t number, const Stripe& stripe) {
  ECPIPE_RETURN_IF_ERROR(RemoveFrom(kDeleteBlocks, number));
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement store,
      db_->Prepare("INSERT INTO stripes(stripe, stripe_id, code, block_bytes, crc32c)"
                   " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(stripe) DO UPDATE SET"
                   " code = excluded.code, block_bytes = excluded.block_bytes,"
                   " crc32c = excluded.crc32c"));
  store.Bind(1, number);
  store.BindText(2, stripe.stripe_id);
  store.BindText(3, stripe.code);
  store.Bind(4, static_cast<int64_t>(stripe.block_bytes));
  store.Bind(5, StripeCrc(stripe));
  return store.Execute();
}

absl::Status StripeWriter::AddBlock(int64_t number, size_t position, const BlockPlace& place) {
  ECPIPE_ASSIGN_OR_RETURN(const int64_t node, NodeNumber(place.node));
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement add,
      db_->Prepare("INSERT INTO blocks(stripe, position, block_id, node, sha256)"
                   " VALUES(?1, ?2, ?3, ?4, ?5)"));
  add.Bind(1, number);
  add.Bind(2, static_cast<int64_t>(position));
  add.BindText(3, place.block_id);
  add.Bind(4, node);
  add.BindText(5, place.sha256);
  return add.Execute();
}

absl::Status StripeWriter::Move(int64_t number, size_t position, const Stripe& stripe) {
  ECPIPE_ASSIGN_OR_RETURN(const int64_t node, NodeNumber(stripe.blocks[position].node));
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement move,
      db_->Prepare("UPDATE blocks SET node = ?3 WHERE stripe = ?1 AND position = ?2"));
  move.Bind(1, number);
  move.Bind(2, static_cast<int64_t>(position));
  move.Bind(3, node);
  ECPIPE_RETURN_IF_ERROR(move.Execute());
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement sign,
                          db_->Prepare("UPDATE stripes SET crc32c = ?2 WHERE stripe = ?1"));
  sign.Bind(1, number);
  sign.Bind(2, StripeCrc(stripe));
  return sign.Execute();
}

absl::StatusOr<int64_t> StripeWriter::NodeNumber(const std::string& name) {
  const auto known = nodes_.find(name);
  if (known != nodes_.end()) return known->second;
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement add,
                          db_->Prepare("INSERT INTO nodes(node, name)"
                                       " SELECT coalesce(max(node), 0) + 1, ?1 FROM nodes"
                                       " WHERE true ON CONFLICT(name) DO NOTHING"));
  add.BindText(1, name);
  ECPIPE_RETURN_IF_ERROR(add.Execute());
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement find,
                          db_->Prepare("SELECT node FROM nodes WHERE name = ?1"));
  find.BindText(1, name);
  ECPIPE_ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) return absl::DataLossError("node \"" + name + "\" is missing in the catalog");
  const int64_t node = find.Int(0);
  nodes_.emplace(name, node);
  return node;
}

}  // namespace ecpipe
