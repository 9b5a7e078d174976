// SPDX-License-Identifier: Apache-2.0
// Text that comes from outside and goes on into protos, logs and terminals. A proto with a string
// that is no UTF-8 is refused by whoever receives it, all of it.
#pragma once

#include <string>
#include <string_view>

namespace ecpipe {

// Whether the text is UTF-8 without control characters (below 0x20, and 0x7f).
bool IsCleanText(std::string_view text);

// The text with a '?' for each byte that is a control character or not part of valid UTF-8.
std::string CleanText(std::string_view text);

// The longest beginning of at most `most_bytes` bytes that does not end within a character. Of text
// that is no UTF-8 at most 3 bytes more are lost than need be.
std::string_view CutText(std::string_view text, size_t most_bytes);

}  // namespace ecpipe
