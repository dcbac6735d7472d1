// Kernels of the CPU that were prepared, the threads that share their work, and the time they took.
//
//   KernelSet kernels({.threads = 4});
//   const KernelId k = kernels.prepare(call);
//   kernels.run(k, args);
#pragma once
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/kernels/cpu/call_parts.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/kernels/device.h"

namespace stretto {

class KernelSet {
 public:
  explicit KernelSet(TeamOptions o) : team_(o) { reserve_products(o.threads); }
  KernelId prepare(const Call& call) {
    const Kernel& k = choose_kernel(call);
    return add(k.name, prepare_in_parts(k, call, team_));
  }
  KernelId add(std::string_view name, Runner run) { return all_.push_back({name, std::move(run)}); }
  std::string_view name(KernelId k) const { return all_[k].name; }
  void time(bool on) { timed_ = on; }
  KernelSpent spent(KernelId k) const { return all_[k].spent; }

  void run(KernelId id, Args args) {
    Prepared& k = all_[id];
    args.team = &team_;
    if (!timed_) return k.run(args);
    const double start = now();
    k.run(args);
    k.spent.seconds += now() - start;
    ++k.spent.runs;
  }

 private:
  struct Prepared {
    std::string_view name;
    Runner run;
    KernelSpent spent = {};
  };
  Team team_;
  IdVector<KernelId, Prepared> all_;
  bool timed_ = false;
};

}  // namespace stretto
