#include "stretto/kernels/device.h"

#include <cstring>

#include "stretto/base/pages.h"
#include "stretto/base/text.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/kernels/processor.h"

namespace stretto {
namespace {

class CpuDevice : public Device {
 public:
  std::byte* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    std::optional<Pages> arena = Pages::map(bytes);
    if (!arena)
      throw Error("memory", "the system refuses {}", human_bytes(double(bytes)))
          .hint("use a smaller batch, more microbatches, recompute, or more ranks")
          .as(Error::Kind::run);
    arena->touch();
    return arenas_.emplace_back(*std::move(arena)).at();
  }

  KernelId prepare(const Call& call) override {
    const Kernel& k = choose_kernel(call);
    return runners_.push_back({k.name, stretto::prepare(k, call)});
  }
  std::string_view kernel_name(KernelId call) const override { return runners_[call].first; }

  Event launch(KernelId call, const Args& args) override {
    runners_[call].second(args);
    return {};
  }
  bool done(Event) override { return true; }
  double number(const std::byte* at) override {
    double x = 0;
    std::memcpy(&x, at, sizeof x);
    return x;
  }

 private:
  IdVector<KernelId, std::pair<std::string_view, Runner>> runners_;
  std::vector<Pages> arenas_;
};

}  // namespace

std::unique_ptr<Device> cpu_device() {
  check_kernels_run_here();
  reserve_products(1);
  return std::make_unique<CpuDevice>();
}

}  // namespace stretto
