// SPDX-License-Identifier: Apache-2.0
#include "net/frame.h"

#include <algorithm>
#include <cstring>

#include "base/bytes/crc32c.h"
#include "base/bytes/little_endian.h"
#include "base/bytes/utf8_text.h"
#include "base/check.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

constexpr uint8_t kHelloMagic[4] = {'E', 'C', 'P', 'H'};
constexpr uint8_t kFrameMagic[4] = {'E', 'C', 'P', 'F'};
constexpr uint8_t kWireVersion = 1;

// Both formats begin with a magic and the version, and end with the CRC32C of all before it.
bool Intact(std::span<const uint8_t> bytes, const uint8_t (&magic)[4]) {
  return std::memcmp(bytes.data(), magic, sizeof magic) == 0 && bytes[4] == kWireVersion &&
         GetLittleEndian<uint32_t>(bytes, bytes.size() - 4) ==
             Crc32c(bytes.first(bytes.size() - 4));
}

void Seal(std::span<uint8_t> out, const uint8_t (&magic)[4]) {
  std::memcpy(out.data(), magic, sizeof magic);
  out[4] = kWireVersion;
  PutLittleEndian(out, out.size() - 4, Crc32c(out.first(out.size() - 4)));
}

absl::Status Differs(const char* field, uint64_t got, uint64_t expected) {
  return absl::DataLossError(std::string("frame refused: ") + field + " is " + std::to_string(got) +
                             ", expected " + std::to_string(expected));
}

}  // namespace

void EncodeHello(const Hello& hello, std::span<uint8_t, kHelloBytes> out) {
  std::fill(out.begin(), out.end(), uint8_t{0});
  PutLittleEndian(out, 8, hello.edge.repair_id);
  PutLittleEndian(out, 16, hello.edge.attempt);
  PutLittleEndian(out, 20, hello.edge.lane);
  PutLittleEndian(out, 24, hello.edge.from_hop);
  PutLittleEndian(out, 28, hello.edge.output);
  std::copy(hello.token.begin(), hello.token.end(), out.begin() + 32);
  Seal(out, kHelloMagic);
}

absl::StatusOr<Hello> DecodeHello(std::span<const uint8_t, kHelloBytes> bytes) {
  const bool reserved_is_zero = bytes[5] == 0 && bytes[6] == 0 && bytes[7] == 0;
  if (!Intact(bytes, kHelloMagic) || !reserved_is_zero) {
    return absl::InvalidArgumentError(
        "the connection did not begin with an ECPipe hello; the peer is another program or another "
        "version");
  }
  Hello hello;
  hello.edge.repair_id = GetLittleEndian<uint64_t>(bytes, 8);
  hello.edge.attempt = GetLittleEndian<uint32_t>(bytes, 16);
  hello.edge.lane = GetLittleEndian<uint32_t>(bytes, 20);
  hello.edge.from_hop = GetLittleEndian<uint32_t>(bytes, 24);
  hello.edge.output = GetLittleEndian<uint32_t>(bytes, 28);
  std::copy_n(bytes.begin() + 32, hello.token.size(), hello.token.begin());
  return hello;
}

