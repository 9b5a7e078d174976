// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/requestor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <future>
#include <new>
#include <thread>

#include "base/bytes/sha256.h"
#include "base/fault_points.h"
#include "base/status.h"
#include "model/corrupt_block.h"
#include "model/fault.h"
#include "net/tcp_socket.h"
#include "requestor/client/coordinator_client.h"
#include "requestor/client/receive_limit.h"
#include "unit/coordinator/store/scratch_directory.h"
#include "unit/requestor/client/requestor_fixture.h"

namespace ecpipe::requestor_test {
namespace {

using namespace requestor_fixture;

using RequestorTest = RequestorFixture;

TEST_F(RequestorTest, ReadsSeveralBlocksInStepAndComparesEach) {
  coordinator_->begin = [](const RepairTarget& target) {
    EXPECT_EQ(target.block_ids.size(), 2u);
    RepairGrant granted = Granted(1);
    granted.part.check.rows = 0;  // both rows are blocks
    granted.block_lengths = {kBlockBytes, kBlockBytes};
    return granted;
  };
  std::vector<size_t> sizes;
  const PiecesSink take = [&](std::span<const std::span<const uint8_t>> pieces) {
    EXPECT_EQ(pieces.size(), 2u);
    for (const auto& piece : pieces) sizes.push_back(piece.size());
    return absl::OkStatus();
  };
  RepairTarget target{.block_ids = {"a", "b"}};
  const auto report = requestor().ReadSeveral(target, take);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->bytes, 2 * kBlockBytes);
  EXPECT_EQ(sizes, (std::vector<size_t>{500, 500, 500, 500}));
  Sha256 ones;
  ones.Update(std::vector<uint8_t>(kBlockBytes, 1));
  target.sha256 = {ones.FinishHex(), std::string(64, '0')};
  const absl::Status differs = requestor().ReadSeveral(target, take).status();
  EXPECT_TRUE(absl::IsDataLoss(differs)) << differs;
  EXPECT_NE(differs.message().find("block b"), std::string::npos) << differs;
}

TEST_F(RequestorTest, EachFileHasWhatItsBlockHasOfTheRange) {
  constexpr uint64_t kShort = 700;
  coordinator_->begin = [](const RepairTarget&) {
    RepairGrant granted = Granted(1);
    granted.part.check.rows = 0;  // both rows are blocks
    granted.block_lengths = {kShort, kBlockBytes};
    return granted;
  };
  const ScratchDirectory scratch;
  const std::vector<std::string> paths = {scratch.File("a"), scratch.File("b")};
  RepairTarget target{.block_ids = {"a", "b"}};
  for (const uint64_t bytes : {uint64_t{0}, kBlockBytes}) {
    target.bytes = bytes;
    for (const uint64_t own : {kShort, kBlockBytes}) {
      Sha256 ones;
      ones.Update(std::vector<uint8_t>(own, 1));
      target.sha256.push_back(ones.FinishHex());
    }
    const auto report = requestor().RepairToFiles(target, paths);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(std::filesystem::file_size(paths[0]), kShort) << bytes;
    EXPECT_EQ(std::filesystem::file_size(paths[1]), kBlockBytes) << bytes;
    EXPECT_EQ(report->bytes, kShort + kBlockBytes);
    EXPECT_EQ(report->block_bytes, kBlockBytes);
    const PiecesSink nowhere = [](auto) { return absl::OkStatus(); };
    const auto read = requestor().ReadSeveral(target, nowhere);
    EXPECT_TRUE(read.ok()) << "the checksum is of the block alone: " << read.status();
  }
}

TEST_F(RequestorTest, SaysWhichSourcesAreCorrupt) {
  const std::vector<StripeFacts::Source> early = {{1, "dn1"}};
  const std::vector<StripeFacts::Source> late = {{1, "dn1"}, {2, "dn2"}};
  coordinator_->begin = [&](const RepairTarget&) {
    RepairGrant granted = Granted(0);
    granted.corrupt = early;
    return granted;
  };
  coordinator_->corrupt = late;
  std::vector<StripeFacts::Source> begun;
  const auto take = [](std::span<const uint8_t>) { return absl::OkStatus(); };
  const auto report = requestor().Read({.block_ids = {"b"}}, take, nullptr,
                                       [&](const RepairReport& so_far) { begun = so_far.corrupt; });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(begun, early);
  EXPECT_EQ(report->corrupt, late);
}

TEST_F(RequestorTest, TheReportOfTheEndSaysWhenAReadHadItsFirstByte) {
  std::optional<RepairVerdict> said;
  coordinator_->finish = [&](const RepairVerdict& verdict, const std::stop_token&) {
    said = verdict;
    return absl::OkStatus();
  };
  constexpr Duration kPause = std::chrono::milliseconds(20);
  bool first = true;
  const auto take = [&](std::span<const uint8_t>) {
    if (std::exchange(first, false)) std::this_thread::sleep_for(kPause);  // sleep-ok: slow reader
    return absl::OkStatus();
  };
  const auto report = requestor().Read({.block_ids = {"b"}}, take);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(said && said->first_byte_seconds);
  EXPECT_GE(*said->first_byte_seconds, 0);
  EXPECT_LE(*said->first_byte_seconds, report->seconds - Seconds(kPause))
      << "when it was handed on, not when it was taken";
  const ScratchDirectory directory;
  ASSERT_TRUE(requestor().RepairToFiles({.block_ids = {"b"}}, {directory.File("b")}).ok());
  EXPECT_FALSE(said->first_byte_seconds) << "nobody reads a file before it is whole";
  helpers_->refused = 100;
  coordinator_->resume = [](const ResumePoint&) { return absl::AbortedError("enough"); };
  EXPECT_FALSE(Read().ok());
  EXPECT_FALSE(said->first_byte_seconds) << "there was none";
}

TEST_F(RequestorTest, ACancelReachesTheReportOfTheEnd) {
  bool told = false;
  coordinator_->finish = [&](const RepairVerdict& verdict, const std::stop_token& stop) {
    EXPECT_TRUE(verdict.status.ok()) << verdict.status;
    EXPECT_FALSE(stop.stop_requested());
    stop_.request_stop();
    told = stop.stop_requested();
    return absl::CancelledError("the requestor gave up");
  };
  EXPECT_TRUE(Read().ok()) << "the bytes had come";
  EXPECT_TRUE(told);
}

TEST_F(RequestorTest, ACancelWhileACorruptBlockIsLocatedIsNoDataLoss) {
  bool located = false;
  coordinator_->begin = [&](const RepairTarget& target) -> absl::StatusOr<RepairGrant> {
    if (target.verify != "locate") return Granted(1);
    located = true;
    stop_.request_stop();
    return absl::CancelledError("the requestor gave up");
  };
  absl::Status reported;
  coordinator_->finish = [&](const RepairVerdict& verdict, const std::stop_token&) {
    reported = verdict.status;
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsCancelled(Read()));
  EXPECT_TRUE(located);
  EXPECT_TRUE(absl::IsCancelled(reported)) << reported;
}

TEST_F(RequestorTest, WhatAnEarlierAttemptFoundCorruptDoesNotEndALaterOne) {
  int located = 0;
  coordinator_->begin = [&](const RepairTarget& target) -> absl::StatusOr<RepairGrant> {
    if (target.verify != "locate") return Granted(1);  // whose check row is not zero
    ++located;
    return CorruptBlockError("a", "does not fit");
  };
  std::vector<absl::Status> failures;
  coordinator_->resume = [&](const ResumePoint& failed) -> absl::StatusOr<RepairGrant> {
    failures.push_back(failed.failure);
    if (failures.size() > 2) return absl::FailedPreconditionError("a third attempt failed");
    // Without a survivor to spare: no check rows. And its helper cannot be reached at first.
    helpers_->refused = failures.size() == 1 ? 1 : 0;
    RepairGrant granted = Granted(0);
    granted.part.attempt = static_cast<uint32_t>(failures.size());
    return granted;
  };
  const absl::Status status = Read();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(located, 1);
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(CorruptBlockOf(failures[0]), "a");
  EXPECT_TRUE(absl::IsUnavailable(failures[1])) << failures[1];
}

TEST_F(RequestorTest, ACancelEndsTheReadingBackOfFiles) {
  const ScratchDirectory scratch;
  const std::vector<uint8_t> ones(kBlockBytes, 1);
  Sha256 sha256;
  sha256.Update(ones);
  const RepairTarget target{.block_ids = {"b"}, .sha256 = {sha256.FinishHex()}};
  // All bytes are there when it comes.
  const auto progress = [&](uint64_t verified, uint64_t total) {
    if (verified == total) stop_.request_stop();
  };
  const std::string path = scratch.File("b");
  EXPECT_TRUE(absl::IsCancelled(
      requestor().RepairToFiles(target, {path}, progress, stop_.get_token()).status()));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(requestor().RepairToFiles(target, {path}).ok());
  EXPECT_EQ(std::filesystem::file_size(path), kBlockBytes);
}

TEST_F(RequestorTest, WhoWantsNoMoreHasCancelledTheReadAndNotSeenItFail) {
  absl::Status told;
  coordinator_->finish = [&](const RepairVerdict& verdict, const std::stop_token&) {
    told = verdict.status;
    return absl::OkStatus();
  };
  const auto leave = [](std::span<const uint8_t>) { return absl::InternalError("closed"); };
  const absl::Status status = requestor().Read({.block_ids = {"b"}}, leave).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(told)) << told;
  EXPECT_NE(told.ToString().find("closed"), std::string::npos) << told;
}

