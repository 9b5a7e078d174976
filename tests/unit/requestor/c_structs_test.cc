// SPDX-License-Identifier: Apache-2.0
#include "requestor/c_structs.h"

#include <gtest/gtest.h>

#include <limits>
#include <new>
#include <string>
#include <system_error>

#include "common/utf8_text.h"

namespace ecpipe {
namespace {

template <typename Struct>
Struct Sized() {
  Struct sized{};
  sized.struct_bytes = sizeof sized;
  return sized;
}

// A struct as a later version has it.
struct Grown {
  size_t struct_bytes;
  uint64_t old;
  uint64_t added;
};
struct First {
  size_t struct_bytes;
  uint64_t old;
};

TEST(KnownStruct, OfAnOlderCallerHasDefaults) {
  // What lies behind the caller's struct is not looked at.
  const Grown memory{sizeof(First), 7, 99};
  const auto known = Known(&memory, "struct", sizeof(First));
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(known->old, 7u);
  EXPECT_EQ(known->added, 0u);
}

TEST(KnownStruct, OfANewerCallerIsTakenWithoutWishesOnly) {
  Grown newer{sizeof(Grown), 7, 0};
  const auto* as_first = reinterpret_cast<const First*>(&newer);
  const auto known = Known(as_first, "struct", sizeof(First));
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(known->old, 7u);
  newer.added = 1;
  EXPECT_EQ(Known(as_first, "struct", sizeof(First)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(KnownStruct, SizesThatCannotBeAreRefused) {
  for (const size_t bytes : {size_t{0}, size_t{1}, sizeof(First) - 1, kMostStructBytes + 1,
                             std::numeric_limits<size_t>::max()}) {
    const First first{bytes, 0};
    const auto known = Known(&first, "options", sizeof(First));
    EXPECT_EQ(known.status().code(), absl::StatusCode::kInvalidArgument) << bytes;
    EXPECT_NE(known.status().message().find("sizeof(ecpipe_options)"), std::string::npos);
  }
  EXPECT_FALSE(Known<First>(nullptr, "options", sizeof(First)).ok());
}

TEST(KnownStruct, FillsWhatBothKnow) {
  Grown memory{sizeof(First), 0, 55};
  FillKnown(Grown{0, 3, 4}, &memory);
  EXPECT_EQ(memory.struct_bytes, sizeof(First));
  EXPECT_EQ(memory.old, 3u);
  EXPECT_EQ(memory.added, 55u);  // not the caller's struct
}

TEST(StatusCodes, TheCanonicalOnesStayAndOthersAreInternal) {
  for (int code = -3; code < 100; ++code) {
    const bool canonical = code >= ECPIPE_OK && code <= ECPIPE_UNAUTHENTICATED;
    EXPECT_EQ(CodeOf(static_cast<absl::StatusCode>(code)), canonical ? code : ECPIPE_INTERNAL);
  }
  EXPECT_EQ(CodeOf(absl::StatusCode::kAborted), ECPIPE_ABORTED);
  EXPECT_EQ(CodeOf(absl::StatusCode::kPermissionDenied), ECPIPE_PERMISSION_DENIED);
  EXPECT_EQ(CodeOf(absl::StatusCode::kUnauthenticated), ECPIPE_UNAUTHENTICATED);
}

TEST(Errors, MessagesAreCutBetweenCharacters) {
  const std::string euro = "\xe2\x82\xac";
  for (size_t before = 0; before < 4; ++before) {
    std::string message(before, 'x');
    while (message.size() < 2000) message += euro;
    ecpipe_error error = Sized<ecpipe_error>();
    EXPECT_EQ(Tell(absl::AbortedError(message), &error), ECPIPE_ABORTED);
    const std::string told = error.message;
    EXPECT_TRUE(IsCleanText(told));
    EXPECT_GT(told.size(), sizeof error.message - 1 - euro.size());
    EXPECT_EQ(told, message.substr(0, told.size()));
  }
}

TEST(Errors, BadBytesOfAPeerDoNotReachTheCaller) {
  ecpipe_error error = Sized<ecpipe_error>();
  Tell(absl::InternalError("\xff\n"), &error);
  EXPECT_STREQ(error.message, "??");
}

TEST(Errors, WithoutASizeNothingIsWritten) {
  ecpipe_error error{};
  error.code = 77;
  EXPECT_EQ(Tell(absl::NotFoundError("x"), &error), ECPIPE_NOT_FOUND);
  EXPECT_EQ(error.code, 77);
  EXPECT_FALSE(CheckOutStructs(nullptr, &error).ok());
}

TEST(Errors, ExceptionsBecomeStatuses) {
  const auto thrown = [](auto exception) {
    return Guarded([&]() -> absl::Status { throw exception; }).code();
  };
  EXPECT_EQ(thrown(std::bad_alloc()), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(thrown(std::system_error(EAGAIN, std::generic_category())),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(thrown(std::runtime_error("x")), absl::StatusCode::kInternal);
}

TEST(COptions, TimesThatAreNoneAreRefused) {
  ecpipe_options options = Sized<ecpipe_options>();
  options.coordinator = "127.0.0.1:1";
  ASSERT_TRUE(OptionsOf(&options).ok());
  for (const double seconds : {-1.0, 1e7, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
    options.stall_timeout_s = seconds;
    EXPECT_FALSE(OptionsOf(&options).ok()) << seconds;
  }
  options.stall_timeout_s = 2.5;
  EXPECT_EQ(OptionsOf(&options)->part.stall_timeout, std::chrono::milliseconds(2500));
}

TEST(CTarget, HasOnePlaceForEachBlock) {
  const char* ids[] = {"a", "b"};
  ecpipe_target target = Sized<ecpipe_target>();
  EXPECT_FALSE(TargetOf(&target).ok());
  target.block_ids = ids;
  target.block_count = 2;
  target.verify = "parity";
  const auto wanted = TargetOf(&target);
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->block_ids, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(wanted->verify, "parity");
  const char* places[] = {"x", nullptr};
  EXPECT_TRUE(PlacesOf(places, 1, "path").ok());
  EXPECT_FALSE(PlacesOf(places, 2, "path").ok());
  EXPECT_FALSE(PlacesOf(nullptr, 1, "path").ok());
  target.block_count = 100'000;
  EXPECT_FALSE(TargetOf(&target).ok());
}

}  // namespace
}  // namespace ecpipe
