// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/utf8_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace ecpipe {
namespace {

constexpr size_t kLongestCharacter = 4;

uint8_t ByteAt(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

bool Continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

// Bytes of the printable character that the text begins with; 0 when there is none. RFC 3629: no
// longer form than need be, no surrogates, nothing above U+10FFFF.
size_t CharacterBytes(std::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < bytes) return 0;
  const uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (ByteAt(text, 1) < least || ByteAt(text, 1) > most) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if (!Continues(ByteAt(text, i))) return 0;
  }
  return bytes;
}

}  // namespace

bool IsCleanText(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) {
      clean.push_back('?');
    } else {
      clean.append(text.substr(0, bytes));
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return clean;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = ByteAt(text, 0) < 0x80 ? 1 : CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string QuotedText(std::string_view text) {
  constexpr size_t kMostBytes = 200;  // a line or two of a terminal
  std::string quoted = "'";
  for (std::string_view rest = CutText(text, kMostBytes); !rest.empty();) {
    const size_t bytes = CharacterBytes(rest);
    if (bytes == 0) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", ByteAt(rest, 0));
      quoted += escaped;
    } else {
      quoted.append(rest.substr(0, bytes));
    }
    rest.remove_prefix(std::max<size_t>(bytes, 1));
  }
  quoted += "'";
  if (text.size() <= kMostBytes) return quoted;
  return quoted + "... (" + std::to_string(text.size()) + " bytes)";
}

std::string ShortText(const std::string& text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  size_t end = text.size() - most_bytes / 4;
  while (end < text.size() && Continues(ByteAt(text, end))) ++end;
  const std::string_view begin = CutText(text, most_bytes - most_bytes / 4);
  return std::string(begin) + " ...(" + std::to_string(end - begin.size()) + " bytes)... " +
         text.substr(end);
}

std::string_view CutText(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  size_t end = most_bytes;
  while (end > 0 && most_bytes - end < kLongestCharacter - 1 && Continues(ByteAt(text, end))) --end;
  return text.substr(0, end);
}

}  // namespace ecpipe