TEST_F(RequestorTest, WhatThisProcessLacksEndsTheReadAndBlamesNoNode) {
  int resumed = 0;
  coordinator_->resume = [&](const ResumePoint&) {
    ++resumed;
    return Granted(0);
  };
  absl::Status told;
  coordinator_->finish = [&](const RepairVerdict& verdict, const std::stop_token&) {
    told = verdict.status;
    return absl::OkStatus();
  };
  for (const int lacks : {EMFILE, ENFILE, ENOMEM}) {
    helpers_->lacking = ErrnoStatus(lacks, "socket");
    const absl::Status status = Read();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(FaultOf(status), kFaultSelf);
    EXPECT_TRUE(absl::IsResourceExhausted(told)) << told;
  }
  EXPECT_EQ(resumed, 0);
}

TEST_F(RequestorTest, AnAttemptGoesOnWithoutAdviceWhenTheWatchFails) {
  options_.watch = {.quiet_after = std::chrono::milliseconds(2),
                    .check_every = std::chrono::milliseconds(2)};
  helpers_->may_send.Drain();
  coordinator_->check = [this](const std::stop_token&) -> absl::StatusOr<ProgressAdvice> {
    helpers_->may_send.Signal();
    throw std::bad_alloc();
  };
  EXPECT_TRUE(Read().ok());
}

