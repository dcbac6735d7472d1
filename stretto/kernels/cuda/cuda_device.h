// A CUDA device: a stream per lane, kernels that are written and compiled for their calls.
//
//   CudaDevice device(cuda_api(), rank);      // Error: no such device, a chip that is too old
#pragma once
#include <vector>

#include "stretto/base/enum_array.h"
#include "stretto/kernels/cuda/api.h"
#include "stretto/kernels/cuda/products.h"
#include "stretto/kernels/cuda/text.h"
#include "stretto/kernels/cuda/words.h"
#include "stretto/kernels/lane_device.h"

namespace stretto {

class CudaDevice : public LaneDevice {
 public:
  CudaDevice(const CudaApi&, int number);  // the functions must live longer
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  int sm() const { return sm_; }       // 80 for sm_80
  std::string about() const override;  // "NVIDIA H100 (sm_90), driver 13.0, NVRTC 13.0"
  std::optional<u64> free_bytes() const override;

  std::byte* allocate(std::size_t bytes) override;
  KernelId prepare(const Call&) override;
  std::string_view kernel_name(KernelId k) const override { return kernels_[k].name; }
  EventId event() override;
  void time_kernels(bool on) override;

  void launch(DeviceLane, KernelId, const Args&) override;
  void record(EventId, DeviceLane) override;
  void wait(DeviceLane, EventId) override;

  void reach(LaneDevice& other) override;
  std::shared_ptr<LaneWords> words(std::size_t count) override;
  KernelId prepare_share(const CollectiveShape&, int member) override;
  void copy(DeviceLane, std::byte* to, const std::byte* from, std::size_t bytes) override;
  void advance(DeviceLane, LaneWords&, std::size_t word, std::uint32_t number) override;
  void wait_for(DeviceLane, const LaneWords&, std::size_t word, std::uint32_t number) override;

  std::optional<KernelFault> finish() override;
  void write(std::byte* to, const void* from, std::size_t bytes) override;
  void read(void* to, const std::byte* from, std::size_t bytes) const override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  std::optional<EventId> newest() const override;
  double seconds(EventId) const override;
  KernelSpent spent(KernelId) const override { return {}; }

 private:
  struct Step {  // of a kernel: one launch
    CudaModule module = nullptr;
    CudaFunction function = nullptr;
    unsigned grid = 1, block = 1;
    CudaAddress table = 0;
    std::vector<std::size_t> operands;
  };
  struct Prepared {
    std::string_view name;
    std::size_t results = 0;
    std::vector<Step> steps;
    std::unique_ptr<PreparedProduct> product = {};
    bool accumulate = false;
    std::size_t work = 0;  // bytes of workspace
  };
  struct Event {
    CudaEvent event = nullptr;
    std::optional<DeviceLane> lane = {};  // where it was recorded
  };

  void enter() const;  // what follows on this thread is about this device
  void check(CudaResult r, std::string_view function) const { stretto::check(api_, r, function); }
  CudaAddress memory(std::size_t bytes);
  void settle() const;
  Step step_of(const std::string& entry, const CudaSource&, std::size_t operands);
  CudaAddress workspace(DeviceLane);
  void put(CudaResult, std::string_view function);  // of calls that put something into a lane

  const CudaApi& api_;
  int number_, device_ = 0, sm_ = 0;
  std::string name_;
  CudaContext context_ = nullptr;
  CublasHandle products_ = nullptr;
  EnumArray<DeviceLane, CudaStream, lane_count> streams_{};
  EnumArray<DeviceLane, CudaAddress, lane_count> workspaces_{};
  EnumArray<DeviceLane, std::size_t, lane_count> workspace_bytes_{};
  std::size_t most_work_ = 0;
  IdVector<KernelId, Prepared> kernels_;
  IdVector<EventId, Event> events_;
  std::vector<CudaWords::Stopped> awaited_;  // of the words that its lanes wait for
  std::optional<CudaWords> newest_;          // one word: the event that came last in the compute lane, plus one
  std::vector<CudaAddress> allocated_;
  struct Failed {
    CudaResult result;
    std::string_view function;
  };
  std::optional<Failed> failed_;  // the first of a step
  // Events tell times since another one, in f32: that of a step's beginning.
  CudaEvent origin_ = nullptr;
  bool begins_ = true;
  double origin_seconds_ = 0;
  CudaAddress fault_ = 0;
};

}  // namespace stretto