void EncodeFrameHeader(const FrameHeader& header, std::span<uint8_t, kFrameHeaderBytes> out) {
  out[5] = static_cast<uint8_t>(header.type);
  PutLittleEndian(out, 6, header.row);
  PutLittleEndian(out, 8, header.repair_id);
  PutLittleEndian(out, 16, header.attempt);
  PutLittleEndian(out, 20, header.lane);
  PutLittleEndian(out, 24, header.slice_index);
  PutLittleEndian(out, 28, header.payload_bytes);
  PutLittleEndian(out, 32, header.payload_crc32c);
  Seal(out, kFrameMagic);
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(std::span<const uint8_t, kFrameHeaderBytes> bytes) {
  if (!Intact(bytes, kFrameMagic)) {
    return absl::DataLossError("frame refused: its header is damaged");
  }
  FrameHeader header;
  const uint8_t type = bytes[5];
  if (type != static_cast<uint8_t>(FrameType::kSlice) &&
      type != static_cast<uint8_t>(FrameType::kError)) {
    return absl::DataLossError("frame refused: its type " + std::to_string(type) + " is unknown");
  }
  header.type = static_cast<FrameType>(type);
  header.row = GetLittleEndian<uint16_t>(bytes, 6);
  header.repair_id = GetLittleEndian<uint64_t>(bytes, 8);
  header.attempt = GetLittleEndian<uint32_t>(bytes, 16);
  header.lane = GetLittleEndian<uint32_t>(bytes, 20);
  header.slice_index = GetLittleEndian<uint32_t>(bytes, 24);
  header.payload_bytes = GetLittleEndian<uint32_t>(bytes, 28);
  header.payload_crc32c = GetLittleEndian<uint32_t>(bytes, 32);
  const size_t limit = header.type == FrameType::kSlice ? kMaxSliceBytes : kMaxErrorTextBytes;
  if (header.payload_bytes > limit) {
    return absl::DataLossError("frame refused: its payload of " +
                               std::to_string(header.payload_bytes) + " bytes is over the limit");
  }
  return header;
}

absl::Status CheckExpected(const FrameHeader& header, const FrameHeader& expected) {
  if (header.repair_id != expected.repair_id) {
    return Differs("repair id", header.repair_id, expected.repair_id);
  }
  if (header.attempt != expected.attempt) {
    return Differs("attempt", header.attempt, expected.attempt);
  }
  if (header.lane != expected.lane) return Differs("lane", header.lane, expected.lane);
  if (header.type == FrameType::kError) return absl::OkStatus();
  if (header.slice_index != expected.slice_index) {
    return Differs("slice index", header.slice_index, expected.slice_index);
  }
  if (header.row != expected.row) return Differs("row", header.row, expected.row);
  if (header.payload_bytes != expected.payload_bytes) {
    return Differs("payload length", header.payload_bytes, expected.payload_bytes);
  }
  return absl::OkStatus();
}

absl::Status CheckPayload(const FrameHeader& header, std::span<const uint8_t> payload) {
  if (Crc32c(payload) == header.payload_crc32c) return absl::OkStatus();
  return absl::DataLossError("frame refused: the checksum of slice " +
                             std::to_string(header.slice_index) + " does not match its bytes");
}

absl::Status ErrorFromFrame(const FrameHeader& header, std::span<const uint8_t> payload) {
  std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  std::string fault_node;
  if (!text.empty()) {
    const auto fault_bytes = static_cast<uint8_t>(text[0]);  // substr() stays within the text
    fault_node = CleanText(text.substr(1, fault_bytes));
    text = text.substr(std::min<size_t>(text.size(), 1u + fault_bytes));
  }
  // It goes on into logs and protos, whatever the peer has written.
  text = CleanText(text);
  // A peer cannot make an error look like success, nor invent a code.
  const bool known = header.row >= 1 && header.row <= 16;
  return WithFault(
      absl::Status(known ? static_cast<absl::StatusCode>(header.row) : absl::StatusCode::kUnknown,
                   text),
      fault_node.empty() ? kFaultUnknown : fault_node);
}

std::string EncodeErrorFrame(const FrameHeader& stream, const absl::Status& status) {
  ECPIPE_CHECK(!status.ok());
  const std::string fault_node = FaultOf(status).substr(0, UINT8_MAX);
  std::string text(1, static_cast<char>(fault_node.size()));
  text += fault_node;
  text += CutText(std::string(status.message()), kMaxErrorTextBytes - text.size());
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(text.data()),
                                         text.size());
  FrameHeader header = stream;
  header.type = FrameType::kError;
  header.row = static_cast<Row>(status.code());
  header.payload_bytes = static_cast<uint32_t>(text.size());
  header.payload_crc32c = Crc32c(payload);
  std::string frame(kFrameHeaderBytes, '\0');
  EncodeFrameHeader(header, std::span<uint8_t, kFrameHeaderBytes>(
                                reinterpret_cast<uint8_t*>(frame.data()), kFrameHeaderBytes));
  return frame + text;
}

bool SameToken(const EdgeToken& a, const EdgeToken& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace ecpipe