TEST_F(RequestorTest, AnAttemptGoesOnWithoutAdviceWhereThereIsNoThreadForTheWatch) {
  ArmFault("thread.start", {});
  EXPECT_TRUE(Read().ok());
  DisarmAllFaults();
}

// The usual time without bytes is not over within this test.
TEST_F(RequestorTest, ASmallReadAsksSoonWhyNothingComes) {
  constexpr auto kNever = std::chrono::hours(1);
  options_.watch = {.quiet_after = kNever,
                    .little_quiet_after = std::chrono::milliseconds(2),
                    .check_every = kNever};
  helpers_->may_send.Drain();
  coordinator_->check = [this](const std::stop_token&) {
    helpers_->may_send.Signal();
    return ProgressAdvice{};
  };
  EXPECT_TRUE(Read().ok());
}

// The coordinator does not see what comes to the requestor.
TEST_F(RequestorTest, AnAttemptGoesOnIfBytesComeWhileItsEndIsAdvised) {
  constexpr auto kLong = std::chrono::seconds(60);
  options_.watch.quiet_after = std::chrono::milliseconds(2);
  helpers_->may_send.Drain();
  std::promise<void> came;
  std::promise<void> answered;
  bool first = true;
  coordinator_->check = [&](const std::stop_token&) {
    ProgressAdvice advice;
    if (!std::exchange(first, false)) return advice;
    helpers_->may_send.Signal();
    EXPECT_EQ(came.get_future().wait_for(kLong), std::future_status::ready);
    advice.replan = true;
    answered.set_value();
    return advice;
  };
  bool waited = false;
  const auto take = [&](std::span<const uint8_t>) {
    if (std::exchange(waited, true)) return absl::OkStatus();
    came.set_value();
    EXPECT_EQ(answered.get_future().wait_for(kLong), std::future_status::ready);
    return absl::OkStatus();
  };
  const RepairTarget target{.block_ids = {"b"}};
  EXPECT_TRUE(requestor().Read(target, take, nullptr, nullptr, stop_.get_token()).ok());
}

