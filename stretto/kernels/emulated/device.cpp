// A device that computes nothing: its memory is addresses only, its kernels return at once. The runtime around it is
// the real one and gives every task the time that a cost model says.
#include <sys/mman.h>

#include "stretto/kernels/device.h"

namespace stretto {
namespace {

class EmulatedDevice : public Device {
 public:
  ~EmulatedDevice() override {
    for (const auto& [p, bytes] : maps_) munmap(p, bytes);
  }
  std::byte* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      throw Error("memory", "the system refuses {} bytes of address space", bytes).as(Error::Kind::run);
    maps_.push_back({p, bytes});
    return static_cast<std::byte*>(p);
  }
  KernelId prepare(const Call&) override { return KernelId(0); }
  std::string_view kernel_name(KernelId) const override { return "emulated"; }
  Event launch(KernelId, const Args&) override { return {}; }
  bool done(Event) override { return true; }
  double number(const std::byte*) override { return 0; }

 private:
  std::vector<std::pair<void*, std::size_t>> maps_;
};

}  // namespace

std::unique_ptr<Device> emulated_device() { return std::make_unique<EmulatedDevice>(); }

}  // namespace stretto
