// SPDX-License-Identifier: Apache-2.0
// Cleans text that comes from outside before it goes into protos, logs and terminals. The receiver
// of a proto refuses all of it if one string is not UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace ecpipe {

// Whether the text is UTF-8 without control characters (below 0x20, and 0x7f).
bool IsCleanText(std::string_view text);

// The text with a '?' for each byte that is a control character or not part of valid UTF-8.
std::string CleanText(std::string_view text);

// Whether the text is UTF-8; control characters may be in it.
bool IsUtf8(std::string_view text);

// In quotes, for a message that cites what somebody has written: \xNN for each byte that
// CleanText() would replace, and of a long text its beginning and its length.
std::string QuotedText(std::string_view text);

// A message of at most some `most_bytes`: what is too long loses its middle, because its end says
// what to do.
std::string ShortText(const std::string& text, size_t most_bytes);

// The longest prefix of at most `most_bytes` bytes that does not end within a character. For text
// that is not UTF-8 the prefix can be up to 3 bytes shorter than necessary.
std::string_view CutText(std::string_view text, size_t most_bytes);

}  // namespace ecpipe