TEST_F(RequestorTest, ReadsDoNotWaitForAdviceOnceAllHasCome) {
  options_.watch.quiet_after = std::chrono::milliseconds(2);
  helpers_->may_send.Drain();
  std::atomic<bool> told_to_stop = false;
  coordinator_->check = [&](const std::stop_token& stop) {
    helpers_->may_send.Signal();
    Mutex mutex;
    CondVar changed;
    const std::stop_callback wake(stop, [&] {
      {
        const MutexLock lock(&mutex);
      }
      changed.NotifyAll();
    });
    MutexLock lock(&mutex);
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(60);
    while (!stop.stop_requested() && changed.WaitUntil(lock, give_up)) {
    }
    told_to_stop = stop.stop_requested();
    return ProgressAdvice{};
  };
  EXPECT_TRUE(Read().ok());
  EXPECT_TRUE(told_to_stop);
}

TEST_F(RequestorTest, ALimitThatSlicesAreTooLargeForIsRefused) {
  options_.receive_bytes_per_second = 10;
  const absl::Status status = Read();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(ReceiveLimitTest, OneRoundOfFramesMayTakeHalfOfTheStallTimeout) {
  constexpr Duration kStall = std::chrono::seconds(10);
  RepairPart part = Part(0);
  part.hops[0].inputs.resize(4);
  part.grid = {0, 64u << 20, 1u << 20};
  const double least = 4.0 * (1 << 20) / 5;  // bytes a second
  EXPECT_TRUE(CheckReceiveLimit(part, least, kStall).ok());
  EXPECT_TRUE(CheckReceiveLimit(part, 0, kStall).ok());
  const absl::Status refused = CheckReceiveLimit(part, least - 1, kStall);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  for (const char* part_of_it : {"slices of 1048576 bytes", "4 streams", "7 Mbit/s", "1048574"}) {
    EXPECT_NE(refused.message().find(part_of_it), std::string::npos) << refused;
  }
  // A slice is no longer than the range.
  part.grid.bytes = 1000;
  EXPECT_TRUE(CheckReceiveLimit(part, least - 1, kStall).ok());
}

// A fallback of the storage system must not wait for a coordinator that is down.
TEST(LostCoordinatorTest, ARepairOverASharedConnectionFailsAtOnce) {
  constexpr int kRepairs = 50;
  constexpr Duration kPatience = std::chrono::milliseconds(200);  // of calls that may wait
  UniqueFd listener = Listen({"127.0.0.1", 0}).value();
  const std::string address = FormatHostPort(BoundAddress(listener.get()).value());
  listener.reset();
  const auto connection = CoordinatorConnection::Open(address, nullptr).value();
  const TimePoint begun = Clock::System().Now();
  for (int i = 0; i < kRepairs; ++i) {
    const auto granted = connection->Client(std::chrono::seconds(10))
                             ->BeginRepair({.block_ids = {"b"}}, {}, "r", std::stop_token());
    EXPECT_TRUE(absl::IsUnavailable(granted.status())) << granted.status();
  }
  EXPECT_LT(Clock::System().Now() - begun, kRepairs * kPatience / 2);
}

// The kernel takes connections to this coordinator, and nobody answers.
class SilentCoordinatorTest : public testing::Test {
 protected:
  static constexpr Duration kCallTimeout = std::chrono::seconds(60);

  Duration Finish(const absl::Status& ended) {
    const TimePoint begun = Clock::System().Now();
    EXPECT_FALSE(coordinator_->FinishRepair(1, 0, {ended}, stop_.get_token()).ok());
    return Clock::System().Now() - begun;
  }

  const UniqueFd listener_ = Listen({"127.0.0.1", 0}).value();
  const std::unique_ptr<CoordinatorApi> coordinator_ =
      MakeCoordinatorClient(FormatHostPort(BoundAddress(listener_.get()).value()), kCallTimeout,
                            nullptr)
          .value();
  std::stop_source stop_;
};

TEST_F(SilentCoordinatorTest, ACancelEndsAReport) {
  // The call lasts until this comes, sooner or later.
  std::jthread canceller([this] { stop_.request_stop(); });
  EXPECT_LT(Finish(absl::OkStatus()), kCallTimeout / 4);
}

TEST_F(SilentCoordinatorTest, AFarewellIsShort) {
  EXPECT_LT(Finish(absl::CancelledError("enough")), kCallTimeout / 4);
}

}  // namespace
}  // namespace ecpipe::requestor_test
