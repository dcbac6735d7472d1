// The threads of a rank: the one that calls, and helpers that sleep in between. They make the parts of one kernel call
// side by side. Which part is whose is settled by its number, never by who is free, and no bit depends on it.
//
//   Team team({.threads = 4});
//   const int parts = team.worth(2e-3);           // of work that takes a thread two milliseconds: 4
//   team.run(parts, [&](int part) { ... });       // part 0 here, each other one by a helper; all are done afterwards
#pragma once
#include <exception>
#include <memory>
#include <optional>

#include "stretto/base/arrival.h"
#include "stretto/base/threads.h"
#include "stretto/kernels/kernel.h"

namespace stretto {

struct TeamOptions {
  int threads = 1;
  // How often one that waits looks before it sleeps: for some microseconds where every thread has a core, else never.
  int spins = 0;
  double least = 20e-6;  // seconds of work that are worth a part of their own; 0: any, for tests
};

class Team {
 public:
  explicit Team(TeamOptions);
  int threads() const { return options_.threads; }
  int worth(double seconds) const;  // into how many parts work is cut that takes one thread so long

  // f(part) for every part, 1 <= parts <= threads(). What the first part throws that does comes out.
  template <class F>
  void run(int parts, const F& f) {
    run(
        parts, [](const void* work, int part) { (*static_cast<const F*>(work))(part); }, &f);
  }
  std::optional<KernelFault>& fault(int part) { return helpers_[part - 1].fault; }  // room for a helper's

 private:
  using Work = void (*)(const void*, int part);
  struct alignas(64) Helper {
    Arrival begin;
    std::uint32_t round = 0;
    Work call = nullptr;
    const void* work = nullptr;
    std::exception_ptr failure;
    std::optional<KernelFault> fault;
    alignas(64) Arrival done;
  };
  void run(int parts, Work, const void*);
  void help(int part);

  TeamOptions options_;
  std::unique_ptr<Helper[]> helpers_;
  Threads threads_;  // last: they end before anything they use goes away
};

}  // namespace stretto
