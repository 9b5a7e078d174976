// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/utf8_text.h"

#include <gtest/gtest.h>

namespace ecpipe::utf8_text_test {
namespace {

TEST(Utf8Text, TakesEveryLengthOfCharacter) {
  for (const char* text : {"", "plain", "Größe", "\xe6\x95\xb0", "\xf0\x9f\x98\x80", "\xc2\x80",
                           "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsCleanText(text)) << text;
    EXPECT_EQ(CleanText(text), text);
  }
}

TEST(Utf8Text, MarksEachBadByte) {
  const std::pair<std::string, const char*> cases[] = {
      {"a\nb\x7f", "a?b?"},
      {std::string("a\0b", 3), "a?b"},
      {"\x80", "?"},
      {"\xc0\xaf", "??"},            // a longer form than need be
      {"\xe0\x9f\xbf", "???"},       // the same
      {"\xed\xa0\x80", "???"},       // a surrogate
      {"\xf4\x90\x80\x80", "????"},  // above U+10FFFF
      {"\xf8\x88\x80\x80\x80", "?????"},
      {"x\xe6\x95", "x??"},  // cut short
      {"\xc3(", "?("},
  };
  for (const auto& [text, clean] : cases) {
    EXPECT_FALSE(IsCleanText(text)) << clean;
    EXPECT_EQ(CleanText(text), clean);
  }
}

TEST(Utf8Text, CutsBetweenCharacters) {
  const std::string text = "a\xc3\xb6\xf0\x9f\x98\x80z";  // of 1, 2, 4 and 1 bytes
  const size_t expected[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};
  for (size_t most = 0; most < std::size(expected); ++most) {
    EXPECT_EQ(CutText(text, most).size(), expected[most]) << most;
    EXPECT_TRUE(IsCleanText(CutText(text, most)));
  }
}

TEST(Utf8Text, CutsWhatIsNoUtf8Too) {
  const std::string continuations(10, '\x80');
  EXPECT_EQ(CutText(continuations, 6).size(), 3u);
  EXPECT_EQ(CutText(continuations, 2).size(), 0u);
}

TEST(Utf8Text, QuotesWhatSomebodyHasWritten) {
  EXPECT_EQ(QuotedText("a\n\xff\xc3\xb6\x1b[31m"), "'a\\x0a\\xff\xc3\xb6\\x1b[31m'");
  const std::string quoted = QuotedText(std::string(5'000'000, 'a'));
  EXPECT_EQ(quoted, "'" + std::string(200, 'a') + "'... (5000000 bytes)");
}

TEST(Utf8Text, ALongMessageLosesItsMiddle) {
  EXPECT_EQ(ShortText("short", 100), "short");
  const std::string message = "m.json: " + std::string(5'000'000, 'a') + ": do that";
  const std::string shown = ShortText(message, 100);
  EXPECT_LT(shown.size(), 130u);
  EXPECT_EQ(shown.rfind("m.json: aaa", 0), 0u);
  EXPECT_NE(shown.find("bytes)... "), std::string::npos) << shown;
  EXPECT_TRUE(shown.ends_with("aaa: do that")) << shown;
}

TEST(Utf8Text, KnowsUtf8WithControlCharacters) {
  EXPECT_TRUE(IsUtf8("a\n\t\xc3\xb6"));
  EXPECT_FALSE(IsUtf8("\xff\xfe"));
  EXPECT_FALSE(IsUtf8("a\xc3"));
}

}  // namespace
}  // namespace ecpipe::utf8_text_test
