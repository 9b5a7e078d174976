// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/c_structs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <system_error>

#include "base/bytes/utf8_text.h"
#include "base/guarded.h"
#include "requestor/client/submitted_call.h"

namespace {
thread_local bool no_memory = false;
}  // namespace

// For the whole test program. Aligned memory is not taken from it.
void* operator new(size_t bytes) {
  if (no_memory) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return no_memory ? nullptr : std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ecpipe::c_structs_test {
namespace {

// While it lives, this thread gets no memory from operator new.
class NoMemory {
 public:
  NoMemory() { no_memory = true; }
  ~NoMemory() { no_memory = false; }
};

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

TEST(Errors, WithoutMemoryThatIsTheError) {
  ecpipe_error error = Sized<ecpipe_error>();
  const auto out_of_memory = [&] {
    EXPECT_EQ(error.code, ECPIPE_RESOURCE_EXHAUSTED);
    EXPECT_STREQ(error.message, "out of memory");
    error = Sized<ecpipe_error>();
  };
  const absl::Status thrown = Guarded([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(thrown.message(), "out of memory");
  EXPECT_EQ(Tell(thrown, &error), ECPIPE_RESOURCE_EXHAUSTED);
  out_of_memory();
  // Longer than any string keeps within itself.
  const absl::Status aborted = absl::AbortedError(std::string(1000, 'x'));
  int code = ECPIPE_OK;
  {
    const NoMemory none;
    code = Tell(aborted, &error);
  }
  EXPECT_EQ(code, ECPIPE_RESOURCE_EXHAUSTED);
  out_of_memory();
  {
    const NoMemory none;
    code = Tell(absl::OkStatus(), &error);
  }
  EXPECT_EQ(code, ECPIPE_OK);
}

TEST(Errors, CancelNeedsNoMemory) {
  CallThreads threads(2);
  std::vector<std::shared_ptr<SubmittedCall>> calls;
  for (int i = 0; i < 2; ++i) {
    calls.push_back(SubmittedCall::Create(1).value());
    ASSERT_TRUE(threads
                    .Start(calls.back(),
                           [](SubmittedCall* own) -> absl::StatusOr<RepairReport> {
                             const std::vector<uint8_t> bytes(2);
                             return own->Put(bytes);
                           })
                    .ok());
  }
  {
    const NoMemory none;
    threads.CancelAll();
  }
  for (const auto& call : calls) EXPECT_TRUE(call->stop().stop_requested());
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
  target.link_mbit = 80;
  const auto wanted = TargetOf(&target);
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->block_ids, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(wanted->verify, "parity");
  EXPECT_EQ(wanted->link_mbit, 80);
  const char* places[] = {"x", nullptr};
  EXPECT_TRUE(PlacesOf(places, 1, "path").ok());
  EXPECT_FALSE(PlacesOf(places, 2, "path").ok());
  EXPECT_FALSE(PlacesOf(nullptr, 1, "path").ok());
  target.block_count = 100'000;
  EXPECT_FALSE(TargetOf(&target).ok());
}

}  // namespace
}  // namespace ecpipe::c_structs_test
