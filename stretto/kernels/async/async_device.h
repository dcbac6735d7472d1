// A CPU device whose lanes are threads: what an accelerator does, where the thread sanitizer can see it. A call returns
// at once; lanes go on side by side and wait for each other only where an event says so. For tests, and for the
// curious.
//
//   AsyncDevice device({.jitter = 1e-4, .seed = 7});
//   device.launch(DeviceLane::compute, kernel, args);
//   device.enqueue(DeviceLane::messages, [=] { work(); });     // for tests
//   device.finish();
//
// The host and a lane meet in the lane's queue, lanes in the words of events, nowhere else: a lock that two lanes share
// would order them by accident and hide a wait that is missing. Operands are told to the sanitizer as ranges.
#pragma once
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "stretto/base/enum_array.h"
#include "stretto/base/threads.h"
#include "stretto/ir/spans.h"
#include "stretto/kernels/async/lane_queue.h"
#include "stretto/kernels/cpu/host_arenas.h"
#include "stretto/kernels/cpu/kernel_set.h"
#include "stretto/kernels/lane_device.h"

namespace stretto {

class AsyncDevice : public LaneDevice {
 public:
  explicit AsyncDevice(AsyncOptions);

  std::byte* allocate(std::size_t bytes) override { return arenas_.allocate(bytes); }
  KernelId prepare(const Call&) override;
  std::string_view kernel_name(KernelId k) const override { return kernels_.name(k); }
  EventId event() override { return events_.push_back(std::make_unique<Event>()); }
  void time_kernels(bool on) override { kernels_.time(on); }

  void launch(DeviceLane, KernelId, const Args&) override;
  void record(EventId, DeviceLane) override;
  void wait(DeviceLane, EventId) override;
  // Runs in the lane, after all before it. What it throws ends the device's work and comes out of finish().
  template <class Work>
  void enqueue(DeviceLane lane, const Work& work) {
    queue(lane).push(work);
  }

  std::string about() const override { return "the CPU, with lanes that are threads"; }
  void reach(LaneDevice&) override {}  // all memory is this process's
  std::shared_ptr<LaneWords> words(std::size_t count) override;
  KernelId prepare_share(const CollectiveShape&, int member) override;
  void copy(DeviceLane, std::byte* to, const std::byte* from, std::size_t bytes) override;
  void advance(DeviceLane, LaneWords&, std::size_t word, std::uint32_t number) override;
  void wait_for(DeviceLane, const LaneWords&, std::size_t word, std::uint32_t number) override;

  std::optional<KernelFault> finish() override;
  void write(std::byte* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void read(void* to, const std::byte* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  std::optional<EventId> newest() const override;
  double seconds(EventId e) const override { return events_[e]->seconds; }
  KernelSpent spent(KernelId k) const override { return kernels_.spent(k); }

 private:
  LaneQueue& queue(DeviceLane);
  void refuse_failed() const;
  // A word of its own: one that waits learns of what came before the event, and of nothing that came since.
  struct Event {
    const LaneQueue* lane = nullptr;  // null: never recorded
    std::uint32_t recorded = 0;       // so many times, by the host
    LaneWord came;                    // so many times, in its lane
    double seconds = 0;               // when, written by the lane
  };
  struct Operands {
    std::vector<ByteSpans> in, out;
  };

  AsyncOptions options_;
  KernelSet kernels_;
  IdVector<KernelId, Operands> operands_;
  HostArenas arenas_;
  IdVector<EventId, std::unique_ptr<Event>> events_;
  std::optional<KernelFault> fault_;      // written in the compute lane
  std::atomic<std::uint32_t> newest_{0};  // event of the compute lane, plus one; 0: none yet
  LaneQueue::FirstFailure failed_{nullptr};
  EnumArray<DeviceLane, std::unique_ptr<LaneQueue>, lane_count> lanes_{};  // null: nobody has used it
  Threads threads_;  // last: they end before anything they use goes away
};

}  // namespace stretto
