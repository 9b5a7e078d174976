// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace ecpipe::sim {

// A function with a stack of its own, run a stretch at a time on the caller's thread.
class Fibre {
 public:
  explicit Fibre(std::function<void()> body);
  // Frees the stack; what a fibre that has not finished holds is lost.
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // Runs the body until it yields or returns. Not from within a fibre.
  void Resume();
  // Back to who resumed it. From within this fibre.
  void Yield();
  bool finished() const { return finished_; }

 private:
  static void Enter(unsigned high, unsigned low);
  void Body();

  const std::function<void()> body_;
  void* stack_ = nullptr;
  ucontext_t own_{};
  ucontext_t caller_{};
  bool finished_ = false;
  // What the address sanitizer wants to know of stacks.
  void* fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_stack_bytes_ = 0;
};

}  // namespace ecpipe::sim
