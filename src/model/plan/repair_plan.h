// SPDX-License-Identifier: Apache-2.0
// The plan model: how a repair is written down, before and after it is handed out.
//
// A RepairPlan is what a planner writes. It has lanes; a lane is a set of slices and the hops
// through which those slices flow. A hop runs on one node. It has inputs (at most one local block,
// and streams from other hops) and it keeps one accumulator, a *row*, for each failed block that
// flows through it:
//
//   row[r] = Σ over inputs of  coefficient[r] · bytes   where the input is a raw block
//            ⊕ bytes of row r                           where the input is a partial sum
//
// Where the code cuts blocks into s sub-blocks, failed block i has the rows i·s to i·s + s - 1, one
// for each, the grid runs over sub-blocks, and "raw block" above means each sub-block that is read.
//
// The requestor is a hop like the others: it has no block, and it stores rows instead of, or
// besides, sending them on. Edges point from the source of a stream to its user and name the rows
// that travel. A part is what one node is told to run: its hops, and for each edge the address
// of its peer and the token that both ends share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/plan/block_layout.h"
#include "model/plan/slice_grid.h"

namespace ecpipe {

using RepairId = uint64_t;
// 16 lower-case hexadecimal digits.
std::string RepairIdText(RepairId repair_id);

// A failed block's index in the request's list of failed blocks; with sub-blocks as above.
using Row = uint16_t;

// The limits of a plan: they bound what a peer can make a node allocate.
inline constexpr size_t kMaxRows = 64;        // failed blocks, or their sub-blocks, at once
inline constexpr size_t kMaxHopInputs = 256;  // a star over k <= 255 helpers
inline constexpr size_t kMaxHopOutputs = 256;
inline constexpr size_t kMaxLanes = 256;
inline constexpr size_t kMaxPartHops = 1024;
// One check row finds any single corrupt block, two also say which one it is (codec/check_rows.h).
inline constexpr uint32_t kMaxCheckRows = 2;

// See features.h.
enum class Feature : uint32_t {
  kSubBlocks = 1,  // codes that cut blocks into sub-blocks
  kRawRows = 2,    // streams of blocks as they are, which their receiver multiplies
  kCheckRows = 4,  // rows that the hop that stores compares with zero
};
class Features {
 public:
  bool Has(Feature feature) const { return (bits_ & static_cast<uint32_t>(feature)) != 0; }
  void Add(Feature feature) { bits_ |= static_cast<uint32_t>(feature); }
  Features Or(Features other) const { return Features(bits_ | other.bits_); }
  Features And(Features other) const { return Features(bits_ & other.bits_); }
  Features Without(Features other) const { return Features(bits_ & ~other.bits_); }
  bool empty() const { return bits_ == 0; }

  Features() = default;
  friend bool operator==(const Features&, const Features&) = default;

