// A device whose lanes are not the thread that calls, as messages and collectives between the devices of one process
// use it. Its lanes copy into other devices' memory, count words up that all devices reach, and wait for them.
//
//   sender.reach(receiver);                                                  // before step 0
//   const std::shared_ptr<LaneWords> arrived = sender.words(messages);
//   sender.copy(DeviceLane::messages, to, from, bytes);                      // `to` is memory of the receiver
//   sender.advance(DeviceLane::messages, *arrived, 3, round);
//   receiver.wait_for(DeviceLane::compute, *arrived, 3, round);              // no call waits
#pragma once
#include "stretto/ir/collective.h"
#include "stretto/kernels/device.h"

namespace stretto {

// Numbers that lanes count up, cyclic ones, zero at first. Whoever waits for a word learns of what its lane did before.
class LaneWords {
 public:
  virtual ~LaneWords() = default;
  // From any thread: lanes that wait for one of them, or will, come to an end. What they compute from then on is thrown
  // away.
  virtual void stop() noexcept = 0;
};

class LaneDevice : public Device {
 public:
  bool calls_wait() const final { return false; }

  virtual std::string about() const = 0;                                  // the chip, and what drives it
  virtual std::optional<u64> free_bytes() const { return std::nullopt; }  // of memory of its own

  // Before step 0.
  virtual void reach(LaneDevice& other) = 0;  // kernels and copies may use its memory. Error: they cannot
  virtual std::shared_ptr<LaneWords> words(std::size_t count) = 0;  // for all devices of this kind; outlive their lanes
  // What one member does of a collective between devices that reach each other. Launched with all members' operands,
  // behind them `counts` where rows are exchanged, and all members' results.
  virtual KernelId prepare_share(const CollectiveShape&, int member) = 0;

  // Within a step.
  using Device::copy;
  virtual void copy(DeviceLane, std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void advance(DeviceLane, LaneWords&, std::size_t word, std::uint32_t number) = 0;
  virtual void wait_for(DeviceLane, const LaneWords&, std::size_t word, std::uint32_t number) = 0;  // at least
};

}  // namespace stretto
