// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_stripes.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "coordinator/store/stripe_record.h"

namespace ecpipe {

absl::Status SqliteStripes::Load(SqliteDb* db) {
  ECPIPE_RETURN_IF_ERROR(nodes_.Load(db));
  return codes_.Load(db);
}

absl::StatusOr<StripeRow> SqliteStripes::Decode(SqliteDb* db, const SqliteStatement& row) {
  absl::StatusOr<Stripe> stripe = DecodeStripe(db, row);
  if (!stripe.ok()) {
    return Annotate(stripe.status(), "stripe \"" + std::string(row.Bytes(1)) +
                                         "\" is damaged in the catalog; load its manifest again");
  }
  return StripeRow{row.Int(0), *std::move(stripe)};
}

absl::StatusOr<Stripe> SqliteStripes::DecodeStripe(SqliteDb* db, const SqliteStatement& row) {
  Stripe stripe;
  stripe.stripe_id = row.Bytes(1);
  ECPIPE_ASSIGN_OR_RETURN(stripe.code, codes_.Name(db, row.Int(2)));
  stripe.block_bytes = static_cast<uint64_t>(row.Int(3));
  const StripeHeader header{stripe.stripe_id, stripe.code, stripe.block_bytes};
  ECPIPE_ASSIGN_OR_RETURN(std::vector<StripeMember> members, DecodeMembers(header, row.Bytes(4)));
  stripe.blocks.reserve(members.size());
  for (StripeMember& member : members) {
    ECPIPE_ASSIGN_OR_RETURN(std::string node, nodes_.Name(db, member.node_ref));
    stripe.blocks.push_back(
        {std::move(member.block_id), std::move(node), std::move(member.sha256)});
  }
  return stripe;
}

absl::StatusOr<int64_t> SqliteStripes::Writer::Insert(const Stripe& stripe) {
  ECPIPE_ASSIGN_OR_RETURN(const uint32_t code, codes_.Ref(stripe.code));
  ECPIPE_ASSIGN_OR_RETURN(const std::string members, Encode(stripe));
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement insert,
                          db_->Prepare("INSERT INTO stripes(stripe_id, code, block_bytes, members)"
                                       " VALUES(?1, ?2, ?3, ?4)"));
  insert.BindText(1, stripe.stripe_id);
  insert.Bind(2, code);
  insert.Bind(3, static_cast<int64_t>(stripe.block_bytes));
  insert.BindBlob(4, members);
  ECPIPE_RETURN_IF_ERROR(insert.Execute());
  return db_->last_insert_rowid();
}

absl::Status SqliteStripes::Writer::Update(int64_t row, const Stripe& stripe) {
  ECPIPE_ASSIGN_OR_RETURN(const uint32_t code, codes_.Ref(stripe.code));
  ECPIPE_ASSIGN_OR_RETURN(const std::string members, Encode(stripe));
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement update,
      db_->Prepare("UPDATE stripes SET code = ?2, block_bytes = ?3, members = ?4 WHERE row = ?1"));
  update.Bind(1, row);
  update.Bind(2, code);
  update.Bind(3, static_cast<int64_t>(stripe.block_bytes));
  update.BindBlob(4, members);
  return update.Execute();
}

absl::StatusOr<std::string> SqliteStripes::Writer::Encode(const Stripe& stripe) {
  std::vector<StripeMember> members;
  members.reserve(stripe.blocks.size());
  for (const BlockPlace& block : stripe.blocks) {
    ECPIPE_ASSIGN_OR_RETURN(const uint32_t node, nodes_.Ref(block.node));
    members.push_back({block.block_id, node, block.sha256});
  }
  return EncodeMembers({stripe.stripe_id, stripe.code, stripe.block_bytes}, members);
}

void SqliteStripes::Writer::Publish() {
  nodes_.Publish();
  codes_.Publish();
}

}  // namespace ecpipe