 private:
  explicit Features(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

// ---- What a planner writes ------------------------------------------------------------------

// A stream into a hop.
struct PlanInput {
  int from_hop = 0;       // index into the lane's hops, smaller than the index of this hop
  std::vector<Row> rows;  // the rows of the sender that the stream carries
  // Empty: the stream carries partial sums, which are added row by row. Otherwise it carries raw
  // rows, and for each of them in turn there is one coefficient for each row of the receiving hop.
  std::vector<uint8_t> coefficients;
};

// The scheme that reads a block itself, which is not lost.
inline constexpr char kDirectScheme[] = "direct";

struct PlanHop {
  std::string node;       // node id; for a requestor, its name
  int block_index = -1;   // its block in the stripe; -1: a relay or a requestor
  std::vector<Row> rows;  // the rows that it accumulates, ascending
  // For each of `sub_blocks` in turn one coefficient for each of `rows`; empty without a block.
  std::vector<uint8_t> coefficients;
  std::vector<PlanInput> inputs;
  std::vector<Row> stored_rows;            // rows that end here: this hop is a requestor
  std::vector<uint32_t> sub_blocks = {0};  // sub-blocks of its own block to read, ascending
};

struct PlanLane {
  LaneSlices slices;
  std::vector<PlanHop> hops;  // each hop comes after all hops that it takes input from
};

// The last rows of a plan can be check rows: sums of the blocks that helpers read, which are zero
// unless one of these blocks is corrupt. The hop that stores the rows of the failed blocks stores
// the check rows as well, and compares them with zero before it uses a slice.
struct ParityCheck {
  struct Source {
    int block_index = 0;
    std::string block_id;         // in a part
    std::string node;             // in a part
    std::vector<uint8_t> column;  // its coefficient in each check row

    friend bool operator==(const Source&, const Source&) = default;
  };
  uint32_t rows = 0;  // 0: none
  std::vector<Source> sources;

  friend bool operator==(const ParityCheck&, const ParityCheck&) = default;
};

struct RepairPlan {
  std::string scheme;
  SliceGrid grid;           // of sub-blocks
  std::vector<int> failed;  // block indices
  bool serial = false;      // every hop finishes a slice before it begins the next one
  std::vector<PlanLane> lanes;
  BlockLayout layout;
  ParityCheck check;

  size_t rows() const { return failed.size() * layout.sub_blocks + check.rows; }
};

// Checks the rules that every plan must keep: hops are in order, rows are known, there are as many
// coefficients as needed, each failed block is stored exactly once for each slice, no slice is on
// two lanes, and the limits hold. INTERNAL with the lane and hop otherwise: the planner has a bug.
[[nodiscard]] absl::Status ValidatePlan(const RepairPlan& plan);

// ---- What a node runs -----------------------------------------------------------------------

enum class TransportKind { kTcp, kRedis };
const char* TransportName(TransportKind kind);
// INVALID_ARGUMENT for a name that is not one of these.
absl::StatusOr<TransportKind> TransportNamed(const std::string& name);

using EdgeToken = std::array<uint8_t, 16>;

// Names one stream of one attempt; both ends know it, and no two streams share it.
struct EdgeId {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  uint32_t lane = 0;
  uint32_t from_hop = 0;
  uint32_t output = 0;  // which of the sending hop's outputs

  friend auto operator<=>(const EdgeId&, const EdgeId&) = default;
};

struct HopInput {
  EdgeId edge;
  EdgeToken token{};
  std::string address;  // the sender's data address for the part's transport, "host:port"
  std::string node;     // the sender's node id, for messages
  std::vector<Row> rows;
  std::vector<uint8_t> coefficients;  // as in PlanInput
};

struct HopOutput {
  EdgeId edge;
  EdgeToken token{};
  std::string node;  // the receiver's node id, for messages
  std::vector<Row> rows;
  bool measured = false;  // its time measures the link: both nodes have no other stream
};

struct LocalBlock {
  std::string block_id;
  uint64_t bytes = 0;                 // the length that it must have; a range beyond it reads zeros
  std::vector<uint8_t> coefficients;  // as in PlanHop
  std::vector<uint32_t> sub_blocks = {0};  // the sub-blocks to read, ascending
  // The SHA-256 that the whole block must have by its manifest, 64 hexadecimal digits. A store that
  // keeps it of its blocks compares it: another one is another block. Empty: not known.
  std::string sha256 = {};
};

struct HopSpec {
  uint32_t lane = 0;
  uint32_t hop = 0;
  LaneSlices slices;
  std::vector<Row> rows;
  std::optional<LocalBlock> block;
  std::vector<HopInput> inputs;
  std::vector<HopOutput> outputs;
  std::vector<Row> stored_rows;
};

// A failed block that the node of the part stores when it is rebuilt.
struct StoredBlock {
  Row row = 0;  // the row of its first sub-block
  std::string block_id;
  uint64_t bytes = 0;  // the length of the whole block; a part that stores must cover all of it
};

// Everything one node does for one attempt of one repair.
struct RepairPart {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  SliceGrid grid;
  BlockLayout layout;
  TransportKind transport = TransportKind::kTcp;
  bool serial = false;
  // For a helper that stores blocks: one entry for each failed block that the hops store. Empty if
  // the rows go to a caller.
  std::vector<StoredBlock> stores;
  // The check rows, which are the last of the stored rows. Only in parts that store rows.
  ParityCheck check;
  // The SHA-256 of each whole failed block, in the order of their rows: 64 hexadecimal digits, or
  // empty if it is not known. Blocks beyond the end of the list have no known SHA-256. Only in
  // parts that store rows.
  std::vector<std::string> sha256;
  // The part only measures a link: its blocks are made up, and it throws rows away.
  bool probe = false;
  bool background = false;  // nobody waits for the bytes, so reads that somebody waits for go first
  Features needs;           // without these nobody runs it
  std::vector<HopSpec> hops;

  // The SHA-256 of the failed block that has this row; empty: not known.
  std::string Sha256Of(Row row) const {
    const size_t block = row / layout.sub_blocks;
    return block < sha256.size() ? sha256[block] : "";
  }
};

// Checks a part that came over the network against the limits and rules above: INVALID_ARGUMENT
// with the hop and the reason. After that the engine indexes rows and coefficients without further
// checks.
[[nodiscard]] absl::Status ValidatePart(const RepairPart& part);

}  // namespace ecpipe
