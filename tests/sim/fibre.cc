// SPDX-License-Identifier: Apache-2.0
#include "sim/fibre.h"

#include <sys/mman.h>

#include <cstdint>
#include <vector>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)  // gcc's name of it
#define ECPIPE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define ECPIPE_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define ECPIPE_ADDRESS_SANITIZER 0
#endif

#if ECPIPE_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace ecpipe::sim {
namespace {

// Sanitizers make frames several times larger; pages that are not touched cost nothing.
constexpr size_t kStackBytes = 512u << 10;
constexpr size_t kGuardBytes = 4096;

// Stacks that are free: mapping one anew for each fibre would cost more than running it.
std::vector<void*>& FreeStacks() {
  static auto* const stacks = new std::vector<void*>;
  return *stacks;
}

void* TakeStack() {
  if (!FreeStacks().empty()) {
    void* const stack = FreeStacks().back();
    FreeStacks().pop_back();
    return stack;
  }
  void* const stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ECPIPE_CHECK(stack != MAP_FAILED);
  ECPIPE_CHECK(::mprotect(stack, kGuardBytes, PROT_NONE) == 0);
  return stack;
}

#if ECPIPE_ADDRESS_SANITIZER
void StartSwitch(void** save, const void* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(save, bottom, bytes);
}
void FinishSwitch(void* fake, const void** bottom, size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, bottom, bytes);
}
#else
void StartSwitch(void**, const void*, size_t) {}
void FinishSwitch(void*, const void**, size_t*) {}
#endif

}  // namespace

Fibre::Fibre(std::function<void()> body) : body_(std::move(body)), stack_(TakeStack()) {
  ECPIPE_CHECK(::getcontext(&own_) == 0);
  own_.uc_stack.ss_sp = static_cast<char*>(stack_) + kGuardBytes;
  own_.uc_stack.ss_size = kStackBytes - kGuardBytes;
  own_.uc_link = nullptr;
  // makecontext() passes integers only.
  const auto self = reinterpret_cast<uintptr_t>(this);
  ::makecontext(&own_, reinterpret_cast<void (*)()>(&Fibre::Enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fibre::~Fibre() { FreeStacks().push_back(stack_); }

void Fibre::Enter(unsigned high, unsigned low) {
  reinterpret_cast<Fibre*>(uintptr_t{high} << 32 | low)->Body();
}

void Fibre::Body() {
  FinishSwitch(nullptr, &caller_stack_, &caller_stack_bytes_);
  body_();
  finished_ = true;
  StartSwitch(nullptr, caller_stack_, caller_stack_bytes_);
  ::setcontext(&caller_);
}

void Fibre::Resume() {
  ECPIPE_CHECK(!finished_);
  void* fake = nullptr;
  StartSwitch(&fake, own_.uc_stack.ss_sp, own_.uc_stack.ss_size);
  ECPIPE_CHECK(::swapcontext(&caller_, &own_) == 0);
  FinishSwitch(fake, nullptr, nullptr);
}

void Fibre::Yield() {
  StartSwitch(&fake_stack_, caller_stack_, caller_stack_bytes_);
  ECPIPE_CHECK(::swapcontext(&own_, &caller_) == 0);
  FinishSwitch(fake_stack_, &caller_stack_, &caller_stack_bytes_);
}

}  // namespace ecpipe::sim
