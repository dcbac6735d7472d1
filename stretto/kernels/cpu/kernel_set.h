// Kernels of the CPU that were prepared, and the time they took.
//
//   KernelSet kernels;
//   const KernelId k = kernels.prepare(call);
//   kernels.run(k, args);
#pragma once
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/kernels/device.h"

namespace stretto {

class KernelSet {
 public:
  KernelId prepare(const Call& call) {
    const Kernel& k = choose_kernel(call);
    return all_.push_back({k.name, k.prepare(call)});
  }
  std::string_view name(KernelId k) const { return all_[k].name; }
  void time(bool on) { timed_ = on; }
  KernelSpent spent(KernelId k) const { return all_[k].spent; }

  void run(KernelId id, const Args& args) {
    Prepared& k = all_[id];
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
  IdVector<KernelId, Prepared> all_;
  bool timed_ = false;
};

}  // namespace stretto
